"""An agent on the official A2A SDK, which speaks both revisions in both bindings."""

import asyncio
import threading

import uvicorn
from a2a.helpers import new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Task, TaskState, TaskStatus
from starlette.applications import Starlette

#: Where the agent believes to be: whoever believes its card gets nowhere.
ELSEWHERE = "http://127.0.0.1:1"


def card(*interfaces: tuple[str, str]) -> AgentCard:
    """A card with these bindings and revisions."""
    paths = {"JSONRPC": "/base/rpc", "HTTP+JSON": "/base"}
    return AgentCard(
        name="Tea Agent",
        description="makes tea",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(protocol_binding=binding, protocol_version=version, url=ELSEWHERE + paths[binding])
            for binding, version in interfaces
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="tea", name="tea", description="makes tea", tags=["tea"])],
    )


class Tea(AgentExecutor):
    """Answers "hello" with a message, asks back for "tea", and does everything else as a task."""

    def __init__(self):
        self.heard: list[str] = []

    async def execute(self, context, event_queue):
        text = context.get_user_input()
        self.heard.append(text)
        if text == "hello":
            await event_queue.enqueue_event(new_text_message("hello yourself", context_id=context.context_id))
            return
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            task = Task(id=context.task_id, context_id=context.context_id, status=status, history=[context.message])
            await event_queue.enqueue_event(task)
        await updater.start_work()
        if text == "tea":
            await updater.requires_input(updater.new_agent_message([new_text_part("which?")]))
            return
        if text == "wait":
            await asyncio.Event().wait()
        await updater.add_artifact([new_text_part(f"made of: {text}")], name="tea")
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Agent:
    """The agent as a server on a free port; its address has a path of its own."""

    def __init__(self, *interfaces: tuple[str, str]):
        self.executor, described = Tea(), card(*interfaces)
        handler = DefaultRequestHandler(self.executor, InMemoryTaskStore(), described)
        routes = [
            *create_agent_card_routes(described, card_url="/base/.well-known/agent-card.json"),
            *create_jsonrpc_routes(handler, "/base/rpc", enable_v0_3_compat=True),
            *create_rest_routes(handler, enable_v0_3_compat=True, path_prefix="/base"),
        ]
        config = uvicorn.Config(Starlette(routes=routes), port=0, log_level="warning", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()

    def url(self, patience: float) -> str:
        started = threading.Event()
        for _ in range(int(patience / 0.02)):
            if self.server.started:
                host, port = self.server.servers[0].sockets[0].getsockname()
                return f"http://{host}:{port}/base"
            started.wait(0.02)
        raise AssertionError("the agent did not start")

    def close(self):
        self.server.should_exit = True
        self.thread.join()
