"""Drives Claude Code, as its package installs it, through a running `hookgate` to a scripted model."""

import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse

import pytest

HERE = pathlib.Path(__file__).parent
SDK_TESTS = HERE.parent / "python"
sys.path.insert(0, str(SDK_TESTS))
# Both folders have a `conftest`; the other one's helpers are needed here under another name.
spec = importlib.util.spec_from_file_location("sdk_conftest", SDK_TESTS / "conftest.py")
sdk = importlib.util.module_from_spec(spec)
sys.modules["sdk_conftest"] = sdk
spec.loader.exec_module(sdk)

import servers  # noqa: E402

Hookgate, hook, opened, authority = sdk.Hookgate, sdk.hook, sdk.opened, sdk.authority

CLAUDE = HERE / "node_modules" / ".bin" / "claude"
#: The longest that one run of a client may take, in seconds.
PATIENCE = 90
EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "SubagentStart",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SubagentStop",
    "Stop",
    "StopFailure",
)


def pytest_report_header():
    if not CLAUDE.exists():
        return f"SKIPPING EVERYTHING: {CLAUDE} is missing, `make test-clients` installs it"
    version = subprocess.run([CLAUDE, "--version"], capture_output=True, text=True, timeout=60).stdout.strip()
    return f"client: {version}"


def pytest_collection_modifyitems(items):
    if not CLAUDE.exists():
        for item in items:
            item.add_marker(pytest.mark.skip(reason=f"{CLAUDE} is missing: `make test-clients` installs it"))


def report_error(server, request, address):
    """Clients that are gone are what the tests are about; anything else is a fault of the script."""
    if not isinstance(sys.exc_info()[1], ConnectionError):
        traceback.print_exc()


servers.ThreadingHTTPServer.handle_error = report_error


class Tap:
    """Relays connections to `url` and keeps what was sent, byte by byte."""

    def __init__(self, url: str):
        target = urllib.parse.urlsplit(url)
        self.target = (target.hostname, target.port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://localhost:{self.listener.getsockname()[1]}{target.path}"
        self.streams: list[bytearray] = []
        self.answers = bytearray()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            kept = bytearray()
            self.streams.append(kept)
            for source, sink, keep in ((client, server, kept), (server, client, self.answers)):
                threading.Thread(target=self.relay, args=(source, sink, keep), daemon=True).start()

    @staticmethod
    def relay(source: socket.socket, sink: socket.socket, keep: bytearray):
        try:
            while piece := source.recv(65536):
                keep += piece
                sink.sendall(piece)
        except OSError:
            pass
        finally:
            # Both ways end together, so that a client that is gone is gone for the server too.
            for end in (source, sink):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def bodies(self) -> list[bytes]:
        """The bodies of the requests that have one: in order on each connection."""
        found = []
        for stream in self.streams:
            rest = bytes(stream)
            while b"\r\n\r\n" in rest:
                head, rest = rest.split(b"\r\n\r\n", 1)
                fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
                assert b"transfer-encoding" not in fields, "the client sends chunks: read them here too"
                length = int(fields.get(b"content-length", 0))
                body, rest = rest[:length], rest[length:]
                if body:
                    found.append(body)
        return found

    def close(self):
        self.listener.close()


class Run:
    """One run of the client, that has ended."""

    def __init__(self, code: int, out: str, err: str):
        self.code, self.out, self.err = code, out, err

    @property
    def result(self) -> dict:
        assert self.out, f"nothing on standard output; on standard error: {self.err}"
        return json.loads(self.out)

    @property
    def text(self) -> str:
        return self.result["result"]


class Claude:
    """Claude Code with a home and a workspace of its own."""

    def __init__(self, folder: pathlib.Path, url: str):
        self.home, self.workspace = folder / "home", folder / "workspace"
        for each in (self.home, self.workspace):
            each.mkdir(exist_ok=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "NO_PROXY": "localhost,127.0.0.1",
        }
        self.processes: list[subprocess.Popen] = []

    def start(self, prompt: str, *args: str, tools: str = "Bash,Agent") -> subprocess.Popen:
        command = [str(CLAUDE), "-p", prompt, "--output-format", "json", "--model", "claude-test"]
        process = subprocess.Popen(
            [*command, "--allowedTools", tools, *args],
            cwd=self.workspace,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def ask(self, prompt: str, *args: str, **fields) -> Run:
        process = self.start(prompt, *args, **fields)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill(process)
            raise
        return Run(process.returncode, out, err)

    @staticmethod
    def kill(process: subprocess.Popen):
        """With all that it started: it leads a process group of its own."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=PATIENCE)

    def close(self):
        for process in self.processes:
            self.kill(process)

    def wrote(self) -> dict[str, str]:
        """What the commands left in the workspace."""
        return {path.name: path.read_text().strip() for path in self.workspace.iterdir() if path.is_file()}


class Setup:
    """A scripted model, a policy, hookgate between them and the client, and a tap in front of hookgate."""

    def __init__(self, folder, opened, decide, model, *, authority=None, hooks=None, events=EVENTS):
        self.model = opened(model)
        self.policy = opened(servers.policy(decide))
        url = self.policy.url.replace("localhost", "127.0.0.1") + "/hooks"
        handlers = {event: [hook(f"policy-{event}", url, **(hooks or {}))] for event in events}
        self.hookgate = opened(Hookgate(folder, self.model.url, handlers, authority))
        self.tap = None if authority else opened(Tap(self.hookgate.url))
        self.claude = opened(Claude(folder, self.tap.url if self.tap else self.hookgate.url))

    def asked(self, event: str) -> list[dict]:
        """What the policy was asked or told about `event`."""
        envelopes = [json.loads(body) for _, _, body in self.policy.requests]
        return [envelope for envelope in envelopes if envelope["event"] == event]

    def audit(self, **query: str) -> list[dict]:
        return json.loads(self.hookgate.get("/hookgate/v1/audit?" + urllib.parse.urlencode(query)))["items"]


def eventually(check, what: str):
    """Waits, within bounds, for something that is told in the background."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := check():
            return found
        time.sleep(0.05)
    raise AssertionError(f"in {PATIENCE} s this did not come: {what}")


@pytest.fixture
def setup(tmp_path, opened):
    """setup(decide, *messages) or setup(decide, server) -> Setup"""

    def start(decide, *script, **fields):
        model = script[0] if isinstance(script[0], servers.Server) else servers.model(*script)
        return Setup(tmp_path, opened, decide, model, **fields)

    return start
