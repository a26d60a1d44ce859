"""A person at a terminal with Claude Code, through hookgate: what is on the screen, and what the model gets."""

import json
import re

import pytest
from claude import Claude, eventually
from conversation import bash, decide, delegate, failed, is_kept, plays, results, turns, without
from scripts import OVERLOADED, cuts, refuses, says
from servers import Message

#: Long enough for the client to ask for a title.
PROMPT = "Please write these files into this folder."


def test_a_conversation(each_setup):
    test = each_setup(
        decide,
        plays(
            Message(
                "msg_1",
                "On it.",
                bash("toolu_1", "echo one > a.txt"),
                bash("toolu_2", "echo denied > c.txt"),
                bash("toolu_3", "echo rewrite > d.txt"),
            ),
            Message("msg_2", "Two are written."),
            Message("msg_3", "Trying.", bash("toolu_4", "echo denied > e.txt")),
            Message("msg_4", "I leave it."),
            Message("msg_5", "You are welcome."),
        ),
    )
    terminal = test.claude.open()
    terminal.type(PROMPT)
    terminal.shows("On it.", "Bash(echo one > a.txt)", "Bash(echo rewritten > b.txt)", "Two are written.")
    terminal.type("And the other one?")
    terminal.shows("Trying.", "I leave it.")
    terminal.type("Thank you.")
    terminal.shows("You are welcome.")
    # Of a denied call nothing is seen: it is the model that tells of it.
    for unseen in ("echo denied", "c.txt", "e.txt", "Error", "this file is not for you"):
        assert unseen not in terminal.text()
    assert terminal.leave() == 0
    assert test.claude.wrote() == {"a.txt": "one", "b.txt": "rewritten"}

    sent, got = test.sent(), test.got()
    assert len(sent) == 4 and len(got) == 5
    assert got[0] == sent[0]
    assert without(got[1], "toolu_2") == sent[1]
    assert without(got[2], "toolu_2") == sent[2]
    # The fourth is hookgate's own: the model is told what it may not do.
    assert failed(got[3]) == {"toolu_2", "toolu_4"}
    assert b"toolu_4" not in sent[3] and b"toolu_4" in got[4]
    is_kept(got)
    assert len(test.asked("PreToolUse")) == 4
    assert [stop["detail"]["response"] for stop in test.asked("Stop")] == [
        "Two are written.",
        "I leave it.",
        "You are welcome.",
    ]


def test_a_title_and_counted_tokens_are_beside_the_conversation(each_setup):
    test = each_setup(decide, plays(Message("msg_1", "They are written."), title="Files of the folder"))
    terminal = test.claude.open()
    terminal.type(PROMPT)
    terminal.shows("They are written.")
    eventually(lambda: test.got("title"), "a request for a title")
    terminal.type("/context")
    terminal.shows("Context Usage")
    assert terminal.leave() == 0
    assert test.got() == test.sent() and len(test.got()) == 1
    assert test.got("title") == test.sent("title") and len(test.got("title")) == 1
    assert sorted(test.got("count")) == sorted(test.sent("count")) and test.got("count")

    # Their prompts are asked about, but they begin no turn and end none.
    asked = {each["detail"]["prompt"]: each for each in test.asked("UserPromptSubmit")}
    title = next(each for prompt, each in asked.items() if prompt.startswith("<session>"))
    assert title["detail"]["side"] is True and title["turnId"] is None
    assert asked[PROMPT]["turnId"] and title["sessionId"] == asked[PROMPT]["sessionId"]
    assert [stop["detail"]["response"] for stop in test.asked("Stop")] == ["They are written."]
    assert len(test.asked("SessionStart")) == 1


def test_clear_begins_another_session(setup):
    test = setup(
        decide,
        plays(
            Message("msg_1", "One.", bash("toolu_1", "echo one > a.txt"), bash("toolu_2", "echo denied > b.txt")),
            Message("msg_2", "The first is written."),
            Message("msg_3", bash("toolu_3", "echo two > c.txt"), bash("toolu_4", "echo denied > d.txt")),
            Message("msg_4", "The third is written."),
        ),
    )
    terminal = test.claude.open()
    terminal.type(PROMPT)
    terminal.shows("The first is written.")
    terminal.type("/clear")
    terminal.hides("The first is written.")
    terminal.type("Write the other files now.")
    terminal.shows("The third is written.")
    assert terminal.leave() == 0
    assert test.claude.wrote() == {"a.txt": "one", "c.txt": "two"}

    sent, got = test.sent(), test.got()
    assert len(sent) == len(got) == 4
    assert got[2] == sent[2] and b"toolu" not in got[2]
    assert without(got[3], "toolu_4") == sent[3] and b"toolu_2" not in got[3]
    calls = {call["toolCallId"]: call["sessionId"] for call in test.asked("PreToolUse")}
    assert calls["toolu_1"] == calls["toolu_2"] != calls["toolu_3"] == calls["toolu_4"]
    assert {start["sessionId"] for start in test.asked("SessionStart")} == set(calls.values())


