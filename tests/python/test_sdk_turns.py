"""Turn after turn with the SDK: what was decided once stays so in every later request."""

import json

import anthropic
import pytest
from servers import Message
from test_sdk import TOOLS, ask, decide

PLACES = {"first": "toolu_1", "middle": "toolu_2", "last": "toolu_3"}
STREAMED = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
PLACED = pytest.mark.parametrize("place", PLACES)


def three_calls(place: str) -> list[tuple[str, str, str]]:
    """One call is denied, of the others the one is allowed and the other rewritten."""
    allowed, rewritten = (id for id in PLACES.values() if id != PLACES[place])
    calls = {
        allowed: ("read", '{"path":  "a.txt", "n": 1.0}'),
        rewritten: ("write", '{"path": "/etc/b.txt"}'),
        PLACES[place]: ("remove", '{"path": "c.txt" }'),
    }
    return [(id, *calls[id]) for id in PLACES.values()]


def converse(client: anthropic.Anthropic, streamed: bool, *prompts: str):
    """A loop for each prompt, with the whole history each time. Gives the last text and the calls that ran."""
    messages, ran, text = [], [], None
    for prompt in prompts:
        messages.append({"role": "user", "content": prompt})
        for _ in range(8):
            message = ask(client, streamed, messages, tools=TOOLS)
            messages.append({"role": "assistant", "content": message.content})
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                text = message.content[-1].text
                break
            ran += [(call.name, call.input["path"]) for call in calls]
            results = [{"type": "tool_result", "tool_use_id": call.id, "content": "done"} for call in calls]
            messages.append({"role": "user", "content": results})
    return text, ran


@STREAMED
@PLACED
def test_one_of_three_calls_is_denied(setup, streamed, place):
    hookgate, model, policy = setup(
        decide,
        Message("msg_1", "On it.", *three_calls(place)),
        Message("msg_2", "Two are done."),
        Message("msg_3", ("toolu_4", "read", '{"path": "d.txt"}')),
        Message("msg_4", "Nothing else."),
    )
    sent: list[bytes] = []
    text, ran = converse(hookgate.client(sent), streamed, "Tidy up.", "Is that all?")
    assert text == "Nothing else."
    assert sorted(ran) == [("read", "a.txt"), ("read", "d.txt"), ("write", "workspace/b.txt")]
    got = [body for _, _, body in model.requests]
    assert len(got) == len(sent) == 4 and got[0] == sent[0]
    denied = PLACES[place]
    first, *others = (json.loads(body)["messages"] for body in got)
    for number, messages in enumerate(others, 1):
        assert denied.encode() not in sent[number]
        _, answer, results = messages[:3]
        assert [block["id"] for block in answer["content"] if block["type"] == "tool_use"] == list(PLACES.values())
        told = {block["tool_use_id"]: block for block in results["content"] if block["type"] == "tool_result"}
        assert {id for id, result in told.items() if result.get("is_error")} == {denied} and len(told) == 3
        assert "use the trash instead" in json.dumps(told[denied]["content"])
        # The answer stands there as the model wrote it, and so does all that came before it.
        assert three_calls(place)[list(PLACES).index(place)][2].encode() in got[number]
        before = sent[number].index(b'"role":"assistant"')
        assert got[number][:before] == sent[number][:before]
        # What came after the results of that answer is what the client sent.
        after = b'{"role":"assistant","content":[{"text":"Two are done."'
        if number > 1:
            assert got[number][got[number].index(after) :] == sent[number][sent[number].index(after) :]
    for before, after in zip([first, *others], others):
        assert after[: len(before)] == before


