"""Starts the built `hookgate` binary between the SDK and scripted servers."""

import json
import os
import pathlib
import re
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import anthropic
import trustme

ROOT = pathlib.Path(__file__).parents[2]
#: The longest that anything here is waited for, in seconds.
PATIENCE = 30
#: Where callbacks come in, as far as anybody is told: the port is not known before hookgate listens.
CALLBACKS = "https://agents.example"


def binary() -> str:
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = pathlib.Path(os.environ.get("HOOKGATE_BIN", target / "debug" / "hookgate"))
    assert found.exists(), f"{found} is missing: build it first (make test does)"
    return str(found)


class Authority:
    """A private CA that this machine does not trust."""

    def __init__(self, folder: pathlib.Path):
        ca = trustme.CA()
        self.ca_file = folder / "ca.pem"
        ca.cert_pem.write_to_path(str(self.ca_file))
        certificate = ca.issue_cert("localhost", "127.0.0.1")
        self.cert_file, self.key_file = folder / "cert.pem", folder / "key.pem"
        certificate.private_key_pem.write_to_path(str(self.key_file))
        for at, pem in enumerate(certificate.cert_chain_pems):
            pem.write_to_path(str(self.cert_file), append=at > 0)
        self.server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.server.load_cert_chain(self.cert_file, self.key_file)
        self.client = ssl.create_default_context(cafile=str(self.ca_file))


class Hookgate:
    """A running proxy with one route, to a model if nothing else is said."""

    def __init__(
        self,
        folder: pathlib.Path,
        model_url: str,
        hooks: dict,
        authority: Authority | None = None,
        ca_file: pathlib.Path | None = None,
        callbacks: int | None = None,
        kind: str = "model",
    ):
        """`callbacks`: the model is offered them, and the end of a turn is held so many seconds for them."""
        self.name = "anthropic" if kind == "model" else kind
        (folder / "hooks.json").write_text(json.dumps({"version": 1, "hooks": hooks}))
        tls = f'tls = {{ cert = "{authority.cert_file}", key = "{authority.key_file}" }}' if authority else ""
        ca = f'ca_file = "{ca_file}"' if ca_file else ""
        offered = "tmp_hooks = true" if callbacks is not None else ""
        (folder / "hookgate.toml").write_text(
            f"""
            [server]
            listen = ["127.0.0.1:0"]
            shutdown_grace = "1s"
            {tls}

            [hooks]
            documents = ["hooks.json"]
            allowed_hosts = ["127.0.0.1"]
            allow_insecure_loopback = true

            [tmp_hooks]
            base_url = "{CALLBACKS}"

            [delivery]
            hold_stop_seconds = {callbacks or 0}

            [[routes]]
            name = "{self.name}"
            kind = "{kind}"
            path_prefix = "/{self.name}"
            upstream = "{model_url}"
            {ca}
            {offered}
            """
        )
        self.context = authority.client if authority else None
        self.log = open(folder / "hookgate.log", "w+b")
        self.process = subprocess.Popen(
            [binary(), "run", "--config", str(folder / "hookgate.toml")],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"]},
        )
        self.port = self.listening()
        self.origin = f"{'https' if authority else 'http'}://localhost:{self.port}"
        self.url = f"{self.origin}/{self.name}"

    def listening(self) -> int:
        """The port that it was given, as its log tells it."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            if told := re.search(r"listening address=127\.0\.0\.1:(\d+)", self.output()):
                return int(told[1])
            time.sleep(0.05)
        self.close()
        raise AssertionError(f"hookgate did not start:\n{self.output()}")

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.origin + path, timeout=PATIENCE, context=self.context) as answer:
            return answer.read()

    def call_back(self, url: str, body: bytes) -> int:
        """What a worker does with the URL that it was given. Gives the status."""
        assert url.startswith(CALLBACKS), url
        request = urllib.request.Request(self.origin + url.removeprefix(CALLBACKS), body, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE, context=self.context) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def audit(self) -> list[dict]:
        return json.loads(self.get("/hookgate/v1/sessions/sdk/hooks"))["items"]

    def output(self) -> str:
        self.log.flush()
        return (pathlib.Path(self.log.name)).read_text(errors="replace")

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(PATIENCE)
                raise

    def client(self, sent: list[bytes] | None = None) -> anthropic.Anthropic:
        """The official SDK, pointed here. `sent` collects the bodies that it sends."""
        hooks = {"request": [lambda request: sent.append(request.content)]} if sent is not None else {}
        verify = {"verify": self.context} if self.context else {}
        return anthropic.Anthropic(
            api_key="sk-test",
            base_url=self.url,
            timeout=PATIENCE,
            max_retries=0,
            default_headers={"x-hookgate-session": "sdk"},
            http_client=anthropic.DefaultHttpxClient(event_hooks=hooks, trust_env=False, **verify),
        )


def hook(id: str, url: str, **fields) -> dict:
    return {"id": id, "type": "http", "url": url, **fields}
