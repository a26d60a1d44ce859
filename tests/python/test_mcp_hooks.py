"""Hooks about an MCP server's tools, seen by the official MCP SDK, which is given hookgate's address and knows nothing more."""

import asyncio
import json
import time

import httpx2
import pytest
import servers
from gateway import PATIENCE, hook
from mcp.shared.exceptions import MCPError
from mcp_agent import Agent
from mcp_gateway import SERVER, McpGateway, McpServer
from test_mcp_transparency import LEGACY, MODERN, MODERN_HEADERS, MODERN_META, each_face, each_mode

EVENTS = ("SessionStart", "PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionEnd")
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


class Guarded:
    """The server behind hookgate, and the policy that it asks."""

    def __init__(self, server: McpServer, gateway: McpGateway, policy: servers.Server):
        self.server, self.gateway, self.policy = server, gateway, policy

    def run(self, mode: str, use, face: str = "mcp", agent: Agent | None = None):
        url = f"{self.gateway.url[: -len('mcp')]}{face}"
        return (agent or Agent(url, mode, self.gateway.context)).run(use)

    def told(self, event: str) -> list[dict]:
        """What the policy was asked or told of an event so far."""
        envelopes = [json.loads(body) for _, _, body in self.policy.requests]
        return [envelope for envelope in envelopes if envelope["event"] == event]

    def soon(self, event: str, number: int = 1) -> list[dict]:
        """The same, as soon as there are so many. Observers are told in the background."""
        deadline = time.monotonic() + PATIENCE
        while len(told := self.told(event)) < number:
            assert time.monotonic() < deadline, f"{len(told)} of {number} {event}"
            time.sleep(0.02)
        assert len(told) == number
        return told

    def arrived(self) -> list[tuple[str, dict]]:
        return [(call["name"], call["arguments"]) for call in self.server.calls()]


@pytest.fixture
def guarded(tmp_path, opened):
    """guarded(decide) -> Guarded. The matcher is that of the events that are about tools."""

    def start(decide, matcher: list[str] | None = None) -> Guarded:
        policy = opened(servers.policy(decide))
        server = opened(McpServer())
        url = policy.url.replace("localhost", "127.0.0.1") + "/hooks"
        hooks = {event: [hook(f"policy-{event}", url)] for event in EVENTS}
        for event in ("PreToolUse", "PostToolUse", "PostToolUseFailure"):
            hooks[event][0] |= {"matcher": matcher} if matcher else {}
        return Guarded(server, opened(McpGateway(tmp_path, server, hooks)), policy)

    return start


def passes(asked):
    return {"outcome": "pass"}


def denies(asked):
    if asked["event"] == "PreToolUse" and asked["detail"]["input"].get("text") == "secret":
        return {"outcome": "deny", "reason": "This is not for tools."}
    return {"outcome": "pass"}


@each_face
def test_a_denied_call_is_a_failed_result_and_never_arrives(guarded, mode, face):
    test = guarded(denies)

    async def use(client):
        denied = await client.call_tool("echo", {"text": "secret"})
        return denied, await client.call_tool("echo", {"text": "open"})

    denied, passed = test.run(mode, use, face)
    assert denied.is_error and "This is not for tools." in denied.content[0].text
    assert not passed.is_error and passed.structured_content == {"text": "open"}
    assert test.arrived() == [("echo", {"text": "open"})]
    first, second = test.told("PreToolUse")
    assert first["detail"]["toolName"] == "echo" and first["detail"]["input"] == {"text": "secret"}
    assert first["plane"] == "tool" and first["route"] == face and first["sessionId"] == second["sessionId"]
    assert first["toolCallId"] != second["toolCallId"]
    (told,) = test.soon("PostToolUse")
    assert told["toolCallId"] == second["toolCallId"] and told["detail"]["result"]["structuredContent"] == {"text": "open"}
    assert test.told("PostToolUseFailure") == []


