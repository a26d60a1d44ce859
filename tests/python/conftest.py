"""What the tests of the SDK begin with."""

import pytest
import servers
from gateway import Authority, Hookgate, hook

EVENTS = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop")


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


@pytest.fixture(params=["http", "tls"])
def setup(request, tmp_path, opened, authority):
    """setup(decide, *script) -> (hookgate, model, policy), over plain HTTP and over TLS on both sides.

    The script is of messages (none when the model is not asked), or one function that starts a model with what it is told of TLS. The fields are those of
    each handler; `callbacks` is as for `Hookgate`.
    """
    tls = authority if request.param == "tls" else None

    def start(decide, *script, callbacks=None, **fields):
        context = tls.server if tls else None
        model = opened(script[0](context) if script and callable(script[0]) else servers.model(*script, tls=context))
        policy = opened(servers.policy(decide))
        url = policy.url.replace("localhost", "127.0.0.1") + "/hooks"
        hooks = {event: [hook(f"policy-{event}", url, **fields)] for event in EVENTS}
        return opened(Hookgate(tmp_path, model.url, hooks, tls, tls and tls.ca_file, callbacks)), model, policy

    return start
