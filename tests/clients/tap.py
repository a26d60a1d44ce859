"""What a client sends, seen before hookgate sees it."""

import asyncio
import threading
import urllib.parse

from gateway import PATIENCE, Authority


class Sent:
    """One request with a body, as the client wrote it."""

    def __init__(self, path: str, headers: dict[str, str], body: bytes):
        self.path, self.headers, self.body = path, headers, body


class Tap:
    """Relays connections to `url` and keeps what was sent, byte by byte; with an authority, over TLS on both sides."""

    def __init__(self, url: str, authority: Authority | None = None):
        self.target = urllib.parse.urlsplit(url)
        self.authority = authority
        #: In the order in which they were complete, whatever the connection.
        self.requests: list[Sent] = []
        self.answers = bytearray()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server = asyncio.run_coroutine_threadsafe(self.listen(), self.loop).result(PATIENCE)
        port = self.server.sockets[0].getsockname()[1]
        self.url = f"{self.target.scheme}://localhost:{port}{self.target.path}"

    async def listen(self):
        return await asyncio.start_server(
            self.accept, "127.0.0.1", 0, ssl=self.authority.server if self.authority else None
        )

    async def accept(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter):
        tls = {"ssl": self.authority.client, "server_hostname": "localhost"} if self.authority else {}
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self.target.port, **tls)
        kept = bytearray()

        def keep(piece: bytes):
            kept.extend(piece)
            self.take_requests(kept)

        ways = (
            self.relay(from_client, to_server, keep),
            self.relay(from_server, to_client, self.answers.extend),
        )
        # Both ways end together, so that a client that is gone is gone for the server too.
        try:
            await asyncio.wait([asyncio.ensure_future(way) for way in ways], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in (to_client, to_server):
                end.close()

    @staticmethod
    async def relay(source: asyncio.StreamReader, sink: asyncio.StreamWriter, keep):
        try:
            while piece := await source.read(65536):
                keep(piece)
                sink.write(piece)
                await sink.drain()
        except OSError:
            pass

    def take_requests(self, kept: bytearray):
        while b"\r\n\r\n" in kept:
            head, rest = bytes(kept).split(b"\r\n\r\n", 1)
            first, *fields = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, value in (field.split(":", 1) for field in fields)}
            assert "transfer-encoding" not in headers, "the client sends chunks: read them here too"
            length = int(headers.get("content-length", 0))
            if len(rest) < length:
                return
            if length:
                self.requests.append(Sent(first.split()[1], headers, rest[:length]))
            del kept[: len(head) + 4 + length]

    def close(self):
        asyncio.run_coroutine_threadsafe(self.stop(), self.loop).result(PATIENCE)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(PATIENCE)
        self.loop.close()

    async def stop(self):
        self.server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
