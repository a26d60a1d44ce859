"""Claude Code through hookgate: what it runs, what it is told, and what the model gets."""

import json
import threading
import time

import pytest
from conftest import Claude, eventually
from servers import Message, Server


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
        decide,
        Message("msg_1", bash("toolu_1", "echo ok > a.txt")),
        Message("msg_2", "Done."),
        Message("msg_3", "Yes."),
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

    test = setup(
        decide,
        Message("msg_1", "Done."),
        Message("msg_2", bash("toolu_1", "echo ok > a.txt")),
        Message("msg_3", "Tested."),
    )
    run = test.claude.ask("Finish it.")
    assert run.code == 0 and run.text == "Tested.", run.err
    assert test.claude.wrote() == {"a.txt": "ok"}
    assert len(test.tap.bodies()) == 2 and len(test.model.requests) == 3
    assert [stop["detail"]["attempt"] for stop in test.asked("Stop")] == [1, 2]
    history = []
    for number in (1, 2):
        messages = [message for message in test.model.json(number)["messages"] if message["role"] != "system"]
        assert [message["role"] for message in messages[:3]] == ["user", "assistant", "user"]
        assert "run the tests first" in json.dumps(messages[2]["content"])
        history.append(plain(messages[:3]))
    # The client has one merged message; the model keeps the two that it had, so that its cache stays good.
    assert history[0] == history[1]


