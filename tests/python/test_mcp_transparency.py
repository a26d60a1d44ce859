"""The official MCP SDK has the same conversation with a server through hookgate as directly, with and without hooks."""

import asyncio
import collections
import json
import time

import httpx2
import pytest
import servers
from gateway import PATIENCE, hook
from mcp.shared.exceptions import MCPError
from mcp_agent import Agent
from mcp_gateway import McpGateway, McpServer

LEGACY, MODERN = "legacy", "2026-07-28"
EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")


class Both:
    """The same server twice: directly, and behind hookgate."""

    def __init__(self, server: McpServer, gateway: McpGateway):
        self.server, self.gateway = server, gateway

    def agents(self, mode: str, face: str) -> list[Agent]:
        ways = [(f"{self.server.origin}/{face}", None), (f"{self.gateway.url[: -len('mcp')]}{face}", self.gateway.context)]
        return [Agent(url, mode, context) for url, context in ways]

    def same(self, mode: str, use, face: str = "mcp") -> tuple[object, Agent]:
        """What `use(client, agent)` gives both ways, and what the client heard meanwhile."""
        seen = []
        agents = self.agents(mode, face)
        for agent in agents:
            before = len(self.server.calls())
            gave = agent.run(lambda client: use(client, agent))
            calls = [(call["name"], call["arguments"], call["state"]) for call in self.server.calls()[before:]]
            exchanged = collections.Counter(map(str, agent.exchanged))
            seen.append((gave, agent.asked, agent.logged, agent.announced, calls, exchanged))
        assert seen[1] == seen[0]
        return seen[0][0], agents[1]

    async def until(self, number: int, state: str) -> dict:
        """The call of that number (from 0), as soon as it is in that state."""
        deadline = time.monotonic() + PATIENCE
        while True:
            calls = await asyncio.to_thread(self.server.calls)
            if len(calls) > number and calls[number]["state"] == state:
                return calls[number]
            assert time.monotonic() < deadline, calls[number:]
            await asyncio.sleep(0.02)


@pytest.fixture(params=["plain", "hooked", "hooked-tls"])
def both(request, tmp_path, opened, authority) -> Both:
    server = opened(McpServer())
    hooks = {}
    if request.param != "plain":
        policy = opened(servers.policy(lambda asked: {"outcome": "pass"}))
        url = policy.url.replace("localhost", "127.0.0.1") + "/hooks"
        hooks = {event: [hook(f"policy-{event}", url)] for event in EVENTS}
    tls = authority if request.param == "hooked-tls" else None
    return Both(server, opened(McpGateway(tmp_path, server, hooks, tls)))


def plain(result) -> dict:
    return result.model_dump(mode="json", by_alias=True)


each_face = pytest.mark.parametrize("mode, face", [(LEGACY, "mcp"), (LEGACY, "json"), (MODERN, "mcp"), (MODERN, "json")])
each_mode = pytest.mark.parametrize("mode", [LEGACY, MODERN])


@each_face
def test_what_is_listed_and_read(both, mode, face):
    async def use(client, agent):
        return [
            plain(await client.list_tools()),
            plain(await client.list_prompts()),
            plain(await client.list_resources()),
            plain(await client.list_resource_templates()),
            plain(await client.read_resource("test://static-binary")),
            plain(await client.read_resource("test://template/42/data")),
            plain(await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})),
        ]

    (tools, *_, data, prompt), _ = both.same(mode, use, face)
    assert "json_schema_2020_12_tool" in [tool["name"] for tool in tools["tools"]]
    assert json.loads(data["contents"][0]["text"])["id"] == "42"
    assert prompt["messages"][0]["content"]["text"] == "Prompt with arguments: arg1='a', arg2='b'"


@each_face
def test_what_tools_answer(both, mode, face):
    async def use(client, agent):
        await client.list_tools()
        results = [plain(await client.call_tool(f"test_{what}")) for what in ("image_content", "multiple_content_types")]
        results.append(plain(await client.call_tool("echo", {"text": "ä \U0001f642 \"quoted\" \\ \u2028", "times": 3})))
        results.append(plain(await client.call_tool("test_header_argument", {"region": " Zürich "})))
        results.append(plain(await client.call_tool("test_error_handling")))
        with pytest.raises(MCPError) as refused:
            await client.call_tool("no_such_tool")
        return [*results, str(refused.value)]

    (*_, echo, region, failed, unknown), agent = both.same(mode, use, face)
    assert echo["structuredContent"] == {"text": "ä \U0001f642 \"quoted\" \\ \u2028", "times": 3}
    assert region["content"][0]["text"] == " Zürich "
    assert failed["isError"] is True and "no_such_tool" in unknown
    kinds = {dict(exchange[3:])["content-type"] for exchange in agent.exchanged if exchange[0] == "POST"}
    assert ("text/event-stream" if face == "mcp" else "application/json") in kinds


