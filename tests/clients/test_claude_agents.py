"""Sub-agents of Claude Code through hookgate."""

import json

from claude import eventually
from conversation import bash, decide, delegate, plays, results
from servers import Message


def test_two_sub_agents_in_parallel_of_which_each_has_hooks_of_its_own(setup):
    def with_prompts(asked):
        if asked["event"] == "SubagentStart" and "second" in asked["detail"]["prompt"]:
            return {"outcome": "modify", "replacement": "Look at the other one."}
        return decide(asked)

    test = setup(
        with_prompts,
        plays(
            Message("msg_1", delegate("toolu_1", "Look at the first."), delegate("toolu_2", "Look at the second.")),
            Message("msg_2", "Both are fine."),
            agents={
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
