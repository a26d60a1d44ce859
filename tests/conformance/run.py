"""Whether MCP passes through hookgate unchanged: the official conformance suite has to say the same of a server behind it as
of the server itself, check by check and down to what the suite saw. `make test-mcp` runs this.

Three times per revision: directly, through hookgate, and through hookgate with hooks that let everything pass.
"""

import collections
import pathlib
import sys
import tempfile
import time

import suite

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

import servers  # noqa: E402
from gateway import hook  # noqa: E402
from mcp_gateway import McpGateway, McpServer  # noqa: E402

EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
#: A scenario that differs is run again on both sides, alone, so often: some of its steps have to be done within half a second.
REPEATS = 2
#: When more of them differ, it is no matter of time.
MOST_REPEATED = 5


class Compared:
    """Runs the suite against several ways to the same server, of which the first is the direct one."""

    def __init__(self, folder: pathlib.Path, ways: dict[str, str]):
        self.folder, self.ways = folder, ways
        self.runs = 0
        #: What was wrong, a line each.
        self.faults: list[str] = []

    def run(self, way: str, *what: str) -> dict[str, list[dict]]:
        self.runs += 1
        return suite.run(self.ways[way], self.folder / str(self.runs), *what, progress=lambda: say("."))

    def revision(self, revision: str, what: tuple[str, ...]):
        direct, *others = self.ways
        expected = self.counted(revision, direct, what)
        # A check that the server itself does not pass says nothing of what is in front of it.
        self.faults += [
            f"{revision} {direct}: {scenario}: {check['id']}: {check['errorMessage']}"
            for scenario, checks in expected.items()
            for check in checks
            if check["status"] in ("FAILURE", "WARNING")
        ]
        for way in others:
            self.compare(revision, way, expected, self.counted(revision, way, what))

    def counted(self, revision: str, way: str, what: tuple[str, ...]) -> dict[str, list[dict]]:
        say(f"{revision}  {way:<28}")
        begin = time.monotonic()
        found = self.run(way, *what)
        counts = collections.Counter(check["status"] for checks in found.values() for check in checks)
        told = ", ".join(f"{count} {status.lower()}" for status, count in sorted(counts.items()))
        say(f" {len(found)} scenarios: {told} ({time.monotonic() - begin:.0f} s)\n")
        return found

    def compare(self, revision: str, way: str, expected: dict[str, list[dict]], found: dict[str, list[dict]]):
        differ = sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))
        for scenario in differ:
            here, there = expected.get(scenario, []), found.get(scenario, [])
            if len(differ) <= MOST_REPEATED:
                here, there = self.repeated(revision, way, scenario)
            differences = suite.differences(by_id(here), by_id(there))
            self.faults += [f"{revision} {way}: {scenario}: {difference}" for difference in differences]

    def repeated(self, revision: str, way: str, scenario: str) -> tuple[list[dict], list[dict]]:
        """What a scenario comes to directly and this way, run once more, or until it is the same."""
        say(f"{revision}  {way}: {scenario} differs, once more ")
        what = ("--scenario", scenario, "--spec-version", revision, "--force")
        for _ in range(REPEATS):
            here, there = (self.run(each, *what).get(scenario, []) for each in (next(iter(self.ways)), way))
            if here == there:
                break
        say(" and it does not\n" if here == there else "\n")
        return here, there


def by_id(checks: list[dict]) -> dict[str, list[dict]]:
    """There may be several checks of one id."""
    found = collections.defaultdict(list)
    for check in checks:
        found[check["id"]].append(check)
    return found


def say(text: str):
    print(text, end="", flush=True)


def main() -> int:
    opened = []

    def remember(thing):
        opened.append(thing)
        return thing

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            server = remember(McpServer())
            policy = remember(servers.policy(lambda asked: {"outcome": "pass"}))
            url = policy.url.replace("localhost", "127.0.0.1") + "/hooks"
            hooks = {event: [hook(f"policy-{event}", url)] for event in EVENTS}
            for each in ("plain", "hooked"):
                (folder / each).mkdir()
            plain = remember(McpGateway(folder / "plain", server))
            hooked = remember(McpGateway(folder / "hooked", server, hooks))
            ways = {"directly": server.url, "through hookgate": plain.url, "through hookgate with hooks": hooked.url}
            compared = Compared(folder, ways)
            for revision, what in suite.REVISIONS.items():
                compared.revision(revision, what)
            if not policy.requests:
                compared.faults.append("no hook was asked")
        finally:
            for thing in reversed(opened):
                thing.close()
    for fault in compared.faults:
        print(fault)
    print(f"{len(compared.faults)} differences" if compared.faults else "no difference")
    return 1 if compared.faults else 0


if __name__ == "__main__":
    sys.exit(main())