def error(kind: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": "scripted"}}).encode()


def refuses(status: int, kind: str):
    return lambda headers, body: (status, "application/json", [error(kind)])


def says(message: Message, cut: int | None = None, end: bytes = b""):
    """A streamed or whole answer, the stream cut after so many events and ended with `end`."""

    def answer(headers, body):
        if not json.loads(body).get("stream"):
            return 200, "application/json", [message.whole()]
        return 200, "text/event-stream", [*message.events()[:cut], *([end] if end else [])]

    return answer


def scripted(answers: list) -> Server:
    """The answers one after another; the last one from then on."""
    return Server(lambda number, headers, body: answers[min(number, len(answers) - 1)](headers, body))


class Cut:
    """The first pieces of an answer, and then the connection is cut."""

    def __init__(self, pieces: list[bytes]):
        self.pieces = pieces

    def __len__(self):
        return len(self.pieces) + 2

    def __iter__(self):
        yield from self.pieces
        # A client that gets the pieces together with the cut may not look at them any more.
        time.sleep(0.5)
        raise ConnectionAbortedError


def cuts(message: Message, after: int):
    """As `says`, but the connection is cut after so many events. An answer that is not streamed is well."""

    def answer(headers, body):
        if not json.loads(body).get("stream"):
            return 200, "application/json", [message.whole()]
        return 200, "text/event-stream", Cut(message.events()[:after])

    return answer


OVERLOADED = b"event: error\ndata: " + error("overloaded_error") + b"\n\n"
FAILURES = {
    "400": [refuses(400, "invalid_request_error")],
    "403": [refuses(403, "permission_error")],
    "404": [refuses(404, "not_found_error")],
    "529 then well": [refuses(529, "overloaded_error"), says(Message("msg_1", "Hello."))],
    "error before a block": [says(Message("msg_1", "Hello."), 1, OVERLOADED), says(Message("msg_2", "Hello."))],
    "error after a block": [says(Message("msg_1", "Hel", "lo."), 4, OVERLOADED)],
    "error inside a call": [
        says(Message("msg_1", "Hm.", bash("toolu_1", "echo ran > a.txt")), 6, OVERLOADED),
        says(Message("msg_2", "Hello.")),
    ],
    "cut before the message": [cuts(Message("msg_1", "Hello."), 0), says(Message("msg_2", "Hello."))],
    "cut before a block": [cuts(Message("msg_1", "Hello."), 1), says(Message("msg_2", "Hello."))],
    "cut inside a block": [cuts(Message("msg_1", "Hello."), 3), says(Message("msg_2", "Hello."))],
    "cut after a block": [cuts(Message("msg_1", "Hel", "lo."), 4), says(Message("msg_2", "Hello."))],
    "cut inside a call": [
        cuts(Message("msg_1", "Hm.", bash("toolu_1", "echo ran > a.txt")), 6),
        says(Message("msg_2", "Hello.")),
    ],
    "end before a block": [says(Message("msg_1", "Hello."), 1), says(Message("msg_2", "Hello."))],
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failing_model_looks_as_it_does_without_hookgate(setup, tmp_path, opened, name):
    """The result, how many requests there are and which ask for a stream: as in a run straight to the model."""

    def what_came(claude: Claude, model: Server) -> dict:
        run = claude.ask("Hi.")
        fields = ("is_error", "result", "num_turns", "terminal_reason", "api_error_status")
        came = {field: run.result.get(field) for field in fields}
        if run.code == 1 and name.startswith("cut"):
            # A cut is told in hookgate's words, not in the client's own.
            del came["result"]
        else:
            for each in (model.url, claude.env["ANTHROPIC_BASE_URL"]):
                came["result"] = came["result"].replace(each, "URL")
        streamed = [json.loads(body).get("stream", False) for _, _, body in model.requests]
        return {"code": run.code, **came, "streamed": streamed, "wrote": claude.wrote()}

    alone, model = tmp_path / "alone", opened(scripted(FAILURES[name]))
    alone.mkdir()
    expected = what_came(opened(Claude(alone, model.url)), model)
    test = setup(decide, scripted(FAILURES[name]))
    assert what_came(test.claude, test.model) == expected


def test_an_answer_that_ends_too_early_is_an_error(setup):
    """Alone, the client takes it for a finished turn; what hookgate could not see to its end is never shown as one."""
    test = setup(decide, scripted([says(Message("msg_1", "Hel", "lo."), 4), says(Message("msg_2", "Hello."))]))
    run = test.claude.ask("Hi.")
    assert run.code == 1 and run.result["is_error"] is True
    assert [json.loads(body)["stream"] for _, _, body in test.model.requests] == [True]
    assert [failure["detail"]["kind"] for failure in eventually(lambda: test.asked("StopFailure"), "StopFailure")]


def test_a_model_that_is_overloaded_when_told_of_a_denial_is_asked_again(setup):
    denied = says(Message("msg_1", "Trying.", bash("toolu_1", "echo denied > a.txt")))
    test = setup(decide, scripted([denied, refuses(529, "overloaded_error"), says(Message("msg_2", "I leave it."))]))
    run = test.claude.ask("Write it.")
    assert run.code == 0 and run.text == "I leave it." and test.claude.wrote() == {}, run.err
    bodies = [body for _, _, body in test.model.requests]
    assert len(bodies) == 3 and bodies[1] == bodies[2] and len(test.asked("PreToolUse")) == 1


def test_what_was_denied_is_remembered_when_the_answer_breaks_off_after_it(setup):
    """The client asks again without a stream. It costs no second decision, and the denied call does not run."""
    denied = says(Message("msg_1", bash("toolu_1", "echo denied > a.txt")))
    broken, well = cuts(Message("msg_2", "I leave it."), 2), says(Message("msg_3", "I leave it."))
    test = setup(decide, scripted([denied, broken, well]))
    run = test.claude.ask("Write it.")
    assert run.code == 0 and run.text == "I leave it." and test.claude.wrote() == {}, run.err
    sent = [json.loads(body) for body in test.tap.bodies()]
    assert [body.get("stream", False) for body in sent] == [True, False]
    assert len(test.model.requests) == 3 and len(test.asked("PreToolUse")) == 1
    assert set(results(test.model.json(2))) == {"toolu_1"}


def delegate(id: str, prompt: str) -> tuple[str, str, str]:
    input = {"description": "look", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": False}
    return id, "Agent", json.dumps(input)


def by_agent(main: list[Message], agents: dict[str, list[Message]]) -> Server:
    """Answers the main conversation and each sub-agent, which is known by its prompt, from scripts of their own."""
    told = dict.fromkeys(["main", *agents], 0)
    lock = threading.Lock()

    def answer(number, headers, body):
        who, script = "main", main
        if "x-claude-code-agent-id" in headers:
            first = json.dumps(json.loads(body)["messages"][0])
            who = next(prompt for prompt in agents if prompt in first)
            script = agents[who]
        with lock:
            at, told[who] = told[who], told[who] + 1
        return says(script[at])(headers, body)

    return Server(answer)


def test_two_sub_agents_in_parallel_of_which_each_has_hooks_of_its_own(setup):
    def with_prompts(asked):
        if asked["event"] == "SubagentStart" and "second" in asked["detail"]["prompt"]:
            return {"outcome": "modify", "replacement": "Look at the other one."}
        return decide(asked)

    test = setup(
        with_prompts,
        by_agent(
            [
                Message("msg_1", delegate("toolu_1", "Look at the first."), delegate("toolu_2", "Look at the second.")),
                Message("msg_2", "Both are fine."),
            ],
            {
                "Look at the first.": [
                    Message("msg_3", bash("toolu_3", "echo one > a.txt"), bash("toolu_4", "echo denied > c.txt")),
                    Message("msg_4", "The first is fine."),
                ],
                "Look at the other one.": [
                    Message("msg_5", bash("toolu_5", "echo rewrite > b.txt")),
                    Message("msg_6", "The other is fine."),
                ],
            },
        ),
    )
    run = test.claude.ask("Look at both.")
    assert run.code == 0 and run.text == "Both are fine.", run.err
    assert test.claude.wrote() == {"a.txt": "one", "b.txt": "rewritten"}

    starts = {start["toolCallId"]: start for start in test.asked("SubagentStart")}
    assert {id: start["detail"]["subagent"] for id, start in starts.items()} == {
        "toolu_1": "general-purpose",
        "toolu_2": "general-purpose",
    }
    calls = {call["toolCallId"]: call for call in test.asked("PreToolUse")}
    assert set(calls) == {f"toolu_{number}" for number in range(1, 6)}
    assert calls["toolu_1"]["agentId"] is None
    first, second = calls["toolu_3"]["agentId"], calls["toolu_5"]["agentId"]
    assert first == calls["toolu_4"]["agentId"] and first and second and first != second
    headers = {headers.get("x-claude-code-agent-id") for _, headers, _ in test.model.requests}
    assert headers == {None, first, second}
    assert len({call["sessionId"] for call in calls.values()}) == 1

    # Each sub-agent ends once; its end is no end of the turn.
    eventually(lambda: len(test.asked("SubagentStop")) >= 2, "two SubagentStop")
    stops = test.asked("SubagentStop")
    texts = sorted(stop["detail"]["response"] for stop in stops)
    assert len(texts) == 2 and "The first is fine." in texts[0] and "The other is fine." in texts[1]
    assert [stop["detail"]["response"] for stop in test.asked("Stop")] == ["Both are fine."]
    # Its prompt, as it was rewritten, is a prompt of its own conversation too.
    prompts = {asked["agentId"]: asked["detail"]["prompt"] for asked in test.asked("UserPromptSubmit")}
    assert prompts == {None: "Look at both.", first: "Look at the first.", second: "Look at the other one."}
    for _, headers, body in test.model.requests:
        assert b"Look at the second." not in body
        if headers.get("x-claude-code-agent-id") == first and b"toolu_3" in body:
            assert results(json.loads(body))["toolu_4"]["is_error"] is True


def test_a_denied_call_is_in_the_history_of_a_resumed_session(setup):
    test = setup(
        decide,
        Message("msg_1", "One.", bash("toolu_1", "echo one > a.txt"), bash("toolu_2", "echo denied > b.txt")),
        Message("msg_2", "Two.", bash("toolu_3", "echo denied > b.txt")),
        Message("msg_3", "Done."),
        Message("msg_4", "Yes."),
    )
    run = test.claude.ask("Write them.")
    assert run.code == 0 and run.text == "Done.", run.err
    session = run.result["session_id"]
    run = test.claude.ask("Sure?", "--resume", session)
    assert run.code == 0 and run.text == "Yes." and run.result["session_id"] == session, run.err
    assert b"toolu_2" not in test.tap.bodies()[-1] and b"toolu_3" not in test.tap.bodies()[-1]
    before, after = test.model.json(2), test.model.json(3)
    assert {id for id, result in results(after).items() if result.get("is_error")} == {"toolu_2", "toolu_3"}
    # What the model saw of this turn before, it sees again.
    turns = [[each for each in plain(body["messages"]) if each["role"] != "system"] for body in (before, after)]
    assert turns[1][: len(turns[0])] == turns[0]
    assert len(test.asked("PreToolUse")) == 3


def test_a_slow_hook_holds_a_call(setup):
    def slowly(asked):
        if asked["event"] == "PreToolUse":
            time.sleep(10)
        return decide(asked)

    test = setup(
        slowly,
        Message("msg_1", "On it.", bash("toolu_1", "echo one > a.txt"), bash("toolu_2", "echo denied > b.txt")),
        Message("msg_2", "Done."),
        hooks={"timeoutMs": 30000},
    )
    run = test.claude.ask("Write them.")
    assert run.code == 0 and run.text == "Done.", run.err
    assert test.claude.wrote() == {"a.txt": "one"}
    assert len(test.tap.bodies()) == 2
    # Both calls are decided at once, and the client is kept waiting by what counts for it as life.
    begin, end = (test.tap.answers.index(mark) for mark in (b"On it.", b"toolu_1"))
    assert b"event: ping" in test.tap.answers[begin:end]


class Open:
    """The pieces of an answer that stays open after them: comments go on until the other side is gone."""

    def __init__(self, pieces: list[bytes]):
        self.pieces = pieces
        self.gone = threading.Event()

    def __len__(self):
        return len(self.pieces) + 2

    def __iter__(self):
        yield from self.pieces
        try:
            for _ in range(600):
                time.sleep(0.1)
                yield b": open\n\n"
        finally:
            # The server lets go of the pieces when it cannot write them.
            self.gone.set()


def test_a_client_that_is_killed_ends_what_was_asked_for_it(setup):
    asked_about, release = threading.Event(), threading.Event()

    def pending(asked):
        if asked["event"] == "PreToolUse":
            asked_about.set()
            release.wait(25)
        return {"outcome": "pass"}

    answer = Open(Message("msg_1", "On it.", bash("toolu_1", "echo one > a.txt")).events()[:-2])
    test = setup(
        pending, Server(lambda number, headers, body: (200, "text/event-stream", answer)), hooks={"timeoutMs": 30000}
    )
    try:
        process = test.claude.start("Write it.")
        assert asked_about.wait(60)
        test.claude.kill(process)
        assert answer.gone.wait(20), "the model goes on writing for nobody"
        records = eventually(lambda: test.audit(event="PreToolUse", outcome="cancelled"), "a cancelled call")
        assert [record["toolCallId"] for record in records] == ["toolu_1"]
    finally:
        release.set()
    assert test.claude.wrote() == {} and len(test.model.requests) == 1


def test_a_listener_with_a_certificate_of_a_private_authority(setup, authority):
    test = setup(
        decide,
        Message("msg_1", "On it.", bash("toolu_1", "echo rewrite > a.txt"), bash("toolu_2", "echo denied > c.txt")),
        Message("msg_2", "Done."),
        authority=authority,
    )
    test.claude.env["NODE_EXTRA_CA_CERTS"] = str(authority.ca_file)
    run = test.claude.ask("Write them.")
    assert run.code == 0 and run.text == "Done.", run.err
    assert test.claude.wrote() == {"b.txt": "rewritten"}
    assert results(test.model.json(1))["toolu_2"]["is_error"] is True