@each_mode
def test_progress_and_logs_come_one_by_one(both, mode):
    async def use(client, agent):
        told = []

        async def progress(done, total, message):
            told.append((done, total, message))

        result = await client.call_tool("test_tool_with_progress", progress_callback=progress)
        await client.call_tool("test_tool_with_logging")
        return told, plain(result)

    (told, _), agent = both.same(mode, use)
    assert told == [(0, 100, "started"), (50, 100, "half done"), (100, 100, "done")]
    assert len(agent.logged) == 3


def test_what_a_server_asks_on_a_stream(both):
    async def use(client, agent):
        return [
            plain(await client.call_tool("test_elicitation", {"message": "Who are you?"})),
            plain(await client.call_tool("test_elicitation_sep1330_enums")),
            plain(await client.call_tool("test_sampling", {"prompt": "Say something."})),
            plain(await client.call_tool("test_list_roots")),
        ]

    (elicited, declined, sampled, roots), agent = both.same(LEGACY, use)
    assert "ada@example.com" in elicited["content"][0]["text"] and "action=decline" in declined["content"][0]["text"]
    assert sampled["content"][0]["text"] == "LLM response: I heard: Say something."
    assert "file:///work" in roots["content"][0]["text"]
    assert [who for who, _ in agent.asked] == ["user", "user", "model", "roots"]


@pytest.mark.parametrize("face", ["mcp", "json"])
def test_what_a_server_asks_in_rounds(both, face):
    async def use(client, agent):
        names = ("elicitation", "sampling", "list_roots", "request_state", "multiple_inputs", "multi_round")
        results = [plain(await client.call_tool(f"test_input_required_result_{name}")) for name in names]
        return [*results, plain(await client.get_prompt("test_input_required_result_prompt"))]

    (elicited, *_, prompt), agent = both.same(MODERN, use, face)
    assert elicited["content"][0]["text"] == "Hello, Ada!" and "a test" in json.dumps(prompt)
    assert len(agent.asked) == 1 + 1 + 1 + 1 + 3 + 2 + 1


def test_a_stream_that_ends_early_is_taken_up_again(both):
    async def use(client, agent):
        return plain(await client.call_tool("test_reconnection"))

    result, agent = both.same(LEGACY, use)
    assert result["content"][0]["text"] == "Reconnection test completed"
    assert len(agent.resumed) == 1


def test_changes_are_announced_on_a_subscription(both):
    async def use(client, agent):
        async with client.listen(tools_list_changed=True) as subscription:
            await client.call_tool("test_trigger_prompt_change")
            await client.call_tool("test_trigger_tool_change")
            async for event in subscription:
                return type(event).__name__

    event, _ = both.same(MODERN, use)
    assert event == "ToolsListChanged"


def test_changes_are_announced_in_a_session(both):
    async def use(client, agent):
        await client.call_tool("test_trigger_tool_change")
        while not agent.announced:
            await asyncio.sleep(0.02)

    _, agent = both.same(LEGACY, use)
    assert agent.announced == ["notifications/tools/list_changed"]


@each_mode
def test_a_client_that_gives_a_call_up(both, mode):
    async def use(client, agent):
        number = len(both.server.calls())
        with pytest.raises(Exception, match="(?i)time"):
            await client.call_tool("wait", {"milliseconds": 20_000}, read_timeout_seconds=1)
        await both.until(number, "cancelled")
        return plain(await client.call_tool("greet", {"name": "Ada"}))

    result, _ = both.same(mode, use)
    assert result["content"][0]["text"] == "Hello, Ada!"


def calls(name: str, arguments: dict, meta: dict | None = None) -> dict:
    params = {"name": name, "arguments": arguments, **({"_meta": meta} if meta else {})}
    return {"jsonrpc": "2.0", "id": "a \"call\"", "method": "tools/call", "params": params}


HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
#: What a client of the newest revision says with each request.
MODERN_META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
MODERN_HEADERS = {**HEADERS, "mcp-protocol-version": MODERN, "mcp-method": "tools/call"}


@each_mode
def test_a_client_that_is_gone(both, mode):
    """In sessions that is no cancellation: the client may come again for its result."""

    async def goes(agent: Agent) -> str:
        number = len(both.server.calls())
        async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE, **agent.verify) as http:
            call = calls("wait", {"milliseconds": 1500}, MODERN_META if mode == MODERN else None)
            headers = {**MODERN_HEADERS, "mcp-name": "wait"}
            if mode == LEGACY:
                headers = {**HEADERS, **await initialized(http, agent.url)}
            sends = asyncio.create_task(http.post(agent.url, json=call, headers=headers))
            await both.until(number, "running")
            sends.cancel()
            await asyncio.wait([sends])
        call = await both.until(number, "answered" if mode == LEGACY else "cancelled")
        return call["state"]

    for agent in both.agents(mode, "mcp"):
        asyncio.run(goes(agent))


async def initialized(http: httpx2.AsyncClient, url: str) -> dict[str, str]:
    """The headers of a new session."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    answer = await http.post(url, json=hello, headers=HEADERS)
    headers = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await http.post(url, json=done, headers={**HEADERS, **headers})).status_code == 202
    return headers


#: Requests as clients should not write them, but may: each byte of the answers is compared.
ODD = {
    "spaces": b' {\n"id" : 7 , "jsonrpc":"2.0","method":"tools\\/call","params":{ "name":"echo","arguments":{"text":"\\u00e4"}}} ',
    "a large id": b'{"jsonrpc":"2.0","id":12345678901234567,"method":"tools/call","params":{"name":"greet","arguments":{"name":"x"}}}',
    "a tool that is not there": b'{"jsonrpc":"2.0","id":"\\u0061","method":"tools/call","params":{"name":"none"}}',
    "unknown members": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","more":[1e400],"params":{"name":"echo","arguments":{"text":"x"},"task":{"ttl":1}}}',
    "ping": b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
    "a method that is not there": b'{"jsonrpc":"2.0","id":1,"method":"no/such"}',
}


@pytest.mark.parametrize("what", ODD)
def test_odd_requests_get_the_same_bytes(both, what):
    answers = []
    for agent in both.agents(LEGACY, "json"):
        with httpx2.Client(trust_env=False, timeout=PATIENCE, **agent.verify) as http:
            answer = http.post(agent.url, content=ODD[what], headers=HEADERS)
            answers.append((answer.status_code, answer.headers.get("content-type"), answer.content))
    assert answers[1] == answers[0]
    assert answers[0][2]


def test_a_session_that_is_over(both):
    async def over(agent: Agent) -> list:
        async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE, **agent.verify) as http:
            headers = {**HEADERS, **await initialized(http, agent.url)}
            gone = await http.delete(agent.url, headers=headers)
            after = await http.post(agent.url, json=calls("greet", {"name": "x"}), headers=headers)
            without = await http.post(agent.url, json=calls("greet", {"name": "x"}), headers=HEADERS)
            return [(answer.status_code, answer.content) for answer in (gone, after, without)]

    direct, behind = (asyncio.run(over(agent)) for agent in both.agents(LEGACY, "mcp"))
    assert behind == direct
    assert direct[1][0] == 404


@each_mode
def test_a_page_whose_name_leads_here(both, mode):
    """The server knows it by its host, and hookgate looks at that in its place."""
    meta = MODERN_META if mode == MODERN else None
    headers = {**MODERN_HEADERS, "mcp-name": "greet"} if mode == MODERN else HEADERS
    for agent in both.agents(mode, "json"):
        statuses = {}
        for host in ("evil.example", "localhost:1", "127.0.0.1", "[::1]:8787"):
            # One connection each: who refuses a request may close it.
            with httpx2.Client(trust_env=False, timeout=PATIENCE, **agent.verify) as http:
                named = {**headers, "host": host}
                statuses[host] = http.post(agent.url, json=calls("greet", {"name": "x"}, meta), headers=named).status_code
        assert statuses == {"evil.example": 403, "localhost:1": 200, "127.0.0.1": 200, "[::1]:8787": 200}
    assert len(both.server.calls()) == 2 * 3
