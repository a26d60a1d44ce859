"""What goes over the wire in a conversation of Claude Code: what the model says, and how to read what it got."""

import json
import ssl
import threading

from scripts import refuses, says
from servers import Message, Server


def bash(id: str, command: str) -> tuple[str, str, str]:
    """A call in a form that no client would write by itself: spaces, and an escape that is not needed."""
    return id, "Bash", f'{{ "command":  {json.dumps(command)}, "description": "\\u0061 test" }}'


def delegate(id: str, prompt: str) -> tuple[str, str, str]:
    input = {"description": "look", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": False}
    return id, "Agent", json.dumps(input)


def kind(path: str, headers: dict[str, str], body: bytes) -> str:
    """What a request is for: `main`, `agent`, `title`, or `count`."""
    if "/count_tokens" in path:
        return "count"
    fields = json.loads(body)
    if not fields.get("tools") and "format" in fields.get("output_config", {}):
        return "title"
    return "agent" if "x-claude-code-agent-id" in headers else "main"


def plays(*main, agents: dict[str, list] | None = None, title: str = "A title"):
    """A model with one script for the main conversation and one for each sub-agent, which is known by its prompt.

    A script is of messages and of functions that answer. What the client asks beside the conversation is answered too.
    """
    scripts = {"main": list(main), **(agents or {})}
    told = dict.fromkeys(scripts, 0)
    lock = threading.Lock()

    def start(tls: ssl.SSLContext | None) -> Server:
        def answer(number, headers, body):
            path = server.requests[number][0]
            who = kind(path, headers, body)
            if who == "count":
                return 200, "application/json", [b'{"input_tokens":7}']
            if who == "title":
                return says(Message("msg_title", json.dumps({"title": title})))(headers, body)
            if who == "agent":
                first = json.dumps(json.loads(body)["messages"][0])
                who = next(prompt for prompt in agents if prompt in first)
            with lock:
                at, told[who] = told[who], told[who] + 1
            if at >= len(scripts[who]):
                return refuses(400, f"no_answer_{at}_of_{who}")(headers, body)
            said = scripts[who][at]
            return (says(said) if isinstance(said, Message) else said)(headers, body)

        server = Server(answer, tls)
        return server

    return start


def decide(asked: dict) -> dict:
    """The policy of most tests: what a command or a prompt says about itself is what becomes of it."""
    detail = asked["detail"]
    if asked["event"] == "PreToolUse" and detail["toolName"] == "Bash":
        command = detail["input"]["command"]
        if "denied" in command:
            return {"outcome": "deny", "reason": "this file is not for you"}
        if "rewrite" in command:
            return {"outcome": "modify", "replacement": {"command": "echo rewritten > b.txt", "description": "safe"}}
    if asked["event"] == "UserPromptSubmit" and "hunter2" in detail["prompt"]:
        return {"outcome": "deny", "reason": "no passwords, please"}
    return {"outcome": "pass"}


def blocks(body: dict, kind: str) -> list[dict]:
    """All blocks of this type in the conversation, in order."""
    contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
    return [block for content in contents for block in content if block["type"] == kind]


def results(body: dict) -> dict[str, dict]:
    return {block["tool_use_id"]: block for block in blocks(body, "tool_result")}


def failed(body: bytes) -> set[str]:
    """The calls whose results say that they failed."""
    return {id for id, result in results(json.loads(body)).items() if result.get("is_error")}


def plain(value):
    """Without what a client moves or reshapes from request to request: cache marks, and single texts as blocks."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    fields = {name: plain(each) for name, each in value.items() if name != "cache_control"}
    if isinstance(fields.get("content"), str):
        fields["content"] = [{"type": "text", "text": fields["content"]}]
    return fields


def turns(body: bytes) -> list:
    """The conversation as it is compared from request to request: without what the client adds as `system`."""
    return [each for each in plain(json.loads(body)["messages"]) if each["role"] != "system"]


def is_kept(bodies: list[bytes]):
    """Each conversation that the model got begins with the one before."""
    for before, after in zip(bodies, bodies[1:]):
        assert turns(after)[: len(turns(before))] == turns(before)


def without(body: bytes, *ids: str) -> bytes:
    """The same bytes without these calls and their results, each with one comma."""
    text = body.decode()
    for id in ids:
        while (at := text.find(f'"{id}"')) >= 0:
            start = text.rindex("{", 0, at)
            block, end = json.JSONDecoder().raw_decode(text, start)
            assert id in (block.get("id"), block.get("tool_use_id"))
            if text[end] == ",":
                end += 1
            else:
                start -= text[start - 1] == ","
            text = text[:start] + text[end:]
    return text.encode()
