"""What a server may send and ask for, over every transport (PT-17, PT-19, PT-23): it holds up and fills nothing."""

import asyncio
import contextlib
import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from support.hostile_http import EVENTS, head, hostile_http, result
from support.mcp_servers import raw_spec
from support.patience import patience

from bowerbird.protocols.mcp_client import McpClient, ServerSpec
from bowerbird.protocols.mcp_client.http_bounds import log_rarely
from bowerbird.protocols.mcp_client.messages import read_message
from bowerbird.tools import ToolResult

from .conftest import Connect
from .test_mcp_calls import call, said, tools_of


async def answered(connect: Connect, url: str) -> ToolResult:
    tools = await tools_of(await connect(ServerSpec(name="h", transport="streamable_http", url=url)))
    return await call(tools["go"])


async def test_an_answer_over_http_without_an_end_is_not_kept(connect: Connect) -> None:
    """It was read until the clock of the call ran out: a gigabyte in five seconds."""
    sent = 0

    async def endless(writer: asyncio.StreamWriter, _: Any) -> None:
        nonlocal sent
        writer.write(head())
        while True:
            writer.write(b"x" * (1 << 20))
            await writer.drain()
            sent += 1 << 20
            assert sent < 200 << 20, "it is still being read"

    async with hostile_http(endless) as url:
        got = await answered(connect, url)
    assert got.is_error and "a message of the server is over 16 MiB" in got.text


@pytest.mark.parametrize("events", [False, True], ids=["json", "events"])
async def test_an_answer_over_http_of_many_parts_is_not_read(connect: Connect, events: bool) -> None:
    """Five million empty lists held up everybody for seven seconds, and took 1.7 GB."""

    async def many(writer: asyncio.StreamWriter, number: Any) -> None:
        message = result(number, b'{"content":[],"structuredContent":{"a":[%s1]}}' % (b"[]," * 200_000))
        writer.write(EVENTS + b"data: " + message + b"\n\n" if events else head() + message)
        await writer.drain()

    async with hostile_http(many) as url:
        got = await answered(connect, url)
    assert got.is_error
    assert events or "a message of the server has over 100,000 parts" in got.text


@pytest.mark.parametrize("events", [False, True], ids=["json", "events"])
async def test_a_large_answer_over_http_is_an_answer(connect: Connect, events: bool) -> None:
    """As a stream of events it was lost above 1 MiB."""
    text = "many, words " * 250_000

    async def large(writer: asyncio.StreamWriter, number: Any) -> None:
        message = result(number, json.dumps({"content": [{"type": "text", "text": text}]}).encode())
        writer.write(
            EVENTS + b": hello\r\n\r\ndata: " + message + b"\r\n\r\n" if events else head() + message
        )
        await writer.drain()

    async with hostile_http(large) as url:
        got = await answered(connect, url)
    assert not got.is_error and said(got).startswith("many, words many")


async def test_a_compressed_answer_does_not_grow_here(connect: Connect) -> None:
    async def compressed(writer: asyncio.StreamWriter, number: Any) -> None:
        message = result(number, b'{"content":[]' + b" " * (64 << 20) + b"}")
        writer.write(head(content_encoding="gzip") + gzip.compress(message, 1))
        await writer.drain()

    async with hostile_http(compressed) as url:
        got = await answered(connect, url)
    assert got.is_error and "compressed" in got.text


async def test_questions_without_end_over_http_end_the_connection(connect: Connect) -> None:
    """Each was a task that waited for its answer to be sent: 25 MB a second."""

    async def asking(writer: asyncio.StreamWriter, _: Any) -> None:
        writer.write(EVENTS)
        with contextlib.suppress(ConnectionError):
            for number in range(100_000):
                asked = {"jsonrpc": "2.0", "id": f"q{number}", "method": "roots/list"}
                writer.write(f"data: {json.dumps(asked)}\n\n".encode())
                await writer.drain()

    async with hostile_http(asking) as url:
        got = await answered(connect, url)
    assert got.is_error and "was lost during this call" in got.text