@each_face
def test_rewritten_arguments_reach_the_server(guarded, mode, face):
    def decide(asked):
        if asked["event"] != "PreToolUse":
            return {"outcome": "pass"}
        input = asked["detail"]["input"]
        key = "text" if "text" in input else "region"
        return {"outcome": "modify", "replacement": {**input, key: "käse"}}

    test = guarded(decide)

    async def use(client):
        # Its argument is in a header too, which the server compares in the newest revision.
        await client.list_tools()
        region = await client.call_tool("test_header_argument", {"region": "north", "count": 2})
        return region, await client.call_tool("echo", {"text": "one", "times": 2})

    region, echo = test.run(mode, use, face)
    assert region.content[0].text == "käse" and not echo.is_error
    assert echo.structured_content == {"text": "käse", "times": 2}
    assert test.arrived() == [("test_header_argument", {"region": "käse", "count": 2}), ("echo", {"text": "käse", "times": 2})]
    assert [told["detail"]["input"] for told in test.soon("PostToolUse", 2)] == [arguments for _, arguments in test.arrived()]


@each_mode
def test_a_replacement_that_does_not_fit_the_tool_is_a_refusal(guarded, mode):
    def decide(asked):
        if asked["event"] != "PreToolUse":
            return {"outcome": "pass"}
        return {"outcome": "modify", "replacement": {"text": 7}}

    test = guarded(decide)

    async def use(client):
        return await client.call_tool("echo", {"text": "one"})

    assert test.run(mode, use).is_error
    assert test.arrived() == []


@each_face
def test_what_came_of_calls_is_told(guarded, mode, face):
    test = guarded(passes)

    async def use(client):
        await client.call_tool("test_simple_text")
        failed = await client.call_tool("test_error_handling")
        with pytest.raises(Exception, match="no_such_tool"):
            await client.call_tool("no_such_tool", {})
        return failed

    assert test.run(mode, use, face).is_error
    (done,) = test.soon("PostToolUse")
    assert done["detail"]["toolName"] == "test_simple_text"
    assert done["detail"]["result"]["content"][0]["text"].startswith("This is a simple text")
    failures = {told["detail"]["toolName"]: told["detail"]["error"] for told in test.soon("PostToolUseFailure", 2)}
    assert "intentionally" in json.dumps(failures["test_error_handling"])
    assert "no_such_tool" in json.dumps(failures["no_such_tool"])


def test_a_result_on_a_stream_that_was_taken_up_again_is_told(guarded):
    test = guarded(passes)

    async def use(client):
        return await client.call_tool("test_reconnection")

    assert test.run(LEGACY, use).content[0].text == "Reconnection test completed"
    (told,) = test.soon("PostToolUse")
    assert told["detail"]["result"]["content"][0]["text"] == "Reconnection test completed"
    assert told["toolCallId"] == test.told("PreToolUse")[0]["toolCallId"]


@each_mode
def test_progress_passes(guarded, mode):
    test = guarded(passes)
    told = []

    async def use(client):
        async def progress(done, total, message):
            told.append(done)

        return await client.call_tool("test_tool_with_progress", progress_callback=progress)

    assert test.run(mode, use).content[0].text == "Progress test completed"
    assert told == [0, 50, 100]
    (done,) = test.soon("PostToolUse")
    assert "progress" not in done["detail"]["result"]


def test_what_a_server_asks_meanwhile_reaches_the_client(guarded):
    """It is not held: without an answer to it there would be no result."""
    test = guarded(passes)
    agent = Agent(test.gateway.url, LEGACY)

    async def use(client):
        await client.call_tool("test_elicitation", {"message": "Who are you?"})
        return await client.call_tool("test_sampling", {"prompt": "Say something."})

    test.run(LEGACY, use, agent=agent)
    assert [who for who, _ in agent.asked] == ["user", "model"]
    assert len(test.soon("PostToolUse", 2)) == 2


def test_the_rounds_of_a_call_are_one_call(guarded):
    def decide(asked):
        if asked["event"] == "PreToolUse" and asked["detail"]["toolName"] == "test_input_required_result_multi_round":
            return {"outcome": "modify", "replacement": {"seen": True}}
        return {"outcome": "pass"}

    test = guarded(decide)
    agent = Agent(test.gateway.url, MODERN)

    async def use(client):
        return await client.call_tool("test_input_required_result_multi_round")

    assert not test.run(MODERN, use, agent=agent).is_error
    assert len(agent.asked) == 2
    # Decided once, and the same in each of its rounds.
    assert len(test.told("PreToolUse")) == 1
    assert test.arrived() == [("test_input_required_result_multi_round", {"seen": True})] * 3
    (told,) = test.soon("PostToolUse")
    assert "green" in json.dumps(told["detail"]["result"])


