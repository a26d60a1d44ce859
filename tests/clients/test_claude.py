"""Claude Code without a terminal, through hookgate: what it runs, what it is told, and what the model gets."""

import json
import threading

import pytest
from claude import eventually
from conversation import bash, blocks, decide, failed, plays, results, turns, without
from scripts import Open, stays
from servers import Message

PLACES = {"first": "toolu_1", "middle": "toolu_2", "last": "toolu_3"}


@pytest.mark.parametrize("place", PLACES)
def test_three_calls_at_once_of_which_one_is_denied(each_setup, place):
    denied = PLACES[place]
    allowed, rewritten = (id for id in PLACES.values() if id != denied)
    commands = {
        allowed: "echo allowed > a.txt",
        rewritten: "echo rewrite > /etc/b.txt",
        denied: "echo denied > c.txt",
    }
    test = each_setup(
        decide,
        plays(
            Message("msg_1", "On it.", *(bash(id, commands[id]) for id in PLACES.values())),
            Message("msg_2", "Done."),
            Message("msg_3", bash("toolu_4", "echo more > d.txt")),
            Message("msg_4", "Now it is."),
        ),
    )
    run = test.claude.ask("Write the files.")
    assert run.code == 0 and run.text == "Done.", run.err
    assert test.claude.wrote() == {"a.txt": "allowed", "b.txt": "rewritten"}

    sent, got = test.sent(), test.got()
    assert len(sent) == len(got) == 2
    assert got[0] == sent[0]
    # Only the denied call and its result were put in: with these bytes taken out again it is what the client sent.
    assert denied.encode() not in sent[1]
    assert without(got[1], denied) == sent[1]
    calls = {call["id"]: call for call in blocks(json.loads(got[1]), "tool_use")}
    assert list(calls) == list(PLACES.values())
    assert calls[rewritten]["input"]["command"] == "echo rewritten > b.txt"
    assert bash(denied, commands[denied])[2].encode() in got[1]
    told = results(json.loads(got[1]))
    assert failed(got[1]) == {denied}
    assert "this file is not for you" in json.dumps(told[denied]["content"]) and len(told) == 3

    # Turns later, and from another process: the model sees what it saw, and whatever else was sent.
    run = test.claude.ask("Is that all?", "--resume", run.result["session_id"])
    assert run.code == 0 and run.text == "Now it is.", run.err
    sent, got = test.sent(), test.got()
    assert len(sent) == len(got) == 4
    for number in (2, 3):
        assert denied.encode() not in sent[number]
        assert without(got[number], denied) == sent[number]
        assert turns(got[number])[: len(turns(got[1]))] == turns(got[1])
    assert len(test.asked("PreToolUse")) == 4


def test_when_every_call_is_denied_the_answer_goes_on(each_setup):
    test = each_setup(
        decide,
        plays(
            Message("msg_1", "Trying.", bash("toolu_1", "echo denied > a.txt"), bash("toolu_2", "echo denied > b.txt")),
            Message("msg_2", "I leave it."),
        ),
    )
    run = test.claude.ask("Write the files.")
    assert run.code == 0 and run.result["is_error"] is False and run.text == "I leave it.", run.err
    assert run.result["num_turns"] == 1 and test.claude.wrote() == {}
    sent, got = test.sent(), test.got()
    assert len(sent) == 1 and len(got) == 2 and got[0] == sent[0]
    assert {id: result["is_error"] for id, result in results(json.loads(got[1])).items()} == {
        "toolu_1": True,
        "toolu_2": True,
    }


def test_a_denied_prompt_is_shown_and_never_reaches_the_model(each_setup):
    test = each_setup(decide, plays(Message("msg_1", "Hello."), Message("msg_2", "Again.")))
    run = test.claude.ask("my password is hunter2")
    assert run.code == 0 and "no passwords, please" in run.text, run.err
    assert test.model.requests == []

    for number, (prompt, answer) in enumerate([("Hi.", "Hello."), ("And now?", "Again.")]):
        run = test.claude.ask(prompt, "--continue")
        assert run.code == 0 and run.text == answer, run.err
        # The client still has it in its history.
        assert b"hunter2" in test.sent()[-1]
        body = test.got()[number]
        assert b"hunter2" not in body and b"no passwords" not in body
    assert len({envelope["sessionId"] for envelope in test.asked("UserPromptSubmit")}) == 1


