"""The official Anthropic SDK through hookgate: what it sees, and what the model gets."""

import http.client
import json

import anthropic
import pytest
import servers
import trustme
from gateway import Hookgate, hook
from servers import Message

TOOLS = [
    {"name": name, "description": name, "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
    for name in ("read", "write", "remove")
]


def decide(asked: dict) -> dict:
    """One tool allowed, one rewritten, one denied; one prompt refused."""
    tool = asked["detail"].get("toolName")
    if asked["event"] == "PreToolUse" and tool == "write":
        return {"outcome": "modify", "replacement": {"path": "workspace/b.txt"}}
    if asked["event"] == "PreToolUse" and tool == "remove":
        return {"outcome": "deny", "reason": "use the trash instead"}
    if asked["event"] == "UserPromptSubmit" and "password" in asked["detail"]["prompt"]:
        return {"outcome": "deny", "reason": "no passwords, please"}
    return {"outcome": "pass"}


def ask(client: anthropic.Anthropic, streamed: bool, messages: list, **fields):
    fields = {"model": "claude-test", "max_tokens": 1024, "messages": messages, **fields}
    if not streamed:
        return client.messages.create(**fields)
    with client.messages.stream(**fields) as stream:
        return stream.get_final_message()


def run_loop(client: anthropic.Anthropic, streamed: bool, prompt: str):
    """The loop that every tutorial has. Gives the last message and the calls that were run."""
    messages = [{"role": "user", "content": prompt}]
    ran = []
    for _ in range(8):
        message = ask(client, streamed, messages, tools=TOOLS)
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return message, ran
        ran += [(call.name, call.input) for call in calls]
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": f"ran {call.name}"} for call in calls]
        messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    raise AssertionError("the loop does not end")


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_a_loop_with_one_call_allowed_one_rewritten_one_denied(setup, streamed):
    hookgate, model, policy = setup(
        decide,
        Message(
            "msg_1",
            "On it.",
            ("toolu_1", "read", '{"path": "a.txt"}'),
            ("toolu_2", "remove", '{"path":  "a.txt", "n": 1.0}'),
            ("toolu_3", "write", '{"path": "/etc/b.txt"}'),
        ),
        Message("msg_2", "Done."),
    )
    sent: list[bytes] = []
    message, ran = run_loop(hookgate.client(sent), streamed, "Tidy up.")
    assert ran == [("read", {"path": "a.txt"}), ("write", {"path": "workspace/b.txt"})]
    assert message.content[0].text == "Done." and message.stop_reason == "end_turn"

    # The first request is untouched.
    assert model.requests[0][2] == sent[0]
    # In the second one the denied call stands where the model put it, with the text that the model wrote.
    body = model.requests[1][2]
    before = sent[1].index(b'"role":"assistant"')
    assert body[:before] == sent[1][:before]
    assert b'{"path":  "a.txt", "n": 1.0}' in body
    _, answer, results = json.loads(body)["messages"]
    assert [block.get("id") for block in answer["content"]] == [None, "toolu_1", "toolu_2", "toolu_3"]
    assert answer["content"][3]["input"] == {"path": "workspace/b.txt"}
    by_id = {block["tool_use_id"]: block for block in results["content"] if block["type"] == "tool_result"}
    assert by_id["toolu_1"]["content"] == "ran read" and by_id["toolu_3"]["content"] == "ran write"
    assert by_id["toolu_2"]["is_error"] is True and "use the trash instead" in json.dumps(by_id["toolu_2"]["content"])

    outcomes = {(record["event"], record["toolName"]): record["outcome"] for record in hookgate.audit()}
    assert outcomes["PreToolUse", "read"] == "pass"
    assert outcomes["PreToolUse", "write"] == "modify"
    assert outcomes["PreToolUse", "remove"] == "deny"


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_a_call_denied_alone_is_answered_within_the_same_message(setup, streamed):
    hookgate, model, policy = setup(
        decide,
        Message("msg_1", "Removing.", ("toolu_1", "remove", '{"path": "a.txt"}'), usage=(10, 5)),
        Message("msg_2", "I used the trash.", usage=(30, 7)),
    )
    message, ran = run_loop(hookgate.client(), streamed, "Remove it.")
    assert ran == [] and message.id == "msg_1"
    assert [block.text for block in message.content] == ["Removing.", "I used the trash."]
    assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("end_turn", 30, 12)
    _, answer, results = model.json(1)["messages"]
    assert answer["content"][1]["id"] == results["content"][0]["tool_use_id"] == "toolu_1"


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_a_denied_prompt_never_reaches_the_model(setup, streamed):
    hookgate, model, policy = setup(decide, Message("msg_1", "Hello."))
    client = hookgate.client()
    messages = [{"role": "user", "content": "my password is hunter2"}]
    refusal = ask(client, streamed, messages)
    assert "no passwords, please" in refusal.content[0].text
    assert refusal.stop_reason == "end_turn" and refusal.usage.output_tokens == 0
    assert model.requests == []

    messages += [{"role": "assistant", "content": refusal.content}, {"role": "user", "content": "Hi."}]
    assert ask(client, streamed, messages).content[0].text == "Hello."
    assert b"hunter2" not in model.requests[0][2] and b"no passwords" not in model.requests[0][2]
    texts = [message["content"] for message in model.json(0)["messages"]]
    assert len(texts) == 1 and "Hi." in json.dumps(texts[0])


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_what_passes_keeps_its_bytes(setup, streamed):
    script = Message("msg_1", "Fine.", ("toolu_1", "read", '{ "n" : 123456789012345678901234567890 }'))
    hookgate, model, policy = setup(decide, script)
    body = (
        b'{ "tools":[{"input_schema":{"required":["x"],"type":"object"},"name":"read"}],\n  "future_option":{},'
        b'"messages":[{"content":"a\\ud800b", "role":"user"}],"max_tokens":1e2, "model":"m","stream":%s}'
    ) % (b"true" if streamed else b"false")
    kind = http.client.HTTPConnection if hookgate.context is None else http.client.HTTPSConnection
    tls = {"context": hookgate.context} if hookgate.context else {}
    connection = kind("localhost", hookgate.port, timeout=30, **tls)
    headers = {"content-type": "application/json", "anthropic-beta": "a-1,b-2", "x-api-key": "sk-test"}
    connection.request("POST", "/anthropic/v1/messages?beta=true", body, headers)
    answer = connection.getresponse().read()
    connection.close()
    assert answer == (b"".join(script.events()) if streamed else script.whole())
    path, received, got = model.requests[0]
    assert got == body and path == "/v1/messages?beta=true"
    assert received["anthropic-beta"] == "a-1,b-2" and received["x-api-key"] == "sk-test"


def test_the_tool_runner_keeps_its_history_on_the_server(setup):
    hookgate, model, policy = setup(
        decide,
        Message("msg_1", ("toolu_1", "read", '{"path": "a.txt"}'), ("toolu_2", "remove", '{"path": "a.txt"}')),
        Message("msg_2", ("toolu_3", "remove", '{"path": "b.txt"}')),
        Message("msg_3", "Given up."),
    )
    ran = []

    @anthropic.beta_tool
    def read(path: str) -> str:
        """Reads a file."""
        ran.append(("read", path))
        return "text"

    @anthropic.beta_tool
    def remove(path: str) -> str:
        """Removes a file."""
        ran.append(("remove", path))
        return "gone"

    runner = hookgate.client().beta.messages.tool_runner(
        model="claude-test", max_tokens=1024, tools=[read, remove], messages=[{"role": "user", "content": "Tidy up."}]
    )
    assert runner.until_done().content[-1].text == "Given up."
    assert ran == [("read", "a.txt")]

    first, second, third = (model.json(number) for number in range(3))
    assert first["thread"] == {"type": "create"}
    # The provider holds the denied call already: only its result is missing.
    assert second["thread"] == {"type": "continue", "previous_message_id": "msg_1"}
    results = {block["tool_use_id"]: block for block in second["messages"][-1]["content"]}
    assert set(results) == {"toolu_1", "toolu_2"} and results["toolu_2"]["is_error"] is True
    # hookgate's own continuation goes on from the real last message.
    assert third["thread"] == {"type": "continue", "previous_message_id": "msg_2"}
    assert third["messages"][-1]["content"][0]["tool_use_id"] == "toolu_3"


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_a_policy_that_cannot_be_asked_refuses(setup, streamed):
    hookgate, model, policy = setup(decide, Message("msg_1", "Hello."))
    policy.close()
    refusal = ask(hookgate.client(), streamed, [{"role": "user", "content": "Hi."}])
    assert "policy-UserPromptSubmit" in refusal.content[0].text
    assert model.requests == []


def test_a_certificate_of_another_authority_is_refused(tmp_path, opened, authority):
    model = opened(servers.model(Message("msg_1", "Hello."), tls=authority.server))
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    policy = opened(servers.policy(decide))
    hooks = {"PreToolUse": [hook("policy", policy.url.replace("localhost", "127.0.0.1"))]}
    hookgate = opened(Hookgate(tmp_path, model.url, hooks, authority, other))
    with pytest.raises(anthropic.InternalServerError) as failure:
        ask(hookgate.client(), False, [{"role": "user", "content": "Hi."}])
    assert failure.value.status_code == 502 and failure.value.body["type"] == "error"
    assert model.requests == []
