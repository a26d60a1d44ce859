"""One-time callbacks with the official Anthropic SDK: the model asks for one, and the agent's program knows nothing of it."""

import json
import threading
import time

import pytest
from gateway import PATIENCE
from servers import Message
from test_sdk import TOOLS, ask

ASKS = ("toolu_cb", "request_tmp_hook", '{"purpose": "the build", "ttl_seconds": 600}')


def decide(asked: dict) -> dict:
    """What a worker sends is judged like a prompt."""
    if asked["detail"].get("source") == "callback" and "sk-live" in asked["detail"]["prompt"]:
        return {"outcome": "deny", "reason": "there is a key in it"}
    return {"outcome": "pass"}


def wait_for(check):
    deadline = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def given(body: dict) -> dict:
    """What the model was told about its callback."""
    results = [part for part in body["messages"][-1]["content"] if part.get("tool_use_id") == "toolu_cb"]
    return json.loads(results[0]["content"])


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_the_model_asks_and_the_result_comes_with_the_next_request(setup, streamed):
    hookgate, model, policy = setup(
        decide,
        Message("msg_1", "I hand it over.", ASKS),
        Message("msg_2", "I wait.", ("toolu_1", "read", '{"path": "a.txt"}')),
        Message("msg_3", "It is built."),
        Message("msg_4", "You are welcome."),
        callbacks=0,
    )
    client = hookgate.client()
    messages = [{"role": "user", "content": "Build it."}]
    first = ask(client, streamed, messages, tools=TOOLS)
    # The client has one message, and only its own tool was called in it.
    assert first.id == "msg_1" and first.stop_reason == "tool_use"
    assert [block.type for block in first.content] == ["text", "text", "tool_use"]
    assert "tmp_hook" not in first.model_dump_json()
    assert [tool["name"] for tool in model.json(0)["tools"]] == ["read", "write", "remove", "request_tmp_hook"]

    hook = given(model.json(1))
    assert hook["session_id"] == "sdk" and hook["expires_in_seconds"] == 600
    assert hookgate.call_back(hook["url"], b'{"tests": 42}') == 200
    assert hookgate.call_back(hook["url"], b"again") == 410

    results = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ran read"}]
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
    second = ask(client, streamed, messages, tools=TOOLS)
    assert second.content[0].text == "It is built."
    result, message = model.json(2)["messages"][-1]["content"]
    assert result["tool_use_id"] == "toolu_1" and message["type"] == "text"
    assert message["text"].startswith("[hookgate] One-time callback received at ")
    assert "Purpose: the build" in message["text"] and message["text"].endswith('{\n  "tests": 42\n}')

    messages += [{"role": "assistant", "content": second.content}, {"role": "user", "content": "Thanks."}]
    assert ask(client, streamed, messages, tools=TOOLS).content[0].text == "You are welcome."
    before = model.json(2)["messages"]
    assert model.json(3)["messages"][: len(before)] == before
    assert hook["token"] not in hookgate.output()


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_a_held_turn_goes_on_in_the_same_answer(setup, streamed):
    hookgate, model, policy = setup(
        decide, Message("msg_1", "I hand it over.", ASKS), Message("msg_2", "I wait."), Message("msg_3", "It is built."), callbacks=PATIENCE
    )
    answers = []
    prompt = [{"role": "user", "content": "Build it."}]
    asking = threading.Thread(target=lambda: answers.append(ask(hookgate.client(), streamed, prompt)))
    asking.start()
    wait_for(lambda: len(model.requests) == 2)
    assert hookgate.call_back(given(model.json(1))["url"], b"all green") == 200
    asking.join(PATIENCE)
    (answer,) = answers
    assert [block.text for block in answer.content] == ["I hand it over.", "I wait.", "It is built."]
    assert answer.id == "msg_1" and answer.stop_reason == "end_turn"
    last = model.json(2)["messages"][-1]
    assert last["role"] == "user" and last["content"][0]["text"].endswith("all green")


def test_what_a_worker_sends_is_judged(setup):
    hookgate, model, policy = setup(
        decide, Message("msg_1", ASKS), Message("msg_2", "I wait."), Message("msg_3", "I see."), callbacks=0
    )
    client = hookgate.client()
    messages = [{"role": "user", "content": "Build it."}]
    answer = ask(client, False, messages)
    assert hookgate.call_back(given(model.json(1))["url"], b"sk-live-123") == 200
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": "And?"}]
    ask(client, False, messages)
    body = model.requests[2][2]
    assert b"sk-live-123" not in body and b"there is a key in it" in body
