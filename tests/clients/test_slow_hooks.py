"""Hooks that take 45 s, with clients that wait for them. All wait at the same time."""

import concurrent.futures
import json
import time
import traceback

import pytest
from claude import ALLOWED
from conftest import Setup
from conversation import bash, decide, plays, results, without
from servers import Message

#: No handler may take more than 30 s: two of them, one after another, take 45.
HANDLER = 22.5
CALLS = (bash("toolu_1", "echo one > a.txt"), bash("toolu_2", "echo denied > b.txt"))


def slowly(event: str, seconds: float):
    def answer(asked):
        if asked["event"] == event:
            time.sleep(seconds)
        return decide(asked)

    return answer


def held(start, event: str, *script, chain: int = 2, seconds: float = HANDLER, **fields) -> Setup:
    """The policy is slow about one event, and asked about no other."""
    model = plays(*(script or (Message("msg_1", "On it.", *CALLS), Message("msg_2", "Done."))))
    return start(slowly(event, seconds), model, chain=chain, events=(event,), timeoutMs=30000, **fields)


def check_calls(test: Setup):
    """One call ran and one was denied; the client sent each request once."""
    assert test.claude.wrote() == {"a.txt": "one"}
    sent, got = test.sent(), test.got()
    assert len(sent) == len(got) == 2
    assert got[0] == sent[0] and without(got[1], "toolu_2") == sent[1]
    assert "this file is not for you" in json.dumps(results(json.loads(got[1]))["toolu_2"])
    # What came in between is what the client counts as life.
    begin, end = (test.tap.answers.index(mark) for mark in (b"On it.", b"toolu_1"))
    assert test.tap.answers[begin:end].count(b"event: ping") > 3


def a_call(start):
    test = held(start, "PreToolUse")
    run = test.claude.ask("Write them.")
    assert run.code == 0 and run.text == "Done.", run.err
    check_calls(test)


def a_call_at_a_terminal(start):
    test = held(start, "PreToolUse")
    terminal = test.claude.open()
    terminal.type("Write them.")
    terminal.shows("Done.")
    assert terminal.leave() == 0
    check_calls(test)


def a_prompt(start):
    """Nothing at all can be sent to the client before it is decided."""
    test = held(start, "UserPromptSubmit", Message("msg_1", "Hello."))
    run = test.claude.ask("Hi.")
    assert run.code == 0 and run.text == "Hello.", run.err
    assert test.got() == test.sent() and len(test.got()) == 1


def the_end_of_a_turn(start):
    test = held(start, "Stop", Message("msg_1", "Hello."))
    run = test.claude.ask("Hi.")
    assert run.code == 0 and run.text == "Hello.", run.err
    assert test.got() == test.sent() and len(test.got()) == 1


def a_handler_that_is_too_slow(start):
    """It is not waited for, which is a refusal, and what it says later is too late."""
    test = held(start, "PreToolUse", chain=1, seconds=45)
    run = test.claude.ask("Write them.")
    assert run.code == 0 and run.text == "Done.", run.err
    assert test.claude.wrote() == {} and len(test.got()) == 2
    told = results(json.loads(test.got()[1]))
    for id in ("toolu_1", "toolu_2"):
        assert told[id]["is_error"] is True and "policy-PreToolUse" in json.dumps(told[id]["content"])
    assert {record["failure"] for record in test.audit(event="PreToolUse")} == {"timeout"}


def the_sdk(start, streamed: bool):
    """Streamed, its limit of 30 s of silence is shorter than the hold."""
    call = ("toolu_1", "Bash", '{"command": "echo one"}')
    test = held(start, "PreToolUse", Message("msg_1", "On it.", call))
    sent: list[bytes] = []
    client = test.hookgate.client(sent)
    fields = {
        "model": "claude-test",
        "max_tokens": 1024,
        "messages": [{"role": "user", "content": "Write it."}],
        "tools": [{"name": ALLOWED.split(",")[0], "input_schema": {"type": "object"}}],
    }
    if streamed:
        with client.messages.stream(**fields) as stream:
            message = stream.get_final_message()
    else:
        message = client.with_options(timeout=120).messages.create(**fields)
    assert [block.type for block in message.content] == ["text", "tool_use"]
    assert message.content[1].input == {"command": "echo one"}
    assert [body for _, _, body in test.model.requests] == sent and len(sent) == 1


CASES = {
    "a call": (a_call, "http"),
    "a call, over TLS": (a_call, "tls"),
    "a call, at a terminal": (a_call_at_a_terminal, "http"),
    "a prompt": (a_prompt, "tls"),
    "the end of a turn": (the_end_of_a_turn, "http"),
    "a handler that is too slow": (a_handler_that_is_too_slow, "http"),
    "the SDK, streamed": (lambda start: the_sdk(start, True), "tls"),
    "the SDK, whole": (lambda start: the_sdk(start, False), "http"),
}


@pytest.mark.slow
def test_hooks_that_take_45_seconds(tmp_path, opened, authority):
    def run(name: str):
        case, transport = CASES[name]
        tls = authority if transport == "tls" else None
        folder = tmp_path / name.replace(" ", "-")
        case(
            lambda decide, model, **fields: Setup(folder, opened, decide, model(tls and tls.server), tls=tls, **fields)
        )

    with concurrent.futures.ThreadPoolExecutor(len(CASES)) as together:
        waiting = {name: together.submit(run, name) for name in CASES}
    failed = {name: error for name, each in waiting.items() if (error := each.exception())}
    told = (f"{name}: {''.join(traceback.format_exception(type(e), e, e.__traceback__))}" for name, e in failed.items())
    assert not failed, "\n".join(told)
