"""The official MCP SDK as a client that can do everything: it has a user, a model and roots, and keeps what it hears."""

import asyncio
import contextlib
import ssl

import httpx2
import mcp_types as types
from gateway import PATIENCE
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

#: What the user says to a question, by the field that is asked for.
SAYS = {"username": "ada", "email": "ada@example.com", "name": "Ada", "color": "green", "context": "a test", "ok": True}


class Agent:
    def __init__(self, url: str, mode: str, context: ssl.SSLContext | None = None, **headers: str):
        self.url, self.mode, self.headers = url, mode, headers
        self.verify = {"verify": context} if context else {}
        #: What the server asked, logged and announced, in order.
        self.asked: list[tuple[str, str]] = []
        self.logged: list[str] = []
        self.announced: list[str] = []
        #: Requests and their answers, without what the client reads in the background.
        self.exchanged: list[tuple] = []
        #: From which event on it read again.
        self.resumed: list[str] = []

    async def user(self, context, params: types.ElicitRequestParams):
        self.asked.append(("user", params.message))
        fields = params.requested_schema["properties"]
        if any(name not in SAYS for name in fields):
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={name: SAYS[name] for name in fields})

    async def model(self, context, params: types.CreateMessageRequestParams):
        text = params.messages[0].content.text
        self.asked.append(("model", text))
        answer = types.TextContent(type="text", text=f"I heard: {text}")
        return types.CreateMessageResult(role="assistant", content=answer, model="scripted", stop_reason="endTurn")

    async def roots(self, context):
        self.asked.append(("roots", ""))
        return types.ListRootsResult(roots=[types.Root(uri="file:///work", name="work")])

    async def log(self, params: types.LoggingMessageNotificationParams):
        self.logged.append(f"{params.level}: {params.data}")

    async def hear(self, message):
        if "list_changed" in getattr(message, "method", ""):
            self.announced.append(message.method)

    async def note(self, response: httpx2.Response):
        request = response.request
        if last := request.headers.get("last-event-id"):
            self.resumed.append(last)
        if request.method != "GET":
            kept = ("content-type", "cache-control", "x-accel-buffering", "www-authenticate")
            headers = {name: response.headers.get(name) for name in kept}
            session = "mcp-session-id" in response.headers
            self.exchanged.append((request.method, response.status_code, session, *headers.items()))

    @contextlib.asynccontextmanager
    async def connect(self):
        hooks = {"response": [self.note]}
        async with httpx2.AsyncClient(
            headers=self.headers, trust_env=False, timeout=PATIENCE, event_hooks=hooks, **self.verify
        ) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(
                transport,
                mode=self.mode,
                elicitation_callback=self.user,
                sampling_callback=self.model,
                list_roots_callback=self.roots,
                logging_callback=self.log,
                log_level="info",
                message_handler=self.hear,
            ) as client:
                yield client

    def run(self, use):
        """What `use(client)` gives, in a connection of its own."""

        async def main():
            async with self.connect() as client:
                return await use(client)

        return asyncio.run(asyncio.wait_for(main(), PATIENCE))