@pytest.mark.parametrize("between", [pytest.param("Thank you.", id="later"), pytest.param("", id="at once")])
def test_what_was_denied_is_not_in_what_is_summed_up(setup, between):
    def never_ends(asked):
        """A summary is no end of a turn: this is not asked about it."""
        if asked["event"] == "Stop" and "<summary>" in asked["detail"]["response"]:
            return {"outcome": "continue", "reason": "run the tests first"}
        return decide(asked)

    test = setup(
        never_ends,
        plays(
            Message("msg_1", bash("toolu_1", "echo one > a.txt"), bash("toolu_2", "echo denied > b.txt")),
            Message("msg_2", "The first is written."),
            *([Message("msg_3", "You are welcome.")] if between else []),
            Message("msg_4", "<summary>A file was written.</summary>"),
            Message("msg_5", "As was said."),
        ),
    )
    terminal = test.claude.open()
    terminal.type(PROMPT)
    terminal.shows("The first is written.")
    terminal.type("my password is hunter2")
    terminal.shows("no passwords, please")
    if between:
        terminal.type(between)
        terminal.shows("You are welcome.")
    terminal.type("/compact")
    terminal.shows("Compacted")
    # The model sums up what it knows: also the call that it was denied, and not the prompt that it never got.
    summed_up = test.got()[-1]
    assert b"<summary>" in summed_up and b"hunter2" in test.sent()[-1]
    assert results(json.loads(summed_up))["toolu_2"]["is_error"] is True
    terminal.type("What was said?")
    terminal.shows("As was said.")
    assert terminal.leave() == 0
    assert "A file was written." in json.dumps(turns(test.got()[-1])[0])
    assert all("<summary>" not in stop["detail"]["response"] for stop in test.asked("Stop"))
    assert all(b"hunter2" not in body and b"no passwords" not in body for body in test.got())


def test_a_prompt_is_denied_and_the_next_one_is_not(each_setup):
    test = each_setup(decide, plays(Message("msg_1", "Good morning."), Message("msg_2", "Of course.")))
    terminal = test.claude.open()
    terminal.type("Please remember that my password is hunter2.")
    terminal.shows("no passwords, please")
    terminal.type("Good morning to you.")
    terminal.shows("Good morning.")
    terminal.type("Do you remember anything?")
    terminal.shows("Of course.")
    assert terminal.leave() == 0
    # The title was asked for with the prompt in it: that was refused just so.
    assert b"hunter2" in b"".join(test.sent("title") + test.sent()[-1:])
    for _, _, body in test.model.requests:
        assert b"hunter2" not in body and b"no passwords" not in body
    got = test.got()
    assert len(got) == 2
    is_kept(got)


def test_a_prompt_is_rewritten(setup):
    def to_staging(asked):
        prompt = asked["detail"].get("prompt", "")
        if asked["event"] != "UserPromptSubmit" or "production" not in prompt:
            return {"outcome": "pass"}
        return {"outcome": "modify", "replacement": prompt.replace("production", "staging")}

    test = setup(to_staging, plays(Message("msg_1", "It is deployed."), Message("msg_2", "Quite sure.")))
    terminal = test.claude.open()
    terminal.type("Please deploy it to production right now.")
    terminal.shows("It is deployed.")
    terminal.type("Are you sure?")
    terminal.shows("Quite sure.")
    # The person sees what was typed.
    assert "to production" in terminal.text() and "staging" not in terminal.text()
    assert terminal.leave() == 0
    sent, got = test.sent() + test.sent("title"), test.got() + test.got("title")
    assert len(sent) == len(got) == 3
    for client, body in zip(sent, got):
        assert client.replace(b"production", b"staging") == body != client


