"""An MCP server behind hookgate with real clients: the official TypeScript SDK, the MCP inspector, and Claude Code."""

import json
import os
import pathlib
import subprocess

import inspector_cli
import pytest
from claude import Claude
from conversation import plays, results
from gateway import hook
from inspector_cli import MODULES, Inspector, node
from mcp_gateway import SERVER, McpGateway, McpServer
from servers import Message, policy

HERE = pathlib.Path(__file__).parent
SCRIPT = HERE / "mcp_client.mjs"
EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
PATIENCE = 60

#: What the SDK does in each era, as `mcp_client.mjs` is told it.
LEGACY = ["test_elicitation={\"message\": \"Who?\"}", "test_sampling={\"prompt\": \"Say.\"}", "test_list_roots", "test_reconnection"]
MODERN = [f"test_input_required_result_{name}" for name in ("elicitation", "multiple_inputs", "multi_round")]
BOTH = ["echo={\"text\": \"ä\"}", "test_header_argument={\"region\": \"Zürich\"}", "test_tool_with_progress", "test_error_handling"]


def decide(asked: dict) -> dict:
    text = asked["detail"].get("input", {}).get("text", "")
    if asked["event"] == "PreToolUse" and text == "secret":
        return {"outcome": "deny", "reason": "This is not for tools."}
    if asked["event"] == "PreToolUse" and text == "rewrite":
        return {"outcome": "modify", "replacement": {"text": "rewritten"}}
    return {"outcome": "pass"}


class Guarded:
    def __init__(self, folder: pathlib.Path, opened, config: str = ""):
        """`config` stands before the routes."""
        folder.mkdir(exist_ok=True)
        self.server = opened(McpServer())
        self.policy = opened(policy(decide))
        url = self.policy.url.replace("localhost", "127.0.0.1") + "/hooks"
        hooks = {event: [hook(f"policy-{event}", url)] for event in EVENTS}
        self.gateway = opened(McpGateway(folder, self.server, hooks, config=config))

    def asked(self, event: str = "PreToolUse") -> list[dict]:
        envelopes = [json.loads(body) for _, _, body in self.policy.requests]
        return [envelope for envelope in envelopes if envelope["event"] == event]

    def arrived(self) -> list[tuple[str, dict]]:
        return [(call["name"], call["arguments"]) for call in self.server.calls()]


@pytest.fixture
def guarded(tmp_path, opened) -> Guarded:
    return Guarded(tmp_path / "mcp", opened)


