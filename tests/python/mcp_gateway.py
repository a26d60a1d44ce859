"""The MCP server for tests (`examples/mcp_fixture`), and hookgate in front of it."""

import json
import pathlib
import subprocess
import tempfile
import time
import urllib.request

from gateway import PATIENCE, Authority, Proxy, binary

#: As hooks call the server.
SERVER = "fixture"


class McpServer:
    """The server, directly."""

    def __init__(self):
        command = pathlib.Path(binary()).parent / "examples" / "mcp_fixture"
        assert command.exists(), f"{command} is missing: build it first (make test does)"
        self.out = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [command], stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.DEVNULL, env={}
        )
        #: With sessions and event streams.
        self.url = self.listening()
        self.origin = self.url.removesuffix("/mcp")
        #: Without sessions, and with JSON where a stream is not needed.
        self.json_url = self.origin + "/json"

    def listening(self) -> str:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            self.out.seek(0)
            if (told := self.out.read()).endswith(b"\n"):
                return told.decode().strip()
            time.sleep(0.05)
        self.close()
        raise AssertionError("the MCP server for tests did not start")

    def calls(self) -> list[dict]:
        """The calls of tools that arrived: `name`, `arguments`, and `state` (running, answered, cancelled)."""
        with urllib.request.urlopen(self.origin + "/calls", timeout=PATIENCE) as answer:
            return json.load(answer)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)


class McpGateway(Proxy):
    """A proxy with routes to both faces of the server."""

    def __init__(
        self,
        folder: pathlib.Path,
        server: McpServer,
        hooks: dict | None = None,
        authority: Authority | None = None,
        config: str = "",
    ):
        """`config` stands before the routes."""
        # The same paths as directly, so that what is told of them can be compared.
        routes = "".join(
            f"""
            [[routes]]
            name = "{name}"
            kind = "mcp"
            server = "{SERVER}"
            path_prefix = "/{name}"
            upstream = "{server.origin}/{name}"
            """
            for name in ("mcp", "json")
        )
        super().__init__(folder, config + routes, hooks or {}, authority)
        host = "localhost" if authority else "127.0.0.1"
        self.url = f"{self.origin.replace('localhost', host)}/mcp"
        self.json_url = self.url.removesuffix("/mcp") + "/json"
