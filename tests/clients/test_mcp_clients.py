"""hookgate's MCP server with real clients: Claude Code, whose model is scripted, and the MCP inspector."""

import json
import re
import threading

import inspector_cli
import pytest
from conversation import blocks, decide, plays, results
from inspector_cli import Inspector
from scripts import says
from servers import Message

REQUEST, AWAIT = "mcp__hookgate__request_tmp_hook", "mcp__hookgate__await_tmp_hook"


def configured(test) -> tuple[str, ...]:
    """The arguments by which Claude Code knows the server. It has no header: its calls say whose they are."""
    server = {"type": "http", "url": test.tap.url.removesuffix("/anthropic") + "/hookgate/mcp"}
    return "--mcp-config", json.dumps({"mcpServers": {"hookgate": server}}), "--strict-mcp-config"


def url_in(body: bytes, call: str) -> str:
    """The URL that the model reads in the result of a call."""
    return re.search(r"https://agents[.]example[\w/-]+", json.dumps(results(json.loads(body))[call]))[0]


def inbox(test, session: str) -> list[dict]:
    return json.loads(test.hookgate.get(f"/hookgate/v1/sessions/{session}/inbox"))["items"]


def test_claude_code_awaits_a_callback(each_setup):
    def awaits(headers, body):
        url = url_in(body, "toolu_1")
        # While Claude Code waits, most likely; what comes before is waited for no less.
        threading.Timer(1, test.hookgate.call_back, (url, b"all green")).start()
        return says(Message("msg_2", ("toolu_2", AWAIT, json.dumps({"url": url}))))(headers, body)

    test = each_setup(
        decide,
        plays(
            Message("msg_1", "I hand it over.", ("toolu_1", REQUEST, '{ "purpose":  "the build", "ttl_seconds": 600 }')),
            awaits,
            Message("msg_3", "It is built."),
        ),
        callbacks=0,
    )
    run = test.claude.ask("Build it.", *configured(test), tools=f"{REQUEST},{AWAIT}")
    assert run.code == 0 and run.text == "It is built.", run.err
    body = json.loads(test.got()[2])
    told = results(body)
    assert not any(result.get("is_error") for result in told.values()), told
    assert "Purpose: the build" in json.dumps(told["toolu_2"]) and "all green" in json.dumps(told["toolu_2"])
    (message,) = inbox(test, run.result["session_id"])
    assert message["state"] == "taken"
    # That is how the session was told from others: by the ids that the model gave the calls.
    asked = [json.loads(sent.body) for sent in test.tap.requests if sent.path == "/hookgate/mcp"]
    calls = [message["params"]["_meta"] for message in asked if message["method"] == "tools/call"]
    assert [meta["claudecode/toolUseId"] for meta in calls] == ["toolu_1", "toolu_2"]
    # The tool is there once: the client's.
    names = [tool["name"] for tool in body["tools"] if "request_tmp_hook" in tool["name"]]
    assert names == [REQUEST]
    assert not any("[hookgate]" in block["text"] for block in blocks(body, "text"))


def test_a_callback_that_claude_code_asked_for_wakes_the_session(setup):
    test = setup(
        decide,
        plays(
            Message("msg_1", ("toolu_1", REQUEST, '{"purpose": "the build"}')),
            Message("msg_2", "I wait."),
            Message("msg_3", "It is built."),
        ),
        callbacks=0,
    )
    run = test.claude.ask("Build it.", *configured(test), tools=REQUEST)
    assert run.code == 0 and run.text == "I wait.", run.err
    assert test.hookgate.call_back(url_in(test.got()[1], "toolu_1"), b"all green") == 200
    run = test.claude.ask("And now?", "--continue", *configured(test), tools=REQUEST)
    assert run.code == 0 and run.text == "It is built.", run.err
    assert "all green" in json.dumps(json.loads(test.got()[2])["messages"][-1])
    (message,) = inbox(test, run.result["session_id"])
    assert message["state"] == "injected"


inspected = pytest.mark.skipif(inspector_cli.is_missing() is not None, reason=str(inspector_cli.is_missing()))


@inspected
def test_the_inspector_requests_and_awaits(each_setup, tmp_path, authority):
    test = each_setup(decide, plays(), tapped=False)
    tls = test.hookgate.context is not None
    url = test.hookgate.origin + "/hookgate/mcp"
    inspector = Inspector(url, tmp_path, authority.ca_file if tls else None, x_hookgate_session="inspected")
    tools = inspector.run("tools/list")["tools"]
    assert [tool["name"] for tool in tools] == ["request_tmp_hook", "await_tmp_hook"]

    hook = inspector.run("tools/call", "--tool-name", "request_tmp_hook", "--tool-arg", "purpose=the build")
    hook = hook["structuredContent"]
    assert hook["session_id"] == "inspected" and hook["expires_in_seconds"] == 1800
    waiting = inspector.start("tools/call", "--tool-name", "await_tmp_hook", "--tool-arg", f"url={hook['url']}")
    assert test.hookgate.call_back(hook["url"], b"all green") == 200
    result = inspector.end(waiting)
    assert result["isError"] is False and result["content"][0]["text"].endswith("all green")
    assert [item["state"] for item in inbox(test, "inspected")] == ["taken"]


@inspected
def test_the_inspector_is_told_what_to_do_without_a_session(setup, tmp_path):
    test = setup(decide, plays(), tapped=False)
    inspector = Inspector(test.hookgate.origin + "/hookgate/mcp", tmp_path)
    result = inspector.run("tools/call", "--tool-name", "request_tmp_hook")
    assert result["isError"] is True and "x-hookgate-session" in result["content"][0]["text"]
