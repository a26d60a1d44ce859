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


def test_when_every_call_is_denied_the_answer_goes_on(setup):
    test = setup(
        decide,
        Message("msg_1", "Trying.", bash("toolu_1", "echo denied > a.txt"), bash("toolu_2", "echo denied > b.txt")),
        Message("msg_2", "I leave it."),
    )
    run = test.claude.ask("Write the files.")
    assert run.code == 0 and run.result["is_error"] is False and run.text == "I leave it.", run.err
    assert run.result["num_turns"] == 1 and test.claude.wrote() == {}
    sent, got = test.tap.bodies(), [body for _, _, body in test.model.requests]
    assert len(sent) == 1 and len(got) == 2 and got[0] == sent[0]
    assert {id: result["is_error"] for id, result in results(json.loads(got[1])).items()} == {
        "toolu_1": True,
        "toolu_2": True,
    }


def test_a_denied_prompt_is_shown_and_never_reaches_the_model(setup):
    test = setup(decide, Message("msg_1", "Hello."), Message("msg_2", "Again."))
    run = test.claude.ask("my password is hunter2")
    assert run.code == 0 and "no passwords, please" in run.text, run.err
    assert test.model.requests == []

    for number, (prompt, answer) in enumerate([("Hi.", "Hello."), ("And now?", "Again.")]):
        run = test.claude.ask(prompt, "--continue")
        assert run.code == 0 and run.text == answer, run.err
        body = test.model.requests[number][2]
        # The client still has it in its history.
        assert b"hunter2" in test.tap.bodies()[-1]
        assert b"hunter2" not in body and b"no passwords" not in body
    assert len({envelope["sessionId"] for envelope in test.asked("UserPromptSubmit")}) == 1


def test_a_prompt_is_rewritten_and_context_is_added(setup):
    def decide(asked):
        if asked["event"] != "UserPromptSubmit" or "Deploy" not in asked["detail"]["prompt"]:
            return {"outcome": "pass"}
        return {"outcome": "modify", "replacement": "Deploy to staging.", "additionalContext": "It is Friday."}

    test = setup(
        decide, Message("msg_1", bash("toolu_1", "echo ok > a.txt")), Message("msg_2", "Done."), Message("msg_3", "Yes.")
    )
    run = test.claude.ask("Deploy to production.")
    assert run.code == 0 and run.text == "Done.", run.err
    run = test.claude.ask("Sure?", "--continue")
    assert run.code == 0 and run.text == "Yes.", run.err
    assert [asked["detail"]["prompt"] for asked in test.asked("UserPromptSubmit")] == ["Deploy to production.", "Sure?"]
    # What the client adds to each prompt by itself is no prompt, and stays.
    assert any("<system-reminder>" in part for part in test.asked("UserPromptSubmit")[0]["detail"]["clientContext"])
    sent = test.tap.bodies()
    assert len(sent) == len(test.model.requests) == 3
    for client, (_, _, body) in zip(sent, test.model.requests):
        assert b"Deploy to production." in client and b"Deploy to production." not in body
        texts = [block["text"] for block in json.loads(body)["messages"][0]["content"]]
        assert texts.count("Deploy to staging.") == 1
        assert sum("It is Friday." in text for text in texts) == 1
        before = client.index(b"Deploy to production.")
        assert body[:before] == client[:before]


def test_a_stop_hook_sends_the_model_back_once(setup):
    def decide(asked):
        if asked["event"] == "Stop" and asked["detail"]["attempt"] == 1:
            return {"outcome": "continue", "reason": "run the tests first"}
        return {"outcome": "pass"}

    test = setup(decide, Message("msg_1", "Done."), Message("msg_2", bash("toolu_1", "echo ok > a.txt")), Message("msg_3", "Tested."))
    run = test.claude.ask("Finish it.")
    assert run.code == 0 and run.text == "Tested.", run.err
    assert test.claude.wrote() == {"a.txt": "ok"}
    assert len(test.tap.bodies()) == 2 and len(test.model.requests) == 3
    assert [stop["detail"]["attempt"] for stop in test.asked("Stop")] == [1, 2]
    for number in (1, 2):
        messages = [message for message in test.model.json(number)["messages"] if message["role"] != "system"]
        assert [message["role"] for message in messages[:3]] == ["user", "assistant", "user"]
        assert "run the tests first" in json.dumps(messages[2]["content"])