def typescript(url: str, mode: str, *calls: str) -> dict:
    run = subprocess.run(
        [node(), str(SCRIPT), url, mode, *calls],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={"PATH": os.environ["PATH"], "NO_PROXY": "localhost,127.0.0.1"},
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


scripted = pytest.mark.skipif(
    not (MODULES / "@modelcontextprotocol" / "client").exists(), reason="`make test-clients` installs the TypeScript SDK"
)
inspected = pytest.mark.skipif(inspector_cli.is_missing() is not None, reason=str(inspector_cli.is_missing()))


@scripted
@pytest.mark.parametrize("mode, calls", [("legacy", LEGACY + BOTH), ("2026-07-28", MODERN + BOTH)], ids=["legacy", "2026-07-28"])
def test_the_typescript_sdk_sees_the_same(guarded, mode, calls):
    direct = typescript(guarded.server.url, mode, *calls)
    behind = typescript(guarded.gateway.url, mode, *calls)
    assert behind == direct
    assert len(direct["results"]) == len(calls)
    # The client tells of its own rounds, too.
    assert [told["progress"] for told in direct["progress"] if told.get("total") == 100] == [0, 50, 100]
    assert not any(result.get("isError") for result in direct["results"][:-1])
    assert len(direct["asked"]) == (2 if mode == "legacy" else 1 + 2 + 2)
    assert len(guarded.asked()) == len(calls)


@scripted
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_typescript_sdk_is_told_what_was_decided(guarded, mode):
    seen = typescript(guarded.gateway.url, mode, 'echo={"text": "secret"}', 'echo={"text": "rewrite"}')
    denied, rewritten = seen["results"]
    assert denied["isError"] is True and "This is not for tools." in denied["content"][0]["text"]
    assert rewritten["structuredContent"] == {"text": "rewritten"}
    assert guarded.arrived() == [("echo", {"text": "rewritten"})]


@inspected
def test_the_inspector_sees_the_same(guarded, tmp_path):
    direct, behind = (Inspector(url, tmp_path) for url in (guarded.server.url, guarded.gateway.url))
    assert behind.run("tools/list") == direct.run("tools/list")
    call = ("tools/call", "--tool-name", "echo", "--tool-arg")
    assert behind.run(*call, "text=open") == direct.run(*call, "text=open")
    denied = behind.run(*call, "text=secret")
    assert denied["isError"] is True and "This is not for tools." in denied["content"][0]["text"]
    assert guarded.arrived() == [("echo", {"text": "open"})] * 2


def test_claude_code_uses_a_server_behind_hookgate(each_setup, tmp_path, opened):
    guarded = Guarded(tmp_path / "mcp", opened)
    echo = f"mcp__{SERVER}__echo"
    test = each_setup(
        lambda asked: {"outcome": "pass"},
        plays(
            Message(
                "msg_1",
                "On it.",
                ("toolu_1", echo, '{ "text":  "open" }'),
                ("toolu_2", echo, '{"text": "secret"}'),
                ("toolu_3", echo, '{"text": "rewrite"}'),
                ("toolu_4", f"mcp__{SERVER}__test_error_handling", "{}"),
            ),
            Message("msg_2", "Done."),
        ),
    )
    servers = {"mcpServers": {SERVER: {"type": "http", "url": guarded.gateway.url}}}
    tools = f"{echo},mcp__{SERVER}__test_error_handling"
    run = test.claude.ask("Try them.", "--mcp-config", json.dumps(servers), "--strict-mcp-config", tools=tools)
    assert run.code == 0 and run.text == "Done.", run.err
    told = {id: json.dumps(result) for id, result in results(json.loads(test.got()[1])).items()}
    failed = {id for id, result in results(json.loads(test.got()[1])).items() if result.get("is_error")}
    assert failed == {"toolu_2", "toolu_4"}
    assert "open" in told["toolu_1"] and "This is not for tools." in told["toolu_2"] and "rewritten" in told["toolu_3"]
    assert sorted(map(str, guarded.arrived())) == sorted(
        map(str, [("echo", {"text": "open"}), ("echo", {"text": "rewritten"}), ("test_error_handling", {})])
    )
    assert {asked["detail"]["server"] for asked in guarded.asked()} == {SERVER}


def test_a_call_that_claude_code_makes_is_one_on_both_routes(tmp_path, opened):
    """The model's answers and the tools come through the same hookgate: who was asked there is not asked here."""
    echo = f"mcp__{SERVER}__echo"
    calls = {"toolu_1": "open", "toolu_2": "open", "toolu_3": "secret", "toolu_4": "rewrite"}
    made = [(id, echo, json.dumps({"text": text})) for id, text in calls.items()]
    model = opened(plays(Message("msg_1", "On it.", *made), Message("msg_2", "Done."))(None))
    route = f"""
            [[routes]]
            name = "anthropic"
            kind = "model"
            path_prefix = "/anthropic"
            upstream = "{model.url}"
    """
    guarded = Guarded(tmp_path / "mcp", opened, route)
    claude = opened(Claude(tmp_path, f"{guarded.gateway.origin}/anthropic"))
    servers = {"mcpServers": {SERVER: {"type": "http", "url": guarded.gateway.url}}}
    run = claude.ask("Try them.", "--mcp-config", json.dumps(servers), "--strict-mcp-config", tools=echo)
    assert run.code == 0 and run.text == "Done.", run.err
    assert sorted(call["text"] for _, call in guarded.arrived()) == ["open", "open", "rewritten"]

    before = {asked["toolCallId"]: asked for asked in guarded.asked()}
    assert len(guarded.asked()) == 4 and set(before) == set(calls)
    assert {asked["plane"] for asked in before.values()} == {"model"}
    after = {told["toolCallId"]: told for told in guarded.asked("PostToolUse")}
    assert len(guarded.asked("PostToolUse")) == 3 and set(after) == set(calls) - {"toolu_3"}
    assert {told["plane"] for told in after.values()} == {"tool"}
    for id, told in after.items():
        assert (told["sessionId"], told["turnId"]) == (before[id]["sessionId"], before[id]["turnId"])
    assert not guarded.asked("PostToolUseFailure")
