"""Routes to agents with the official A2A SDK on both sides, in both revisions and bindings."""

import asyncio
import itertools
import json

import httpx
import pytest
import servers
from a2a.client import ClientConfig, create_client
from a2a.helpers import get_message_text, new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from agents import ELSEWHERE, Agent
from gateway import PATIENCE, Proxy, hook

EVENTS = ("SubagentStart", "TaskStart", "TaskStop", "SubagentStop")
FORMS = list(itertools.product(["JSONRPC", "HTTP+JSON"], ["0.3", "1.0"], [True, False]))


@pytest.fixture(params=["http", "tls"])
def agent(request, tmp_path, opened, authority):
    """agent(decide, binding, version) -> (hookgate, agent, told): `told(event, n)` waits for n events of a kind."""
    tls = authority if request.param == "tls" else None

    def start(decide, binding="JSONRPC", version="1.0"):
        agent = opened(Agent((binding, version)))
        policy = opened(servers.policy(lambda told: decide(told) if told["event"] == "SubagentStart" else PASS))
        url = policy.url.replace("localhost", "127.0.0.1") + "/hooks"
        hooks = {event: [hook(f"policy-{event}", url)] for event in EVENTS}
        route = f'''
            [[routes]]
            name = "agent"
            kind = "a2a"
            path_prefix = "/agent"
            upstream = "{agent.url(PATIENCE)}"
        '''
        hookgate = opened(Proxy(tmp_path, route, hooks, tls))
        hookgate.url = f"{hookgate.origin}/agent"

        async def told(event, count=1):
            while True:
                of_event = [json.loads(body) for _, _, body in policy.requests]
                of_event = [envelope for envelope in of_event if envelope["event"] == event]
                if len(of_event) >= count:
                    return of_event
                await asyncio.sleep(0.01)

        return hookgate, agent, told

    return start


PASS = {"outcome": "pass"}


def run(hookgate, use, binding="JSONRPC", version="1.0", streaming=True):
    """What `use(client, http)` gives. The client knows nothing but the route's address."""

    async def main():
        verify = {"verify": hookgate.context} if hookgate.context else {}
        headers = {"A2A-Version": version} if version != "0.3" else {}
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE, headers=headers, **verify) as http:
            config = ClientConfig(httpx_client=http, streaming=streaming, supported_protocol_bindings=[binding])
            async with await create_client(hookgate.url, config) as client:
                return await use(client, http)

    return asyncio.run(asyncio.wait_for(main(), PATIENCE))


def message(text, **ids):
    return SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER, **ids))


async def send(client, text, **ids):
    return [event async for event in client.send_message(message(text, **ids))]


def states(events):
    """The states that a task went through, however they came."""
    tasks = [event.task if event.HasField("task") else event.status_update for event in events]
    return [TaskState.Name(task.status.state).removeprefix("TASK_STATE_") for task in tasks if task.HasField("status")]


@pytest.mark.parametrize("binding, version, streaming", FORMS)
def test_a_delegation_is_told_from_its_start_to_its_end(agent, binding, version, streaming):
    hookgate, behind, told = agent(lambda _: PASS, binding, version)

    async def use(client, http):
        events = await send(client, "leaves")
        assert states(events)[-1] == "COMPLETED"
        (asked,), (started,) = await told("SubagentStart"), await told("TaskStart")
        (stopped,), (ended,) = await told("TaskStop"), await told("SubagentStop")
        assert asked["detail"] == {"subagent": "Tea Agent", "prompt": "leaves"}
        assert stopped["detail"] == {"status": "completed"}
        assert ended["detail"] == {"subagent": "Tea Agent", "ok": True, "response": "made of: leaves"}
        assert len({envelope["taskId"] for envelope in (started, stopped, ended)}) == 1
        assert len({envelope["sessionId"] for envelope in (asked, started, stopped, ended)}) == 1

    run(hookgate, use, binding, version, streaming)
    assert behind.executor.heard == ["leaves"]


