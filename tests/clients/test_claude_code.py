"""Claude Code through hookgate: what it runs, what it is told, and what the model gets."""

import json

from servers import Message


def bash(id: str, command: str) -> tuple[str, str, str]:
    """A call in a form that no client would write by itself: spaces, and an escape that is not needed."""
    return id, "Bash", f'{{ "command":  {json.dumps(command)}, "description": "\\u0061 test" }}'


def decide(asked: dict) -> dict:
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


def test_three_calls_one_allowed_one_rewritten_one_denied(setup):
    test = setup(
        decide,
        Message(
            "msg_1",
            "On it.",
            bash("toolu_1", "echo allowed > a.txt"),
            bash("toolu_2", "echo denied > c.txt"),
            bash("toolu_3", "echo rewrite > /etc/b.txt"),
        ),
        Message("msg_2", "Done."),
    )
    run = test.claude.ask("Write the files.")
    assert run.code == 0 and run.text == "Done.", run.err
    assert test.claude.wrote() == {"a.txt": "allowed", "b.txt": "rewritten"}

    sent = test.tap.bodies()
    got = [body for _, _, body in test.model.requests]
    assert len(sent) == len(got) == 2
    assert got[0] == sent[0]
    # Only the denied call and its result were put in: with these bytes taken out again it is what the client sent.
    assert b"toolu_2" not in sent[1]
    calls = blocks(json.loads(got[1]), "tool_use")
    assert [call["id"] for call in calls] == ["toolu_1", "toolu_2", "toolu_3"]
    assert calls[2]["input"]["command"] == "echo rewritten > b.txt"
    assert bash("toolu_2", "echo denied > c.txt")[2].encode() in got[1]
    told = results(json.loads(got[1]))
    assert set(told) == {"toolu_1", "toolu_2", "toolu_3"}
    assert told["toolu_2"]["is_error"] is True
    assert "this file is not for you" in json.dumps(told["toolu_2"]["content"])
    assert not told["toolu_1"].get("is_error") and not told["toolu_3"].get("is_error")
    assert without(got[1], "toolu_2") == sent[1]


def without(body: bytes, id: str) -> bytes:
    """The same bytes without a call and its result, each with one comma."""
    text = body.decode()
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
