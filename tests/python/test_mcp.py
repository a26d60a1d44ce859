"""hookgate's MCP server with the official MCP SDK, which speaks the newest revision and those with a handshake."""

import asyncio
import json
import threading

import httpx2
import pytest
from gateway import PATIENCE
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from servers import Message
from test_sdk import ask

#: As agent programs call it that put the server's name in front.
TOOL = "mcp__hookgate__request_tmp_hook"


@pytest.fixture(params=["auto", "legacy"])
def connect(request):
    """connect(hookgate, use, **headers): what `use(client)` gives, in a connection of its own."""

    def run(hookgate, use, **headers):
        async def main():
            verify = {"verify": hookgate.context} if hookgate.context else {}
            async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENCE, **verify) as http:
                transport = streamable_http_client(hookgate.origin + "/hookgate/mcp", http_client=http)
                async with Client(transport, mode=request.param) as client:
                    return await use(client)

        return asyncio.run(asyncio.wait_for(main(), PATIENCE))

    return run


SESSION = {"x-hookgate-session": "sdk"}


def passes(asked):
    return {"outcome": "pass"}


def inbox(hookgate) -> list[dict]:
    return json.loads(hookgate.get("/hookgate/v1/sessions/sdk/inbox"))["items"]


def test_a_callback_is_requested_and_awaited(setup, connect):
    hookgate, model, policy = setup(passes)
    progress = []

    async def use(client):
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == ["request_tmp_hook", "await_tmp_hook"]
        requested = await client.call_tool("request_tmp_hook", {"purpose": "the build"})
        hook = requested.structured_content
        assert not requested.is_error and hook["session_id"] == "sdk"

        async def told(done, total, message):
            # Only now is it certain that the call waits.
            if not progress:
                worker = threading.Thread(target=hookgate.call_back, args=(hook["url"], b"all green"))
                worker.start()
            progress.append((done, total, message))

        result = await client.call_tool("await_tmp_hook", {"url": hook["url"]}, progress_callback=told)
        assert not result.is_error
        assert "Purpose: the build" in result.content[0].text and result.content[0].text.endswith("all green")
        return hook

    hook = connect(hookgate, use, **SESSION)
    assert progress and progress[0][1] > progress[0][0] and "waiting" in progress[0][2]
    assert [(item["state"], item["purpose"]) for item in inbox(hookgate)] == [("taken", "the build")]
    assert hook["token"] not in hookgate.output()


def test_what_goes_wrong_is_an_error_of_the_tool(setup, connect):
    hookgate, model, policy = setup(passes)

    async def nobody(client):
        result = await client.call_tool("request_tmp_hook", {})
        assert result.is_error and "x-hookgate-session" in result.content[0].text

    async def wrong(client):
        for tool, arguments, why in [
            ("await_tmp_hook", {}, "call request_tmp_hook first"),
            ("await_tmp_hook", {"url": "https://agents.example/nothing"}, "exactly as request_tmp_hook returned it"),
            ("request_tmp_hook", {"ttl_seconds": 1.5}, "a whole number"),
        ]:
            result = await client.call_tool(tool, arguments)
            assert result.is_error and why in result.content[0].text, result

    connect(hookgate, nobody)
    connect(hookgate, wrong, **SESSION)


def test_a_client_that_gives_up_loses_nothing(setup, connect):
    hookgate, model, policy = setup(passes)

    async def use(client):
        hook = (await client.call_tool("request_tmp_hook", {})).structured_content
        with pytest.raises(Exception, match="(?i)time"):
            await client.call_tool("await_tmp_hook", {"url": hook["url"]}, read_timeout_seconds=0.5)
        # It goes on in the same connection, as an agent does.
        assert await asyncio.to_thread(hookgate.call_back, hook["url"], b"late") == 200
        while [item["state"] for item in inbox(hookgate)] != ["waiting"]:
            await asyncio.sleep(0.02)
        result = await client.call_tool("await_tmp_hook", {"url": hook["url"]})
        assert result.content[0].text.endswith("late")

    connect(hookgate, use, **SESSION)


@pytest.mark.parametrize("meta", [{"claudecode/toolUseId": "toolu_1"}, None], ids=["by its id", "by its arguments"])
def test_the_session_is_that_of_the_call_that_the_model_made(setup, connect, meta):
    hookgate, model, policy = setup(
        passes,
        Message("msg_1", ("toolu_1", TOOL, '{"ttl_seconds": 600, "purpose":  "the build"}')),
        Message("msg_2", "It is built."),
        callbacks=0,
    )
    tools = [{"name": TOOL, "input_schema": {"type": "object"}}]
    messages = [{"role": "user", "content": "Build it."}]
    answer = ask(hookgate.client(), True, messages, tools=tools)
    (call,) = answer.content
    assert [tool["name"] for tool in model.json(0)["tools"]] == [TOOL]

    async def use(client):
        return await client.call_tool("request_tmp_hook", call.input, meta=meta)

    requested = connect(hookgate, use)
    assert requested.structured_content["session_id"] == "sdk", requested
    assert hookgate.call_back(requested.structured_content["url"], b"all green") == 200
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": requested.content[0].text}]
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    ask(hookgate.client(), True, messages, tools=tools)
    result, message = model.json(1)["messages"][-1]["content"]
    assert result["type"] == "tool_result" and message["text"].endswith("all green")
