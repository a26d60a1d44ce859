"""A scripted model and a policy service, on loopback, from the standard library alone."""

import json
import ssl
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        """Clients that are gone are what some tests are about; anything else is a fault of the script."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            traceback.print_exc()


class Server:
    """Answers each POST with `answer(number, headers, body)` -> (status, content type, [bytes, ...]).

    A fourth value may hold more headers.
    """

    def __init__(self, answer, tls: ssl.SSLContext | None = None):
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        lock = threading.Lock()
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 60

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if self.headers.get("transfer-encoding") == "chunked":
                    body = self.read_chunks()
                headers = {name.lower(): value for name, value in self.headers.items()}
                with lock:
                    number = len(requests)
                    requests.append((self.path, headers, body))
                status, content_type, pieces, *more = answer(number, headers, body)
                self.send_response(status)
                self.send_header("content-type", content_type)
                for name, value in more[0].items() if more else ():
                    self.send_header(name, value)
                if len(pieces) == 1:
                    self.send_header("content-length", str(len(pieces[0])))
                    self.end_headers()
                    self.wfile.write(pieces[0])
                    return
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for piece in pieces:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

            def read_chunks(self):
                body = b""
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def log_message(self, *args):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "http" if tls is None else "https"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        # A name, not an address, so that certificates are checked as they are in the field.
        return f"{self.scheme}://localhost:{self.server.server_port}"

    def json(self, number: int):
        return json.loads(self.requests[number][2])

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Message:
    """What the model says: text as a string, a call as (id, name, input as JSON text)."""

    def __init__(self, id: str, *blocks, stop_reason: str | None = None, usage=(10, 5)):
        self.id, self.blocks, self.usage = id, blocks, usage
        calls = any(isinstance(block, tuple) for block in blocks)
        self.stop_reason = stop_reason or ("tool_use" if calls else "end_turn")

    def frame(self, content: str, stop_reason, output: int) -> str:
        usage = f'{{"input_tokens":{self.usage[0]},"output_tokens":{output}}}'
        return (
            f'{{"id":"{self.id}","type":"message","role":"assistant","model":"claude-test","content":[{content}],'
            f'"stop_reason":{json.dumps(stop_reason)},"stop_sequence":null,"usage":{usage}}}'
        )

    def whole(self) -> bytes:
        blocks = []
        for block in self.blocks:
            if isinstance(block, str):
                blocks.append(json.dumps({"type": "text", "text": block}))
            else:
                id, name, input = block
                blocks.append(f'{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}')
        return self.frame(",".join(blocks), self.stop_reason, self.usage[1]).encode()

    def events(self) -> list[bytes]:
        events = []

        def send(name: str, rest: str = ""):
            events.append(f'event: {name}\ndata: {{"type":"{name}"{rest}}}\n\n'.encode())

        send("message_start", f',"message":{self.frame("", None, 1)}')
        for index, block in enumerate(self.blocks):
            if isinstance(block, str):
                start, deltas = {"type": "text", "text": ""}, [{"type": "text_delta", "text": block}]
            else:
                id, name, input = block
                start = {"type": "tool_use", "id": id, "name": name, "input": {}}
                cuts = ["", input[: len(input) // 2], input[len(input) // 2 :]]
                deltas = [{"type": "input_json_delta", "partial_json": cut} for cut in cuts]
            send("content_block_start", f',"index":{index},"content_block":{json.dumps(start)}')
            for delta in deltas:
                send("content_block_delta", f',"index":{index},"delta":{json.dumps(delta)}')
            send("content_block_stop", f',"index":{index}')
        end = f'{{"stop_reason":{json.dumps(self.stop_reason)},"stop_sequence":null}}'
        send("message_delta", f',"delta":{end},"usage":{{"output_tokens":{self.usage[1]}}}')
        send("message_stop")
        return events


def model(*script: Message, tls: ssl.SSLContext | None = None) -> Server:
    """Says these messages one after another, streamed or whole as each request asks."""

    def answer(number, headers, body):
        if number >= len(script):
            error = {"type": "error", "error": {"type": "api_error", "message": f"no answer to request {number}"}}
            return 500, "application/json", [json.dumps(error).encode()]
        if json.loads(body).get("stream"):
            return 200, "text/event-stream; charset=utf-8", script[number].events()
        return 200, "application/json", [script[number].whole()]

    return Server(answer, tls)


def policy(decide) -> Server:
    """Answers each dispatch with `decide(envelope)`: the fields of the answer without `schemaVersion`."""

    def answer(number, headers, body):
        return 200, "application/json", [json.dumps({"schemaVersion": 1, **decide(json.loads(body))}).encode()]

    return Server(answer)
