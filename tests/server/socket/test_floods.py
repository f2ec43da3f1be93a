"""A socket that sends without a pause holds up nobody else, and makes nothing grow (D-11)."""

import asyncio
import base64
import contextlib
import os
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from support.patience import HANG_S
from websockets.frames import Frame, Opcode

from bowerbird.server.common.doorstep import DoorLimits, Doorstep
from bowerbird.server.http.connections import FRAGMENTS, SLICE, DoorConfig, LimitedSocket

MANY = 30_000
SMALLEST = 6  # bytes of a frame from a client that carries nothing


def frame(opcode: Opcode, data: bytes = b"", *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


class Flooded:
    """An application that counts messages, beside a task that counts turns of the event loop."""

    def __init__(self) -> None:
        self.taken = self.pings = 0
        self.most_between_turns = 0
        self.turns = 0
        self._at = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "websocket"
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] == "websocket.receive":
            self.taken += 1

    async def take_turns(self) -> None:
        while True:
            self.turns += 1
            done = self.taken + self.pings
            self.most_between_turns = max(self.most_between_turns, done - self._at)
            self._at = done
            await asyncio.sleep(0)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(HANG_S):
            while self.taken + self.pings < count:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def flooded() -> AsyncGenerator[tuple[Flooded, asyncio.StreamReader, asyncio.StreamWriter]]:
    """Serve a `Flooded` as the server serves its sockets; give the far end of one."""
    app = Flooded()
    config = DoorConfig(app, Doorstep(DoorLimits()), lifespan="off", port=0, log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(HANG_S):
        while not server.started:
            await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    key = base64.b64encode(os.urandom(16)).decode()
    writer.write(
        f"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    turns = asyncio.create_task(app.take_turns())
    try:
        yield app, reader, writer
    finally:
        turns.cancel()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        server.should_exit = True
        await serving


async def test_between_two_messages_everybody_has_a_turn() -> None:
    """Found by a hostile client: one socket's messages kept everybody waiting for seconds."""
    async with flooded() as (app, _, writer):
        writer.write(frame(Opcode.TEXT, b"x") * MANY)
        await app.until(MANY)
        assert app.taken == MANY, "a message was lost"
        assert app.most_between_turns <= 2


async def test_pings_are_answered_a_slice_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by a hostile client: pings of the protocol itself held the server for half a minute."""
    async with flooded() as (app, reader, writer):
        answer = LimitedSocket.handle_ping

        def counted(of: LimitedSocket) -> None:
            app.pings += 1
            answer(of)

        monkeypatch.setattr(LimitedSocket, "handle_ping", counted)
        reading = asyncio.create_task(reader.read(2 * MANY))
        writer.write(frame(Opcode.PING) * MANY)
        await app.until(MANY)
        assert app.most_between_turns <= 2 + SLICE // SMALLEST
        reading.cancel()


async def test_large_messages_arrive_whole_and_in_order() -> None:
    """What is read in slices is what was sent, also when it was sent at once and the sender left."""
    async with flooded() as (app, _, writer):
        for size in (0, 1, SLICE - 8, SLICE, 5 * SLICE + 1):
            writer.write(frame(Opcode.TEXT, b"x" * size, fin=False) + frame(Opcode.CONT, b"y"))
        writer.write(frame(Opcode.CLOSE, struct.pack("!H", 1000)))
        writer.write_eof()
        await app.until(5)
        assert app.taken == 5


async def test_a_message_of_endless_fragments_is_refused() -> None:
    """Empty fragments have no size that a limit of size would meet."""
    async with flooded() as (app, reader, writer):
        writer.write(
            frame(Opcode.TEXT, b"", fin=False) + frame(Opcode.CONT, b"", fin=False) * (2 * FRAGMENTS)
        )
        async with asyncio.timeout(HANG_S):
            said = await reader.read()
        assert struct.pack("!H", 1009) in said
        assert app.taken == 0
