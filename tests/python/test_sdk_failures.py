"""What the SDK makes of a model that fails, through hookgate and without it, and of leaving in the middle."""

import threading
import time

import anthropic
import pytest
from gateway import PATIENCE
from scripts import OVERLOADED, Open, cuts, refuses, says, scripted, stays
from servers import Message
from test_sdk import TOOLS, ask

STREAMED = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
HELLO = Message("msg_1", "Hello.")
CALL = Message("msg_1", "Hm.", ("toolu_1", "read", '{"path": "a.txt"}'))
REFUSALS = {
    "400": [refuses(400, "invalid_request_error", request_id="req_1")],
    "401": [refuses(401, "authentication_error", request_id="req_1", x_should_retry="false")],
    "403": [refuses(403, "permission_error")],
    "404": [refuses(404, "not_found_error")],
    "413": [refuses(413, "request_too_large")],
    "429 once": [refuses(429, "rate_limit_error", retry_after="1"), says(HELLO)],
    "429 for good": [refuses(429, "rate_limit_error", retry_after="1", request_id="req_1")],
    "429 with limits": [
        refuses(
            429,
            "rate_limit_error",
            x_should_retry="false",
            anthropic_ratelimit_requests_remaining="0",
            anthropic_ratelimit_requests_reset="2027-01-01T00:00:00Z",
        )
    ],
    "500 once": [refuses(500, "api_error"), says(HELLO)],
    "503 not to be tried again": [refuses(503, "api_error", x_should_retry="false", request_id="req_1")],
    "400 to be tried again": [refuses(400, "api_error", x_should_retry="true"), says(HELLO)],
    "529 once": [refuses(529, "overloaded_error", request_id="req_1"), says(HELLO)],
    "529 for good": [refuses(529, "overloaded_error", retry_after="1")],
}
BREAKS = {
    "error before a block": [says(HELLO, 1, OVERLOADED)],
    "error after a block": [says(Message("msg_1", "Hel", "lo."), 4, OVERLOADED)],
    "error inside a call": [says(CALL, 6, OVERLOADED)],
    "cut before the message": [cuts(HELLO, 0)],
    "cut before a block": [cuts(HELLO, 1)],
    "cut inside a block": [cuts(HELLO, 3)],
    "cut after a block": [cuts(Message("msg_1", "Hel", "lo."), 4)],
    "cut inside a call": [cuts(CALL, 6)],
}


def direct(url: str, **fields) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        api_key="sk-test",
        base_url=url,
        timeout=PATIENCE,
        http_client=anthropic.DefaultHttpxClient(trust_env=False),
        **fields,
    )


def outcome(client: anthropic.Anthropic, streamed: bool):
    """The message, or the error with all that a program can see of it."""
    try:
        return ask(client, streamed, [{"role": "user", "content": "Hi."}], tools=TOOLS).to_dict()
    except anthropic.APIStatusError as failure:
        hop = ("date", "server", "connection", "content-length", "transfer-encoding")
        head = {name: value for name, value in failure.response.headers.items() if name not in hop}
        return type(failure), failure.status_code, failure.body, failure.request_id, head


@pytest.mark.parametrize("setup", ["http"], indirect=True)
@STREAMED
@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_what_it_is_without_hookgate(setup, opened, name, streamed):
    """With the SDK's own way of trying again, which the head of a refusal steers."""
    alone = opened(scripted(REFUSALS[name]))
    hookgate, model, policy = setup(lambda asked: {"outcome": "pass"}, lambda tls: scripted(REFUSALS[name], tls))
    expected = outcome(direct(alone.url), streamed)
    assert outcome(hookgate.client().with_options(max_retries=2), streamed) == expected
    assert len(model.requests) == len(alone.requests)
    assert len({body for _, _, body in model.requests}) == 1


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_answer_is_an_error_as_without_hookgate(setup, opened, name):
    """Which error it is differs for a cut, since what hookgate cannot see to its end it tells as an error event."""
    alone = opened(scripted(BREAKS[name]))
    hookgate, model, policy = setup(lambda asked: {"outcome": "pass"}, lambda tls: scripted(BREAKS[name], tls))
    raised = []
    for client in (direct(alone.url, max_retries=0), hookgate.client()):
        texts = []
        with pytest.raises(Exception) as failure:
            with client.messages.stream(
                model="claude-test", max_tokens=1024, messages=[{"role": "user", "content": "Hi."}], tools=TOOLS
            ) as stream:
                for event in stream:
                    assert event.type != "content_block_stop" or event.content_block.type == "text"
                    if event.type == "text":
                        texts.append(event.text)
        raised.append((failure.value, texts))
    (alone_raised, alone_texts), (through_raised, through_texts) = raised
    assert through_texts == alone_texts
    assert isinstance(through_raised, anthropic.APIStatusError)
    if name.startswith("error"):
        assert type(through_raised) is type(alone_raised) and through_raised.body == alone_raised.body
    assert len(model.requests) == len(alone.requests) == 1


def eventually(check, what: str):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := check():
            return found
        time.sleep(0.05)
    raise AssertionError(f"in {PATIENCE} s this did not come: {what}")


@pytest.mark.parametrize("when", ["in the middle of the text", "while a hook is asked"])
def test_a_client_that_leaves_ends_what_was_asked_for_it(setup, when):
    asked_about, release = threading.Event(), threading.Event()

    def pending(asked):
        if asked["event"] == "PreToolUse":
            asked_about.set()
            release.wait(PATIENCE)
        return {"outcome": "pass"}

    events = CALL.events()
    answer = Open(events[:3] if when.endswith("text") else events[:-2])
    hookgate, model, policy = setup(pending, lambda tls: scripted([stays(answer)], tls), timeoutMs=30000)
    try:
        with hookgate.client().messages.stream(
            model="claude-test", max_tokens=1024, messages=[{"role": "user", "content": "Hi."}], tools=TOOLS
        ) as stream:
            for event in stream:
                if event.type == "text":
                    break
            if not when.endswith("text"):
                assert asked_about.wait(PATIENCE)
        assert answer.gone.wait(PATIENCE), "the model goes on writing for nobody"
        if not when.endswith("text"):
            records = eventually(
                lambda: [each for each in hookgate.audit() if each["outcome"] == "cancelled"], "a cancelled call"
            )
            assert [(record["event"], record["toolCallId"]) for record in records] == [("PreToolUse", "toolu_1")]
    finally:
        release.set()
    assert len(model.requests) == 1


def test_the_prompt_of_a_client_that_leaves_is_never_sent(setup):
    """It hangs up while the prompt is decided."""
    asked_about, release = threading.Event(), threading.Event()

    def pending(asked):
        if asked["event"] == "UserPromptSubmit":
            asked_about.set()
            release.wait(PATIENCE)
        return {"outcome": "pass"}

    hookgate, model, policy = setup(pending, HELLO, timeoutMs=30000)
    try:
        with pytest.raises(anthropic.APITimeoutError):
            ask(hookgate.client().with_options(timeout=1), True, [{"role": "user", "content": "Hi."}])
        assert asked_about.is_set()
        records = eventually(
            lambda: [each for each in hookgate.audit() if each["outcome"] == "cancelled"], "a cancelled prompt"
        )
        assert [record["event"] for record in records] == ["UserPromptSubmit"]
    finally:
        release.set()
    assert model.requests == []
