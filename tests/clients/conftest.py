"""Puts `hookgate` between a real client, as its package installs it, and a scripted model."""

import json
import pathlib
import subprocess
import sys
import urllib.parse

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python"))

import inspector_cli as inspector  # noqa: E402
from claude import CLAUDE, Claude  # noqa: E402
from conversation import kind  # noqa: E402
from gateway import Authority, Hookgate, hook  # noqa: E402
from servers import Server, policy  # noqa: E402
from tap import Tap  # noqa: E402

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


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: waits for long, and computes little")


def pytest_terminal_summary(terminalreporter):
    """Which client it was, or that it was none: also of a quiet run."""
    if why := inspector.is_missing():
        terminalreporter.section(f"THE MCP INSPECTOR WAS SKIPPED: {why}", red=True)
    if not CLAUDE.exists():
        terminalreporter.section("EVERYTHING WITH CLAUDE CODE WAS SKIPPED: `make test-clients` installs it", red=True)
        return
    version = subprocess.run([CLAUDE, "--version"], capture_output=True, text=True, timeout=60).stdout.strip()
    terminalreporter.write_line(f"client: {version}")


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents and not CLAUDE.exists():
            item.add_marker(pytest.mark.skip(reason=f"{CLAUDE} is missing: `make test-clients` installs it"))
    # What waits for long begins first, so that it does not end last when tests run beside each other.
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


class Setup:
    """A scripted model, a policy, hookgate between them and the client, and a tap in front of hookgate."""

    def __init__(
        self,
        folder: pathlib.Path,
        opened,
        decide,
        model: Server,
        *,
        tls: Authority | None = None,
        tapped: bool = True,
        chain: int = 1,
        events: tuple[str, ...] = EVENTS,
        callbacks: int | None = None,
        **fields,
    ):
        """`chain` is how many handlers are asked, one after another, and `fields` are what stands in each of them.

        `callbacks` is as for `Hookgate`.
        """
        folder.mkdir(exist_ok=True)
        self.model = opened(model)
        self.policy = opened(policy(decide))
        url = self.policy.url.replace("localhost", "127.0.0.1") + "/hooks"
        handlers = {
            event: [hook(f"policy-{event}-{at}" if at else f"policy-{event}", url, **fields) for at in range(chain)]
            for event in events
        }
        self.hookgate = opened(Hookgate(folder, self.model.url, handlers, tls, tls and tls.ca_file, callbacks))
        self.tap = opened(Tap(self.hookgate.url, tls)) if tapped else None
        self.claude = opened(Claude(folder, (self.tap or self.hookgate).url, tls and tls.ca_file))

    def asked(self, event: str) -> list[dict]:
        """What the policy was asked or told about `event`."""
        envelopes = [json.loads(body) for _, _, body in self.policy.requests]
        return [envelope for envelope in envelopes if envelope["event"] == event]

    def audit(self, **query: str) -> list[dict]:
        return json.loads(self.hookgate.get("/hookgate/v1/audit?" + urllib.parse.urlencode(query)))["items"]

    def sent(self, which: str = "main") -> list[bytes]:
        """The bodies of this kind (see `conversation.kind`) that the client sent."""
        return [each.body for each in self.tap.requests if kind(each.path, each.headers, each.body) == which]

    def got(self, which: str = "main") -> list[bytes]:
        """The bodies of this kind that the model got."""
        return [body for path, headers, body in self.model.requests if kind(path, headers, body) == which]


@pytest.fixture(scope="session")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def opened():
    """Things with `close()`, closed in reverse order at the end of the test."""
    things = []

    def remember(thing):
        things.append(thing)
        return thing

    yield remember
    for thing in reversed(things):
        thing.close()


@pytest.fixture
def setup(tmp_path, opened):
    """setup(decide, model) -> Setup, over plain HTTP."""
    return lambda decide, model, **fields: Setup(tmp_path, opened, decide, model(None), **fields)


@pytest.fixture(params=["http", "tls"])
def each_setup(request, tmp_path, opened, authority):
    """setup(decide, model) -> Setup, over plain HTTP, and over TLS with a private authority on both sides."""
    tls = authority if request.param == "tls" else None
    return lambda decide, model, **fields: Setup(tmp_path, opened, decide, model(tls and tls.server), tls=tls, **fields)
