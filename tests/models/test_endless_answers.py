"""A provider that never stops: an answer has a length after which nobody reads on (MO-31)."""

import asyncio
import json
import zlib
from collections.abc import Callable, Iterator

import pytest
from support.model_settings import HELLO, KEY

from bowerbird.core.errors import ModelError
from bowerbird.models import ModelSettings, ProviderSettings, RetryPolicy, open_model

PIECE = 1 << 20
PIECES = 160  # twice as much as an answer may have
EVENT = json.dumps({"choices": [{"index": 0, "delta": {"content": "a" * 1000}}]}).encode()


def one_line() -> Iterator[bytes]:
    yield b"data: "
    for _ in range(PIECES):
        yield b"a" * PIECE


def comments() -> Iterator[bytes]:
    for _ in range(PIECES):
        yield b": still here\n\n" * (PIECE // 14)


def events() -> Iterator[bytes]:
    for _ in range(PIECES):
        yield (b"data: " + EVENT + b"\n\n") * (PIECE // (len(EVENT) + 8))


def packed() -> Iterator[bytes]:
    """A few hundred KB on the wire."""
    packer = zlib.compressobj(wbits=31)
    for piece in one_line():
        yield packer.compress(piece)
    yield packer.flush()


@pytest.mark.parametrize("body", [one_line, comments, events, packed])
async def test_an_answer_without_an_end_is_given_up_and_not_asked_for_again(
    body: Callable[[], Iterator[bytes]],
) -> None:
    """Found by a hostile provider: one line without an end, or a packed one, filled the memory."""
    asked, ended = 0, 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked, ended
        asked += 1
        await reader.readuntil(b"\r\n\r\n")
        coded = "content-encoding: gzip\r\n" if body is packed else ""
        writer.write(
            f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{coded}connection: close\r\n\r\n".encode()
        )
        try:
            for piece in body():
                writer.write(piece)
                await writer.drain()
            ended += 1
        except ConnectionError:  # nobody reads on: what this is about
            pass
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        settings = ModelSettings(
            providers={"openai": ProviderSettings(base_url=url, api_key=KEY)}, retry=RetryPolicy(2)
        )
        model = open_model("openai:m", settings)
        with pytest.raises(ModelError, match="longer than") as caught:
            async for _ in model.stream(HELLO):
                pass
        await model.aclose()
    assert caught.value.kind == "server" and not caught.value.retryable
    assert asked == 1
    assert body is packed or ended == 0
