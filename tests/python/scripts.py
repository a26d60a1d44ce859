"""What a model does when not all is well: it refuses, breaks off, or does not come to an end."""

import json
import threading
import time

from servers import Message, Server


def error(kind: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": "scripted"}}).encode()


def refuses(status: int, kind: str, **headers: str):
    """Headers are written with underscores: `retry_after="2"`."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda headers, body: (status, "application/json", [error(kind)], fields)


OVERLOADED = b"event: error\ndata: " + error("overloaded_error") + b"\n\n"


def says(message: Message, cut: int | None = None, end: bytes = b""):
    """A streamed or whole answer, the stream cut after so many events and ended with `end`."""

    def answer(headers, body):
        if not json.loads(body).get("stream"):
            return 200, "application/json", [message.whole()]
        return 200, "text/event-stream", [*message.events()[:cut], *([end] if end else [])]

    return answer


class Cut:
    """The first pieces of an answer, and then the connection is cut."""

    def __init__(self, pieces: list[bytes]):
        self.pieces = pieces

    def __len__(self):
        return len(self.pieces) + 2

    def __iter__(self):
        yield from self.pieces
        # A client that gets the pieces together with the cut may not look at them any more.
        time.sleep(0.5)
        raise ConnectionAbortedError


def cuts(message: Message, after: int):
    """As `says`, but the connection is cut after so many events. An answer that is not streamed is well."""

    def answer(headers, body):
        if not json.loads(body).get("stream"):
            return 200, "application/json", [message.whole()]
        return 200, "text/event-stream", Cut(message.events()[:after])

    return answer


class Open:
    """The pieces of an answer that stays open after them: comments go on until the other side is gone."""

    def __init__(self, pieces: list[bytes]):
        self.pieces = pieces
        self.gone = threading.Event()

    def __len__(self):
        return len(self.pieces) + 2

    def __iter__(self):
        yield from self.pieces
        try:
            for _ in range(600):
                time.sleep(0.1)
                yield b": open\n\n"
        finally:
            # The server lets go of the pieces when it cannot write them.
            self.gone.set()


def stays(answer: Open):
    """Answers with a stream that does not end."""
    return lambda headers, body: (200, "text/event-stream", answer)


def scripted(answers: list, tls=None) -> Server:
    """The answers one after another; the last one from then on."""
    return Server(lambda number, headers, body: answers[min(number, len(answers) - 1)](headers, body), tls)
