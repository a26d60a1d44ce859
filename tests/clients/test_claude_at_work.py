"""What a person at a terminal does while Claude Code works, through hookgate."""

import json
import threading

import pytest
from claude import eventually
from conversation import bash, decide, delegate, is_kept, plays, results
from scripts import Open, stays
from servers import Message


#: For such models the client puts what is typed meanwhile into the text of a result.
OLDER = "claude-sonnet-4-5"


def test_the_person_is_asked_about_the_call_that_will_run(setup):
    test = setup(
        decide,
        plays(Message("msg_1", bash("toolu_1", "echo rewrite > /etc/d.txt")), Message("msg_2", "It is written.")),
    )
    terminal = test.claude.open(tools="Read")
    terminal.type("Write it.")
    terminal.shows("Do you want to proceed?", "echo rewritten > b.txt")
    assert "/etc/d.txt" not in terminal.text() and test.claude.wrote() == {}
    terminal.press("\r")
    terminal.shows("It is written.")
    assert terminal.leave() == 0
    assert test.claude.wrote() == {"b.txt": "rewritten"}


def test_a_person_interrupts_while_a_hook_is_asked(setup):
    asked_about, release = threading.Event(), threading.Event()

    def pending(asked):
        if asked["event"] == "PreToolUse":
            asked_about.set()
            release.wait(25)
        return {"outcome": "pass"}

    answer = Open(Message("msg_1", "On it.", bash("toolu_1", "echo one > a.txt")).events()[:-2])
    test = setup(pending, plays(stays(answer), Message("msg_2", "It is left undone.")), tapped=False, timeoutMs=30000)
    terminal = test.claude.open()
    try:
        terminal.type("Write it.")
        assert asked_about.wait(60)
        terminal.shows("esc to interrupt")
        terminal.press("\x1b")
        assert answer.gone.wait(20), "the model goes on writing for nobody"
        terminal.rests()
        records = eventually(lambda: test.audit(event="PreToolUse", outcome="cancelled"), "a cancelled call")
        assert [record["toolCallId"] for record in records] == ["toolu_1"]
    finally:
        release.set()
    terminal.type("Leave it, please.")
    terminal.shows("It is left undone.")
    assert terminal.leave() == 0
    assert test.claude.wrote() == {} and b"toolu_1" not in test.got()[1]


@pytest.mark.parametrize("model", ["claude-test", OLDER])
def test_a_prompt_is_typed_while_the_agent_works(setup, model):
    """The client sends it beside or within the next results, and not as a message of the user: it is a prompt all the
    same."""
    typed = threading.Event()

    def decide(asked):
        prompt = asked["detail"].get("prompt", "")
        if asked["event"] == "PreToolUse":
            typed.wait(25)
        if asked["event"] == "UserPromptSubmit" and "hunter2" in prompt:
            return {"outcome": "deny", "reason": "no passwords, please"}
        if asked["event"] == "UserPromptSubmit" and "production" in prompt:
            return {"outcome": "modify", "replacement": prompt.replace("production", "staging")}
        return {"outcome": "pass"}

    test = setup(
        decide,
        plays(
            Message("msg_1", bash("toolu_1", "echo one > a.txt")),
            Message("msg_2", "It goes to staging."),
            Message("msg_3", bash("toolu_2", "echo two > b.txt")),
            Message("msg_4", "Nothing was said."),
        ),
        timeoutMs=30000,
    )

    def say(prompt: str, meanwhile: str):
        asked = len(test.asked("PreToolUse"))
        terminal.type(prompt)
        eventually(lambda: len(test.asked("PreToolUse")) > asked, "a call")
        terminal.type_ahead(meanwhile)
        typed.set()

    terminal = test.claude.open("--model", model)
    say("Write the first.", "and deploy to production")
    terminal.shows("It goes to staging.")
    terminal.rests()
    typed.clear()
    say("Write the second.", "my password is hunter2")
    terminal.shows("no passwords, please")
    terminal.type("What did I say?")
    terminal.shows("Nothing was said.")
    assert terminal.leave() == 0
    assert test.claude.wrote() == {"a.txt": "one", "b.txt": "two"}

    sent, got = test.sent(), test.got()
    assert len(sent) == 5 and len(got) == 4
    assert b"production" in sent[1] and b"hunter2" in sent[4]
    for body in got:
        assert b"production" not in body and b"hunter2" not in body and b"no passwords" not in body
    assert got[1] == sent[1].replace(b"production", b"staging")
    is_kept(got)
    kept = results(json.loads(got[3]))
    assert set(kept) == {"toolu_1", "toolu_2"}
    # Of what was denied the result has nothing left, and is what the command gave.
    assert kept["toolu_2"]["content"] == "(Bash completed with no output)"
    prompts = [asked["detail"]["prompt"] for asked in test.asked("UserPromptSubmit")]
    for prompt in ("deploy to production", "my password is hunter2"):
        assert sum(prompt in each for each in prompts) == 1


def test_a_prompt_is_typed_while_a_sub_agent_works(setup):
    """Its result is a list of texts, so the client puts the prompt beside it. What is denied is not summed up
    either."""
    typed = threading.Event()

    def slowly(asked):
        if asked["event"] == "PreToolUse" and asked["agentId"]:
            typed.wait(25)
        return decide(asked)

    looks = [Message("msg_2", bash("toolu_2", "echo one > a.txt")), Message("msg_3", "All is fine.")]
    test = setup(
        slowly,
        plays(
            Message("msg_1", delegate("toolu_1", "Look at it.")),
            Message("msg_4", "<summary>It was looked at.</summary>"),
            agents={"Look at it.": looks},
        ),
        timeoutMs=30000,
    )
    terminal = test.claude.open("--model", OLDER)
    terminal.type("Have a look.")
    eventually(lambda: any(call["agentId"] for call in test.asked("PreToolUse")), "a call of the sub-agent")
    terminal.type_ahead("my password is hunter2")
    typed.set()
    terminal.shows("no passwords, please")
    terminal.type("/compact")
    terminal.shows("Compacted")
    assert terminal.leave() == 0
    sent, got = json.loads(test.sent()[-1]), json.loads(test.got()[-1])
    assert json.dumps(results(got)["toolu_1"]["content"]).count("All is fine.") == 1
    assert all(b"hunter2" not in body and b"no passwords" not in body for body in test.got())
    assert got["messages"][-1]["content"][-1] == sent["messages"][-1]["content"][-1]
