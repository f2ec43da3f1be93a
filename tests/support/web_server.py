"""A real HTTP server on loopback for the web tools' tests."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Reply = tuple[int, dict[str, str], bytes | AsyncIterator[bytes]]


@dataclass
class WebServer:
    """Answers by path; `seen` holds (path, headers) of each request, `sent` the bytes written."""

    routes: dict[str, Callable[[dict[str, str]], Reply]] = field(default_factory=dict)
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    connections: int = 0
    sent: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def page(
        self, path: str, body: bytes | str, kind: str = "text/html; charset=utf-8", status: int = 200
    ) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.routes[path] = lambda _h: (status, {"Content-Type": kind}, data)

    def redirect(self, path: str, target: str) -> None:
        self.routes[path] = lambda _h: (302, {"Location": target}, b"")

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, *rest = head.split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (r.partition(":") for r in rest if r)}
            target = line.split(" ")[1]
            self.seen.append((target, headers))
            reply = self.routes.get(target.partition("?")[0])
            status, extra, body = reply(headers) if reply else (404, {}, b"none")
            lines = [f"HTTP/1.1 {status} X", "Connection: close", *(f"{k}: {v}" for k, v in extra.items())]
            if isinstance(body, bytes):
                lines.append(f"Content-Length: {len(body)}")
            writer.write("\r\n".join([*lines, "", ""]).encode())
            if isinstance(body, bytes):
                writer.write(body)
                self.sent += len(body)
                await writer.drain()
            else:
                async for piece in body:
                    writer.write(piece)
                    await writer.drain()
                    self.sent += len(piece)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def web_server() -> AsyncIterator[WebServer]:
    site = WebServer()
    server = await asyncio.start_server(site.handle, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        await server.wait_closed()


def bomb(size: int) -> bytes:
    """Gzip data that unpacks to `size` zero bytes."""
    return gzip.compress(b"\0" * size, 9)