def test_the_result_of_a_task_is_told_when_it_is_there(guarded):
    test = guarded(passes)
    meta = {**MODERN_META, "io.modelcontextprotocol/clientCapabilities": TASKS}

    async def main():
        async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE) as http:

            async def request(method: str, about: str, /, **params) -> dict:
                message = {"jsonrpc": "2.0", "id": method, "method": method, "params": {**params, "_meta": meta}}
                headers = {**MODERN_HEADERS, "mcp-method": method, "mcp-name": about}
                answer = await http.post(f"{test.gateway.url[: -len('mcp')]}json", json=message, headers=headers)
                return answer.json()["result"]

            task = await request("tools/call", "slow_compute", name="slow_compute", arguments={"seconds": 0.5})
            assert task["resultType"] == "task" and test.told("PostToolUse") == []
            while (state := await request("tasks/get", task["taskId"], taskId=task["taskId"]))["status"] == "working":
                await asyncio.sleep(0.05)
            # Who asks again tells nothing new.
            await request("tasks/get", task["taskId"], taskId=task["taskId"])
            return state

    state = asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert state["status"] == "completed"
    (told,) = test.soon("PostToolUse")
    assert told["detail"]["result"] == state["result"]
    assert told["toolCallId"] == test.told("PreToolUse")[0]["toolCallId"]


@each_mode
def test_context_stands_beside_the_result(guarded, mode):
    def decide(asked):
        return {"outcome": "pass", **({"additionalContext": "Be brief."} if asked["event"] == "PreToolUse" else {})}

    test = guarded(decide)

    async def use(client):
        return await client.call_tool("greet", {"name": "Ada"})

    first, *more = test.run(mode, use).content
    assert first.text == "Hello, Ada!" and any("Be brief." in block.text for block in more)


@each_mode
def test_a_matcher_names_a_tool_of_the_server(guarded, mode):
    test = guarded(denies, matcher=[f"mcp__{SERVER}__echo"])

    async def use(client):
        await client.call_tool("greet", {"name": "Ada"})
        return await client.call_tool("echo", {"text": "secret"})

    assert test.run(mode, use).is_error
    assert [asked["detail"]["toolName"] for asked in test.told("PreToolUse")] == ["echo"]


@each_mode
def test_without_a_policy_service_nothing_runs(guarded, mode):
    test = guarded(passes)
    test.policy.close()

    async def use(client):
        await client.list_tools()
        return await client.call_tool("greet", {"name": "Ada"})

    assert test.run(mode, use).is_error
    assert test.arrived() == []


def test_a_session_begins_and_ends(guarded):
    test = guarded(passes)

    async def use(client):
        return await client.call_tool("greet", {"name": "Ada"})

    test.run(LEGACY, use)
    (begun,), (ended,) = test.soon("SessionStart"), test.soon("SessionEnd")
    assert begun["sessionId"] == ended["sessionId"] == test.told("PreToolUse")[0]["sessionId"]


@each_face
def test_a_tool_that_is_denied_for_good_is_not_there(tmp_path, opened, mode, face):
    """Not even a handler that lets it pass brings it back."""
    server = opened(McpServer())
    policy = opened(servers.policy(passes))
    hooks = {"PreToolUse": [hook("policy", policy.url.replace("localhost", "127.0.0.1") + "/hooks")]}
    config = f"""
            [tools]
            deny = ["mcp__{SERVER}__echo"]
    """
    gateway = opened(McpGateway(tmp_path, server, hooks, config=config))

    async def use(client):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        said = []
        for name in ("echo", "no_such_tool"):
            with pytest.raises(MCPError) as refused:
                await client.call_tool(name, {"text": "x"})
            said.append((refused.value.error.code, str(refused.value).replace(name, "TOOL")))
        return tools, said

    tools, (denied, unknown) = Agent(f"{gateway.url[: -len('mcp')]}{face}", mode).run(use)
    assert "echo" not in tools and "greet" in tools
    assert denied[0] == unknown[0]
    assert [call["name"] for call in server.calls()] == ["no_such_tool"]
