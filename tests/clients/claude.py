"""Claude Code as its package installs it: one prompt without a terminal, or a person at one."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import pexpect
import pyte

CLAUDE = pathlib.Path(__file__).parent / "node_modules" / ".bin" / "claude"
#: The longest that anything of a client is waited for, in seconds.
PATIENCE = 90
#: The tools that run without asking, where a test does not say others.
ALLOWED = "Bash,Agent"
KEY = "sk-test"


def eventually(check, what):
    """Waits, within bounds, until `check` gives something; `what` is said, or called, when it does not."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := check():
            return found
        time.sleep(0.05)
    raise AssertionError(f"in {PATIENCE} s this did not come: {what() if callable(what) else what}")


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

    def __init__(self, folder: pathlib.Path, url: str, ca_file: pathlib.Path | None = None):
        self.home, self.workspace = folder / "home", folder / "workspace"
        settings = self.home / ".claude"
        for each in (self.home, self.workspace, settings):
            each.mkdir(exist_ok=True, parents=True)
        # A person has gone through the questions of the first start.
        seen = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        started = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [KEY], "rejected": []},
            "projects": {str(self.workspace): seen},
        }
        (settings / ".claude.json").write_text(json.dumps(started))
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(settings),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "NO_PROXY": "localhost,127.0.0.1",
        }
        if ca_file:
            self.env["NODE_EXTRA_CA_CERTS"] = str(ca_file)
        self.processes: list[subprocess.Popen] = []
        self.terminals: list[Terminal] = []

    def start(self, prompt: str, *args: str, tools: str = ALLOWED) -> subprocess.Popen:
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
        self.start(prompt, *args, **fields)
        return self.end()

    def end(self) -> Run:
        """Waits for the run that was started last."""
        process = self.processes[-1]
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill(process)
            raise
        return Run(process.returncode, out, err)

    def open(self, *args: str, tools: str = ALLOWED) -> "Terminal":
        """Sits down at a terminal, with the prompt ready to be typed into."""
        terminal = Terminal(self, ["--model", "claude-test", "--allowedTools", tools, *args])
        self.terminals.append(terminal)
        terminal.shows("for shortcuts")
        return terminal

    @staticmethod
    def kill(process: subprocess.Popen):
        """With all that it started: it leads a process group of its own."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=PATIENCE)

    def close(self):
        for process in self.processes:
            self.kill(process)
        for terminal in self.terminals:
            terminal.close()

    def wrote(self) -> dict[str, str]:
        """What the commands left in the workspace."""
        return {path.name: path.read_text().strip() for path in self.workspace.iterdir() if path.is_file()}


class Terminal:
    """A terminal with the client in it, and the person before it, who reads the screen and types."""

    ROWS, COLUMNS = 80, 120

    def __init__(self, claude: Claude, args: list[str]):
        self.screen = pyte.Screen(self.COLUMNS, self.ROWS)
        self.lock = threading.Lock()
        #: The screen as text, until it changes: to read it out is slow.
        self.read_out: str | None = None
        self.child = pexpect.spawn(
            str(CLAUDE),
            args,
            cwd=str(claude.workspace),
            env={**claude.env, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
            dimensions=(self.ROWS, self.COLUMNS),
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        """Always, or the client would wait for a terminal that takes no more."""
        stream = pyte.ByteStream(self.screen)
        while True:
            try:
                piece = os.read(self.child.child_fd, 65536)
            except OSError:
                return
            if not piece:
                return
            with self.lock:
                stream.feed(piece)
                self.read_out = None

    def text(self) -> str:
        with self.lock:
            if self.read_out is None:
                self.read_out = "\n".join(line.rstrip() for line in self.screen.display if line.strip())
            return self.read_out

    def shows(self, *texts: str):
        def missing():
            return [text for text in texts if text not in self.text()]

        eventually(lambda: not missing(), lambda: f"{missing()} on the screen, which is\n{self.text()}")

    def hides(self, text: str):
        eventually(lambda: text not in self.text(), lambda: f"{text!r} off the screen, which is\n{self.text()}")

    def type(self, line: str):
        """Types a line and sends it, as soon as the client has shown it."""
        self.rests()
        self.child.send(line)
        # The space of the line that is typed into is not the one of what was sent.
        self.shows(f"❯\xa0{line}")
        self.child.send("\r")

    def type_ahead(self, line: str):
        """Types a line and sends it while the client is at work: it keeps it for later."""
        self.child.send(line)
        self.shows(f"❯\xa0{line}")
        self.child.send("\r")
        self.shows("queued messages")

    def press(self, key: str):
        self.child.send(key)

    def rests(self):
        """The client has nothing to do any more, and what is typed is a new prompt."""
        self.hides("esc to interrupt")

    def leave(self) -> int:
        """As a person does; gives the exit status."""
        self.type("/exit")
        eventually(lambda: not self.child.isalive(), lambda: f"the end of the client; its screen is\n{self.text()}")
        return self.child.exitstatus

    def close(self):
        """With all that it started: it leads a session of its own."""
        if self.child.isalive():
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()
        self.reader.join(PATIENCE)
        self.child.close()