def test_a_prompt_is_rewritten_and_context_is_added(each_setup):
    def decide(asked):
        if asked["event"] != "UserPromptSubmit" or "Deploy" not in asked["detail"]["prompt"]:
            return {"outcome": "pass"}
        return {"outcome": "modify", "replacement": "Deploy to staging.", "additionalContext": "It is Friday."}

    test = each_setup(
        decide,
        plays(
            Message("msg_1", bash("toolu_1", "echo ok > a.txt")),
            Message("msg_2", "Done."),
            Message("msg_3", "Yes."),
        ),
    )
    run = test.claude.ask("Deploy to production.")
    assert run.code == 0 and run.text == "Done.", run.err
    run = test.claude.ask("Sure?", "--continue")
    assert run.code == 0 and run.text == "Yes.", run.err
    assert [asked["detail"]["prompt"] for asked in test.asked("UserPromptSubmit")] == ["Deploy to production.", "Sure?"]
    # What the client adds to each prompt by itself is no prompt, and stays.
    assert any("<system-reminder>" in part for part in test.asked("UserPromptSubmit")[0]["detail"]["clientContext"])
    sent, got = test.sent(), test.got()
    assert len(sent) == len(got) == 3
    for client, body in zip(sent, got):
        assert b"Deploy to production." in client and b"Deploy to production." not in body
        texts = [block["text"] for block in json.loads(body)["messages"][0]["content"]]
        assert texts.count("Deploy to staging.") == 1
        assert sum("It is Friday." in text for text in texts) == 1
        before = client.index(b"Deploy to production.")
        assert body[:before] == client[:before]


def test_a_stop_hook_sends_the_model_back_once(each_setup):
    def decide(asked):
        if asked["event"] == "Stop" and asked["detail"]["attempt"] == 1:
            return {"outcome": "continue", "reason": "run the tests first"}
        return {"outcome": "pass"}

    test = each_setup(
        decide,
        plays(
            Message("msg_1", "Done."),
            Message("msg_2", bash("toolu_1", "echo ok > a.txt")),
            Message("msg_3", "Tested."),
        ),
    )
    run = test.claude.ask("Finish it.")
    assert run.code == 0 and run.text == "Tested.", run.err
    assert test.claude.wrote() == {"a.txt": "ok"}
    assert len(test.sent()) == 2 and len(test.got()) == 3
    assert [stop["detail"]["attempt"] for stop in test.asked("Stop")] == [1, 2]
    history = [turns(body)[:3] for body in test.got()[1:]]
    assert [message["role"] for message in history[0]] == ["user", "assistant", "user"]
    assert "run the tests first" in json.dumps(history[0][2]["content"])
    # The client has one merged message; the model keeps the two that it had, so that its cache stays good.
    assert history[0] == history[1]


def test_denied_calls_are_in_the_history_of_a_resumed_session(setup):
    """Also one that was denied alone, so that the client has one message where the model wrote two."""
    test = setup(
        decide,
        plays(
            Message("msg_1", "One.", bash("toolu_1", "echo one > a.txt"), bash("toolu_2", "echo denied > b.txt")),
            Message("msg_2", "Two.", bash("toolu_3", "echo denied > b.txt")),
            Message("msg_3", "Done."),
            Message("msg_4", "Yes."),
        ),
    )
    run = test.claude.ask("Write them.")
    assert run.code == 0 and run.text == "Done.", run.err
    session = run.result["session_id"]
    run = test.claude.ask("Sure?", "--resume", session)
    assert run.code == 0 and run.text == "Yes." and run.result["session_id"] == session, run.err
    assert b"toolu_2" not in test.sent()[-1] and b"toolu_3" not in test.sent()[-1]
    before, after = test.got()[2], test.got()[3]
    assert failed(after) == {"toolu_2", "toolu_3"}
    # What the model saw of this turn before, it sees again.
    assert turns(after)[: len(turns(before))] == turns(before)
    assert len(test.asked("PreToolUse")) == 3


def test_a_client_that_is_killed_ends_what_was_asked_for_it(each_setup):
    asked_about, release = threading.Event(), threading.Event()

    def pending(asked):
        if asked["event"] == "PreToolUse":
            asked_about.set()
            release.wait(25)
        return {"outcome": "pass"}

    answer = Open(Message("msg_1", "On it.", bash("toolu_1", "echo one > a.txt")).events()[:-2])
    # Without the tap, so that it is the client's own end of the connection that hookgate sees.
    test = each_setup(pending, plays(stays(answer)), tapped=False, timeoutMs=30000)
    try:
        process = test.claude.start("Write it.")
        assert asked_about.wait(60)
        test.claude.kill(process)
        assert answer.gone.wait(20), "the model goes on writing for nobody"
        records = eventually(lambda: test.audit(event="PreToolUse", outcome="cancelled"), "a cancelled call")
        assert [record["toolCallId"] for record in records] == ["toolu_1"]
    finally:
        release.set()
    assert test.claude.wrote() == {} and len(test.model.requests) == 1


def test_with_nothing_between_the_client_and_hookgate(each_setup):
    """Over TLS it is the client's own TLS against hookgate's, and not that of the tap."""
    test = each_setup(
        decide,
        plays(
            Message("msg_1", "On it.", bash("toolu_1", "echo rewrite > a.txt"), bash("toolu_2", "echo denied > c.txt")),
            Message("msg_2", "Done."),
            Message("msg_3", "Yes."),
        ),
        tapped=False,
    )
    for prompt, answer in (("Write them.", "Done."), ("Sure?", "Yes.")):
        run = test.claude.ask(prompt, "--continue")
        assert run.code == 0 and run.text == answer, run.err
    assert test.claude.wrote() == {"b.txt": "rewritten"}
    assert results(json.loads(test.got()[2]))["toolu_2"]["is_error"] is True