async def test_questions_without_end_over_stdio_end_the_connection(connect: Connect, tmp_path: Path) -> None:
    client = await connect(raw_spec(tmp_path / "notes", "nosy", call_timeout_s=20.0))
    got = await call((await tools_of(client))["wait"])
    assert got.is_error and "was lost during this call" in got.text
    assert "over 200 things at once" in (await client.server("raw")).ring.text
    again = await call((await tools_of(client))["echo"], text="hi")
    assert said(again) == "hi"


async def test_patterns_that_take_minutes_to_read_hold_up_nobody(connect: Connect, tmp_path: Path) -> None:
    """Twenty schemas of 3 KB, allowed by every other bound, held up everybody for fifty seconds."""
    from support.heartbeat import heartbeat

    client = await connect(raw_spec(tmp_path / "notes", "patterns"))
    async with heartbeat() as heart:
        found = await client.gather()
    names = {tool.name for tool in found.tools}
    assert "mcp__raw__echo" in names and "mcp__raw__pattern0" not in names
    assert any("pattern0: its patterns take too long to read" in warning for warning in found.warnings)
    assert heart.own < 1.0


async def test_a_schema_with_a_pattern_is_offered_and_with_a_wrong_one_is_not(
    connect: Connect, tmp_path: Path
) -> None:
    client = await connect(raw_spec(tmp_path / "notes", "dated"))
    found = await client.gather()
    names = {tool.name for tool in found.tools}
    assert "mcp__raw__dated" in names and "mcp__raw__misdated" not in names
    assert any("misdated: it is not a JSON Schema" in warning for warning in found.warnings)


async def test_tools_beyond_the_five_hundredth_are_told_of_and_can_be_chosen(
    connect: Connect, tmp_path: Path
) -> None:
    """They were left out without a word, also where settings named one of them."""
    found = await (await connect(raw_spec(tmp_path / "notes", "many"))).gather()
    assert sum(tool.name.startswith("mcp__raw__") for tool in found.tools) <= 500
    [said] = [warning for warning in found.warnings if "first 500 tools" in warning]
    assert "mcp_servers.raw.allow" in said
    chosen = await (await connect(raw_spec(tmp_path / "notes", "many", allow=("n599", "zulu")))).gather()
    assert {tool.name for tool in chosen.tools} == {"mcp__raw__n599", "mcp__raw__zulu"}
    assert chosen.warnings == ()


@pytest.mark.parametrize("http", [False, True], ids=["line", "http"])
async def test_half_of_a_character_costs_that_character_only(connect: Connect, http: bool) -> None:
    """A server that cuts text by UTF-16 units sends it; the answer was dropped and the call waited a minute."""
    text = rb'{"content":[{"type":"text","text":"cut \ud83d, whole \ud83d\ude00, \\\\ud83d"}]}'

    async def cut(writer: asyncio.StreamWriter, number: Any) -> None:
        writer.write(head() + result(number, text))
        await writer.drain()

    if http:
        async with hostile_http(cut) as url:
            shown = said(await answered(connect, url))
    else:
        message: Any = read_message(result(1, text))
        shown = message.result["content"][0]["text"]
    assert shown == "cut \ufffd, whole \U0001f600, \\\\ud83d"


def test_what_the_sdk_complains_of_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """It writes a traceback for each event that is no message."""
    log_rarely()
    for _ in range(500):
        logging.getLogger("mcp.client.streamable_http").error("Error parsing SSE message")
    assert 0 < len(caplog.records) <= 10


async def test_servers_that_cling_to_their_sessions_hold_up_the_end_once_and_briefly() -> None:
    """Each was waited for 8 s, and a command did not return."""

    async def never(_: asyncio.StreamWriter, __: Any) -> None:
        raise AssertionError("nothing is called")

    async with hostile_http(never, clings=True) as url:
        specs = [ServerSpec(name=f"h{n}", transport="streamable_http", url=url) for n in range(4)]
        client = McpClient(specs)
        assert len((await client.gather()).tools) == len(specs)
        async with asyncio.timeout(patience(1.4)):
            await client.aclose()