@pytest.mark.parametrize("binding, version, streaming", FORMS)
def test_a_denied_delegation_is_answered_by_a_message(agent, binding, version, streaming):
    hookgate, behind, told = agent(lambda _: {"outcome": "deny", "reason": "no tea\ntoday"}, binding, version)

    async def use(client, http):
        (event,) = await send(client, "leaves")
        assert event.HasField("message") and event.message.role == Role.ROLE_AGENT
        assert get_message_text(event.message) == "no tea\ntoday"
        assert event.message.context_id and event.message.message_id

    run(hookgate, use, binding, version, streaming)
    assert behind.executor.heard == []


@pytest.mark.parametrize("binding, version, streaming", FORMS)
def test_a_replaced_prompt_is_what_the_agent_hears(agent, binding, version, streaming):
    answer = {"outcome": "modify", "replacement": "herbs", "additionalContext": "without sugar"}
    hookgate, behind, told = agent(lambda _: answer, binding, version)
    events = run(hookgate, lambda client, http: send(client, "leaves"), binding, version, streaming)
    assert states(events)[-1] == "COMPLETED"
    (heard,) = behind.executor.heard
    assert heard.startswith("herbs\n\n<hook-context event=\"SubagentStart\"") and "without sugar" in heard


@pytest.mark.parametrize("binding, version, streaming", FORMS)
def test_a_message_is_the_end_of_a_delegation(agent, binding, version, streaming):
    hookgate, behind, told = agent(lambda _: PASS, binding, version)

    async def use(client, http):
        (event,) = await send(client, "hello")
        assert get_message_text(event.message) == "hello yourself"
        (ended,) = await told("SubagentStop")
        assert ended["detail"] == {"subagent": "Tea Agent", "ok": True, "response": "hello yourself"}

    run(hookgate, use, binding, version, streaming)


@pytest.mark.parametrize("binding, version, streaming", FORMS)
def test_a_task_that_asks_back_goes_on(agent, binding, version, streaming):
    hookgate, behind, told = agent(lambda _: PASS, binding, version)

    async def use(client, http):
        asked_back = await send(client, "tea")
        assert states(asked_back)[-1] == "INPUT_REQUIRED"
        (started,) = await told("TaskStart")
        ids = {"task_id": started["taskId"], "context_id": started["agentId"]}
        done = await send(client, "green", **ids)
        assert states(done)[-1] == "COMPLETED"
        task = await client.get_task(GetTaskRequest(id=ids["task_id"]))
        assert task.status.state == TaskState.TASK_STATE_COMPLETED
        (ended,) = await told("SubagentStop")
        assert ended["detail"]["response"] == "made of: green" and ended["taskId"] == ids["task_id"]
        assert len(await told("SubagentStart")) == 1

    run(hookgate, use, binding, version, streaming)


@pytest.mark.parametrize("binding, version", list(itertools.product(["JSONRPC", "HTTP+JSON"], ["0.3", "1.0"])))
def test_a_cancelled_task_is_told_by_whom_sees_it_first(agent, binding, version):
    hookgate, behind, told = agent(lambda _: PASS, binding, version)

    async def use(client, http):
        seen = asyncio.create_task(send(client, "wait"))
        (started,) = await told("TaskStart")
        id = started["taskId"]
        watched = asyncio.create_task(anext(client.subscribe(SubscribeToTaskRequest(id=id))))
        await watched
        task = await client.cancel_task(CancelTaskRequest(id=id))
        assert task.status.state == TaskState.TASK_STATE_CANCELED
        assert states(await seen)[-1] == "CANCELED"
        (stopped,) = await told("TaskStop")
        assert stopped["detail"] == {"status": "cancelled"}
        (ended,) = await told("SubagentStop")
        assert ended["detail"]["ok"] is False

    run(hookgate, use, binding, version)


def test_a_card_leads_to_the_route_alone(agent):
    hookgate, behind, told = agent(lambda _: PASS)

    async def use(client, http):
        text = (await http.get(hookgate.url + "/.well-known/agent-card.json")).text
        assert ELSEWHERE not in text and f'"{hookgate.url}/rpc"' in text

    run(hookgate, use)