@PLACED
def test_one_of_three_calls_is_denied_to_the_tool_runner(setup, place):
    hookgate, model, policy = setup(
        decide,
        Message("msg_1", *three_calls(place)),
        Message("msg_2", "Two are done.", ("toolu_4", "read", '{"path": "d.txt"}')),
        Message("msg_3", "Nothing else."),
    )
    ran = []

    def tool(name: str):
        def run(path: str) -> str:
            ran.append((name, path))
            return "done"

        return anthropic.beta_tool(run, name=name, description=name)

    def lenient_read(path: str, n: float = 0) -> str:
        ran.append(("read", path))
        return "done"

    tools = [anthropic.beta_tool(lenient_read, name="read", description="read"), tool("write"), tool("remove")]
    sent: list[bytes] = []
    runner = hookgate.client(sent).beta.messages.tool_runner(
        model="claude-test", max_tokens=1024, tools=tools, messages=[{"role": "user", "content": "Tidy up."}]
    )
    assert runner.until_done().content[-1].text == "Nothing else."
    assert sorted(ran) == [("read", "a.txt"), ("read", "d.txt"), ("write", "workspace/b.txt")]
    got = [body for _, _, body in model.requests]
    assert len(got) == len(sent) == 3
    # The provider holds the denied call already: only its result is missing, once.
    assert got[0] == sent[0] and got[2] == sent[2]
    second = json.loads(got[1])
    assert second["thread"] == {"type": "continue", "previous_message_id": "msg_1"}
    told = {block["tool_use_id"]: block for block in second["messages"][-1]["content"]}
    assert set(told) == set(PLACES.values())
    assert {id for id, result in told.items() if result.get("is_error")} == {PLACES[place]}


@STREAMED
def test_a_prompt_is_rewritten_in_every_turn(setup, streamed):
    def decide(asked):
        if asked["event"] != "UserPromptSubmit" or "production" not in asked["detail"]["prompt"]:
            return {"outcome": "pass"}
        return {"outcome": "modify", "replacement": "Deploy to staging.", "additionalContext": "It is Friday."}

    hookgate, model, policy = setup(
        decide,
        Message("msg_1", ("toolu_1", "read", '{"path": "a.txt"}')),
        Message("msg_2", "Done."),
        Message("msg_3", "Yes."),
    )
    sent: list[bytes] = []
    text, _ = converse(hookgate.client(sent), streamed, "Deploy to production.", "Sure?")
    assert text == "Yes." and len(sent) == len(model.requests) == 3
    prompts = []
    for number, client in enumerate(sent):
        body = model.requests[number][2]
        assert b"production" in client and b"production" not in body
        prompts.append(model.json(number)["messages"][0])
        assert "Deploy to staging." in json.dumps(prompts[-1]) and "It is Friday." in json.dumps(prompts[-1])
        end = client.index(b"Deploy to production.")
        rest = client[end + len(b'Deploy to production."') :]
        assert body[: client.index(b'"content":"Deploy')] == client[: client.index(b'"content":"Deploy')]
        assert body.endswith(rest)
    assert prompts[0] == prompts[1] == prompts[2]


@STREAMED
def test_a_denied_prompt_is_left_out_of_every_later_turn(setup, streamed):
    hookgate, model, policy = setup(decide, Message("msg_1", "Hello."), Message("msg_2", "Still here."))
    sent: list[bytes] = []
    text, _ = converse(hookgate.client(sent), streamed, "my password is hunter2", "Hi.", "And now?")
    assert text == "Still here." and len(sent) == 3 and len(model.requests) == 2
    for number in (0, 1):
        body = model.requests[number][2]
        assert b"hunter2" in sent[number + 1] and b"hunter2" not in body and b"no passwords" not in body
    first, second = (model.json(number)["messages"] for number in (0, 1))
    assert [message["role"] for message in second] == ["user", "assistant", "user"]
    assert second[: len(first)] == first


@STREAMED
def test_a_stop_hook_sends_the_model_back_within_the_answer(setup, streamed):
    def decide(asked):
        if asked["event"] == "Stop" and asked["detail"]["response"] == "I am done.":
            return {"outcome": "continue", "reason": "run the tests first"}
        return {"outcome": "pass"}

    hookgate, model, policy = setup(
        decide,
        Message("msg_1", "I am done."),
        Message("msg_2", ("toolu_1", "read", '{"path": "a.txt"}')),
        Message("msg_3", "It is tested."),
        Message("msg_4", "You are welcome."),
    )
    sent: list[bytes] = []
    text, ran = converse(hookgate.client(sent), streamed, "Finish it.", "Thank you.")
    assert text == "You are welcome." and ran == [("read", "a.txt")]
    assert len(sent) == 3 and len(model.requests) == 4 and model.requests[0][2] == sent[0]
    conversations = [model.json(number)["messages"] for number in range(4)]
    for before, after in zip(conversations, conversations[1:]):
        assert after[: len(before)] == before
    assert "run the tests first" in json.dumps(conversations[1][2])
