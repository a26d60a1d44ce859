"""What Claude Code makes of a model that fails, through hookgate and without it."""

import json
import re

import pytest
from claude import Claude, eventually
from conversation import bash, decide, plays, results
from scripts import OVERLOADED, cuts, refuses, says, scripted
from servers import Message

HELLO = says(Message("msg_1", "Hello."))
CALL = Message("msg_1", "Hm.", bash("toolu_1", "echo ran > a.txt"))
FAILURES = {
    "400": [refuses(400, "invalid_request_error", request_id="req_1")],
    "401 once": [refuses(401, "authentication_error"), HELLO],
    "401 for good": [refuses(401, "authentication_error")],
    "403": [refuses(403, "permission_error")],
    "404": [refuses(404, "not_found_error")],
    "413": [refuses(413, "request_too_large")],
    "429 once": [refuses(429, "rate_limit_error", retry_after="2"), HELLO],
    "429 for good": [refuses(429, "rate_limit_error", retry_after="1", request_id="req_1")],
    "500 once": [refuses(500, "api_error"), HELLO],
    "503 once": [refuses(503, "api_error"), HELLO],
    "503 not to be tried again": [refuses(503, "api_error", x_should_retry="false", request_id="req_1")],
    "529 once": [refuses(529, "overloaded_error", request_id="req_1"), HELLO],
    "529 for good": [refuses(529, "overloaded_error")],
    "error before a block": [says(Message("msg_1", "Hello."), 1, OVERLOADED), HELLO],
    "error after a block": [says(Message("msg_1", "Hel", "lo."), 4, OVERLOADED)],
    "error inside a call": [says(CALL, 6, OVERLOADED), HELLO],
    "cut before the message": [cuts(Message("msg_1", "Hello."), 0), HELLO],
    "cut before a block": [cuts(Message("msg_1", "Hello."), 1), HELLO],
    "cut inside a block": [cuts(Message("msg_1", "Hello."), 3), HELLO],
    "cut after a block": [cuts(Message("msg_1", "Hel", "lo."), 4), HELLO],
    "cut inside a call": [cuts(CALL, 6), HELLO],
    "end before a block": [says(Message("msg_1", "Hello."), 1), HELLO],
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failing_model_looks_as_it_does_without_hookgate(setup, tmp_path, opened, name):
    """The result, how many requests there are and which ask for a stream: as in a run straight to the model."""
    failing = opened(scripted(FAILURES[name]))
    alone = opened(Claude(tmp_path / "alone", failing.url))
    test = setup(decide, lambda tls: scripted(FAILURES[name], tls))
    came = []
    for claude in (alone, test.claude):
        claude.env["CLAUDE_CODE_MAX_RETRIES"] = "2"
        claude.start("Hi.")
    for claude, model in ((alone, failing), (test.claude, test.model)):
        run = claude.end()
        fields = ("is_error", "result", "num_turns", "terminal_reason", "api_error_status")
        seen = {field: run.result.get(field) for field in fields}
        if run.code == 1 and name.startswith("cut"):
            # A cut is told in hookgate's words, not in the client's own.
            del seen["result"]
        else:
            # Some tell where the model was asked, as an address or as a host and a port.
            seen["result"] = re.sub(r"(http://)?localhost:\d+(/anthropic)?", "MODEL", seen["result"])
        streamed = [json.loads(body).get("stream", False) for _, _, body in model.requests]
        came.append({"code": run.code, **seen, "streamed": streamed, "wrote": claude.wrote()})
    assert came[1] == came[0]

    status, _, pieces, *head = FAILURES[name][0]({}, b'{"stream": true}')
    if status != 200:
        answers = test.tap.answers.lower()
        assert pieces[0].lower() in answers
        for field, value in head[0].items():
            assert f"\r\n{field}: {value}\r\n".encode() in answers


def test_an_answer_that_ends_too_early_is_an_error(setup):
    """Alone, the client takes it for a finished turn; what hookgate could not see to its end is never shown as one."""
    test = setup(decide, plays(says(Message("msg_1", "Hel", "lo."), 4), HELLO))
    run = test.claude.ask("Hi.")
    assert run.code == 1 and run.result["is_error"] is True
    assert [json.loads(body)["stream"] for _, _, body in test.model.requests] == [True]
    assert [failure["detail"]["kind"] for failure in eventually(lambda: test.asked("StopFailure"), "StopFailure")]


def test_a_model_that_is_overloaded_when_told_of_a_denial_is_asked_again(setup):
    denied = Message("msg_1", "Trying.", bash("toolu_1", "echo denied > a.txt"))
    test = setup(decide, plays(denied, refuses(529, "overloaded_error"), Message("msg_2", "I leave it.")))
    run = test.claude.ask("Write it.")
    assert run.code == 0 and run.text == "I leave it." and test.claude.wrote() == {}, run.err
    bodies = [body for _, _, body in test.model.requests]
    assert len(bodies) == 3 and bodies[1] == bodies[2] and len(test.asked("PreToolUse")) == 1


def test_what_was_denied_is_remembered_when_the_answer_breaks_off_after_it(setup):
    """The client asks again without a stream. It costs no second decision, and the denied call does not run."""
    denied = Message("msg_1", bash("toolu_1", "echo denied > a.txt"))
    broken = cuts(Message("msg_2", "I leave it."), 2)
    test = setup(decide, plays(denied, broken, Message("msg_3", "I leave it.")))
    run = test.claude.ask("Write it.")
    assert run.code == 0 and run.text == "I leave it." and test.claude.wrote() == {}, run.err
    sent = [json.loads(body) for body in test.sent()]
    assert [body.get("stream", False) for body in sent] == [True, False]
    assert len(test.model.requests) == 3 and len(test.asked("PreToolUse")) == 1
    assert set(results(json.loads(test.got()[2]))) == {"toolu_1"}
