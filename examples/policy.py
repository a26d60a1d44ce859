"""A policy service in one file: `python3 examples/policy.py [PORT]` (9090 unless given).

It answers hookgate's native v1 hooks, as `configs/claude-code.toml` asks it: pushes with force are denied, files
outside of the working folder are not written, and every result is printed.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def decide(asked: dict) -> dict:
    detail = asked["detail"]
    tool, given = detail.get("toolName"), detail.get("input") or {}
    if asked["event"] == "PreToolUse":
        if tool == "Bash" and "push" in given.get("command", "") and "--force" in given["command"]:
            return {"outcome": "deny", "reason": "history is not rewritten here: push a new commit instead"}
        if tool in ("Write", "Edit") and given.get("file_path", "").startswith("/etc/"):
            return {"outcome": "deny", "reason": "only files of this project are written"}
    if asked["event"] == "PostToolUse":
        print(asked["timestamp"], asked["sessionId"], tool, "ran", flush=True)
    return {"outcome": "pass"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = json.dumps({"schemaVersion": 1, **decide(asked)}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9090
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