def test_a_stop_hook_sends_the_model_back(setup):
    def decide(asked):
        if asked["event"] == "Stop" and asked["detail"]["response"] == "I am done.":
            return {"outcome": "continue", "reason": "run the tests first"}
        return {"outcome": "pass"}

    test = setup(
        decide,
        plays(
            Message("msg_1", "I am done."),
            Message("msg_2", "Testing.", bash("toolu_1", "echo ok > a.txt")),
            Message("msg_3", "It is tested."),
            Message("msg_4", "You are welcome."),
        ),
    )
    terminal = test.claude.open()
    terminal.type("Finish it.")
    terminal.shows("I am done.", "Testing.", "Bash(echo ok > a.txt)", "It is tested.")
    terminal.type("Thank you.")
    terminal.shows("You are welcome.")
    assert "run the tests first" not in terminal.text()
    assert terminal.leave() == 0
    assert len(test.sent()) == 3 and len(test.got()) == 4
    is_kept(test.got())


def test_sub_agents(setup):
    test = setup(
        decide,
        plays(
            Message("msg_1", delegate("toolu_1", "Look at the first."), delegate("toolu_2", "Look at the second.")),
            Message("msg_2", "Both are fine."),
            agents={
                "Look at the first.": [
                    Message("msg_3", bash("toolu_3", "echo one > a.txt"), bash("toolu_4", "echo denied > c.txt")),
                    Message("msg_4", "The first is fine."),
                ],
                "Look at the second.": [
                    Message("msg_5", bash("toolu_5", "echo denied > b.txt")),
                    Message("msg_6", "The second is locked."),
                ],
            },
        ),
    )
    terminal = test.claude.open()
    terminal.type("Look at both.")
    terminal.shows("Both are fine.")
    assert terminal.leave() == 0
    assert test.claude.wrote() == {"a.txt": "one"}
    calls = {call["toolCallId"]: call["agentId"] for call in test.asked("PreToolUse")}
    assert calls["toolu_1"] is None and calls["toolu_2"] is None
    assert calls["toolu_3"] == calls["toolu_4"] != calls["toolu_5"]
    assert [stop["detail"]["response"] for stop in test.asked("Stop")] == ["Both are fine."]
    told = results(json.loads(test.got()[-1]))
    assert "The first is fine." in json.dumps(told["toolu_1"]) and "locked" in json.dumps(told["toolu_2"])


def test_a_session_without_a_terminal_is_resumed_at_one(setup):
    test = setup(
        decide,
        plays(
            Message("msg_1", bash("toolu_1", "echo denied > b.txt"), bash("toolu_2", "echo one > a.txt")),
            Message("msg_2", "One is written."),
            Message("msg_3", "Nothing else."),
        ),
    )
    run = test.claude.ask("Write them.")
    assert run.code == 0 and run.text == "One is written.", run.err
    terminal = test.claude.open("--resume", run.result["session_id"])
    terminal.shows("One is written.")
    terminal.type("What else is there?")
    terminal.shows("Nothing else.")
    assert terminal.leave() == 0
    sent, got = test.sent(), test.got()
    assert b"toolu_1" not in sent[2] and without(got[2], "toolu_1") == sent[2]
    is_kept(got)


CALL = Message("msg_1", "Hm.", bash("toolu_1", "echo ran > a.txt"))
FAILURES = {
    "400": [refuses(400, "invalid_request_error")],
    "529 once": [refuses(529, "overloaded_error"), Message("msg_2", "All is well.")],
    "error after a block": [says(Message("msg_1", "Hel", "lo."), 4, OVERLOADED)],
    "cut inside a call": [cuts(CALL, 6)],
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failing_model_is_seen_as_without_hookgate(setup, tmp_path, opened, name):
    """Then the person types another prompt, and the model gets the same conversation."""
    script = [*FAILURES[name], Message("msg_3", "Better now.")]
    model = opened(plays(*script)(None))
    alone = opened(Claude(tmp_path / "alone", model.url))
    test = setup(decide, plays(*script))
    terminals = [alone.open(), test.claude.open()]
    for terminal in terminals:
        terminal.type("Hi.")
    seen = []
    for terminal in terminals:
        terminal.shows("All is well." if name.endswith("once") else "Error")
        terminal.type("And now?")
        terminal.shows("Better now.")
        assert terminal.leave() == 0
        lines = [line for line in terminal.text().splitlines() if line[:1] in "●❯"]
        # The client tells a break in its own words, and where the model was asked.
        seen.append([re.sub(r"(API Error: ).*", r"\1", line) for line in lines])
    assert seen[1] == seen[0]
    bodies = [[body for _, _, body in server.requests] for server in (model, test.model)]
    assert [turns(body) for body in bodies[1]] == [turns(body) for body in bodies[0]]
