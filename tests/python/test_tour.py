"""The tour of the README: the ready-made configuration with the example policy."""

import json
import socket
import subprocess
import sys
import time

import servers
from gateway import PATIENCE, ROOT, Hookgate
from servers import Message
from test_sdk import run_loop


def test_the_example_policy_with_the_ready_made_hooks(tmp_path, opened):
    port = free_port()
    policy = subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / "policy.py"), str(port)], stdout=subprocess.PIPE, text=True
    )
    try:
        hooks = json.loads((ROOT / "configs" / "hooks" / "claude-code.json").read_text())["hooks"]
        hooks = json.loads(json.dumps(hooks).replace("127.0.0.1:9090", f"127.0.0.1:{port}"))
        wait_for(port)
        model = opened(
            servers.model(
                Message(
                    "msg_1",
                    ("toolu_1", "Bash", '{"command": "git push --force"}'),
                    ("toolu_2", "Bash", '{"command": "git status"}'),
                ),
                Message("msg_2", "I did not push."),
            )
        )
        hookgate = opened(Hookgate(tmp_path, model.url, hooks))
        message, ran = run_loop(hookgate.client(), True, "Push it.")
        assert ran == [("Bash", {"command": "git status"})]
        assert message.content[0].text == "I did not push."
        assert b"history is not rewritten here" in model.requests[1][2]
        assert "sdk Bash ran" in policy.stdout.readline()
    finally:
        policy.terminate()
        policy.wait(PATIENCE)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def wait_for(port: int):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), PATIENCE).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the policy did not start")
