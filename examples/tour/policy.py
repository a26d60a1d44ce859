import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Policy(BaseHTTPRequestHandler):
    def do_POST(self):
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = {"schemaVersion": 1, "outcome": "pass"}
        if "hunter2" in told["detail"].get("prompt", ""):
            answer |= {"outcome": "deny", "reason": "This prompt holds a password; it was not sent."}
        if "curl" in told["detail"].get("input", {}).get("command", ""):
            answer |= {"outcome": "deny", "reason": "Nothing is fetched from the network here."}
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


ThreadingHTTPServer(("127.0.0.1", 9090), Policy).serve_forever()
