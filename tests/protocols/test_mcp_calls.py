"""Calls of MCP tools: results, broken connections, cancelling, questions (PT-19 … PT-23, TO-52)."""

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from support.mcp_servers import PNG, http_server, noted, raw_spec, sdk_server, sdk_spec
from support.patience import HANG_S, patience

from bowerbird.core.messages import ImageBlock, TextBlock
from bowerbird.protocols.mcp_client import McpClient, ServerSpec
from bowerbird.tools import Tool, ToolResult
from bowerbird.tools.context import ToolContext


async def tools_of(client: McpClient) -> dict[str, Tool]:
    return {tool.name.rpartition("__")[2]: tool for tool in (await client.gather()).tools}


async def call(tool: Tool, context: ToolContext | None = None, **arguments: Any) -> ToolResult:
    return await tool.call(arguments, context or ToolContext())


def said(result: ToolResult) -> str:
    """The server's own words, without the mark of untrusted text."""
    lines = result.text.splitlines()
    assert lines[0].startswith("<untrusted_content") and lines[-2] == "</untrusted_content>", result.text
    return "\n".join(lines[1:-2])


async def until_noted(notes: Path, key: str, count: int = 1) -> list[Any]:
    async with asyncio.timeout(HANG_S):
        while len(found := noted(notes, key)) < count:
            await asyncio.sleep(0.01)
    return found


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_results_are_the_same_over_both_transports(connect: Any, transport: str) -> None:
    """PT-19, PT-21: text, structured content where there is no text, images, errors; all of it tainted."""
    kept: list[tuple[bytes, str]] = []

    async def store_blob(content: bytes, kind: str) -> str:
        kept.append((content, kind))
        return "sha256:x"

    async def check(spec: ServerSpec) -> None:
        tools = await tools_of(await connect(spec))
        assert [*tools] == sorted(tools)
        summed = await call(tools["add"], a=1, b=2)
        assert json.loads(said(summed)) == {"sum": 3} and summed.data == {"sum": 3}
        assert said(await call(tools["echo"], text="hällo")) == "hällo"
        picture = await call(tools["picture"], ToolContext(store_blob=store_blob))
        assert isinstance(picture.content, list)
        assert [type(block) for block in picture.content] == [TextBlock, ImageBlock]
        assert kept == [(PNG, "image/png")]
        broken = await call(tools["broken"])
        assert broken.is_error and said(broken) == "Error executing tool broken"
        assert summed.tainted and picture.tainted and broken.tainted

    if transport == "stdio":
        await check(sdk_spec())
    else:
        with http_server(sdk_server()) as url:
            await check(ServerSpec(name="sdk", transport="streamable_http", url=url))


async def test_images_over_5_mib_and_damaged_ones_become_a_line() -> None:
    """PT-21."""
    from mcp_types import AudioContent, CallToolResult, ImageContent, ResourceLink

    from bowerbird.protocols.mcp_client.results import to_tool_result

    async def store_blob(_content: bytes, _kind: str) -> str:
        return "sha256:x"

    large = base64.b64encode(bytes((5 << 20) + 1)).decode()
    answer = CallToolResult(
        content=[
            ImageContent(type="image", data=large, mime_type="image/png"),
            ImageContent(type="image", data="%%%%", mime_type="image/png"),
            ImageContent(type="image", data="AAAA", mime_type="image/svg+xml"),
            AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
            ResourceLink(type="resource_link", name="log", uri="file:///log.txt", description="the log"),
        ]
    )
    result = await to_tool_result(answer, "mcp://x/y", store_blob, lambda text: text)
    assert said(result).splitlines() == [
        "[image/png, 5,242,881 bytes; images over 5 MiB are not shown]",
        "[image/png; its data are damaged]",
        "[image/svg+xml, 3 bytes; not shown]",
        "[audio/wav, 3 bytes; not shown]",
        "[resource file:///log.txt, log: the log]",
    ]


async def test_a_long_result_is_cut_and_its_rest_kept(connect: Any, tmp_path: Path) -> None:
    """PT-21, TO-8: 50,000 characters; the whole is where the marker says."""
    spilled: list[str] = []

    async def spill(_name: str, text: str) -> str:
        spilled.append(text)
        return "/.spill/x"

    tools = await tools_of(await connect(raw_spec(tmp_path / "notes")))
    result = await call(tools["huge"], ToolContext(spill=spill))
    assert len(result.text) <= 50_000 and result.truncated and "/.spill/x" in result.text
    assert spilled[0].count("line of text") == 10_000


async def test_a_lost_connection_leaves_the_effect_unknown_and_is_made_anew(
    connect: Any, tmp_path: Path
) -> None:
    """PT-22: not repeated, because nobody knows whether it happened; the next call works."""
    notes = tmp_path / "notes"
    tools = await tools_of(await connect(raw_spec(notes)))
    lost = await call(tools["die"])
    assert lost.is_error and "whether it took effect is unknown" in lost.text
    assert said(await call(tools["echo"], text="again")) == "again"
    assert noted(notes, "called") == ["die", "echo"] and len(noted(notes, "started")) == 2


@pytest.mark.parametrize(
    ("tool", "trusted", "calls"),
    [
        pytest.param("put", True, 2, id="trusted-idempotent"),
        pytest.param("peek", True, 2, id="trusted-read-only"),
        pytest.param("put", False, 1, id="untrusted-idempotent"),
        pytest.param("peek", False, 1, id="untrusted-read-only"),
        pytest.param("zulu", True, 1, id="trusted-plain"),
    ],
)
async def test_only_what_a_trusted_server_calls_repeatable_is_repeated(
    connect: Any, tmp_path: Path, tool: str, trusted: bool, calls: int
) -> None:
    """PT-22: repeated once if `keyed` or trusted read-only."""
    notes = tmp_path / "notes"
    tools = await tools_of(await connect(raw_spec(notes, "forgetful", trusted=trusted)))
    result = await call(tools[tool], **({"text": "x"} if tool == "put" else {}))
    assert noted(notes, "called") == [tool] * calls
    assert result.is_error == (calls == 1)


async def test_a_call_out_of_time_is_cancelled_at_the_server_while_others_go_on(
    connect: Any, tmp_path: Path
) -> None:
    """PT-22, TO-52."""
    notes = tmp_path / "notes"
    tools = await tools_of(await connect(raw_spec(notes, call_timeout_s=2)))
    waiting = asyncio.create_task(call(tools["wait"]))
    await until_noted(notes, "called")
    assert said(await call(tools["echo"], text="meanwhile")) == "meanwhile"
    result = await waiting
    assert result.is_error and "did not finish within 2 s" in result.text
    assert "notifications/cancelled" in await until_noted(notes, "heard", 2)
    assert len(noted(notes, "started")) == 1


async def test_a_cancelled_call_ends_at_once_and_tells_the_server(connect: Any, tmp_path: Path) -> None:
    """PT-22: within 100 ms; the bound here is five times that, for a busy machine."""
    notes = tmp_path / "notes"
    tools = await tools_of(await connect(raw_spec(notes)))
    waiting = asyncio.create_task(call(tools["wait"]))
    await until_noted(notes, "called")
    began = time.monotonic()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert time.monotonic() - began < patience(2) and waiting.cancelled()
    assert "notifications/cancelled" in await until_noted(notes, "heard", 2)


async def test_a_http_server_that_forgot_the_session_is_asked_anew() -> None:
    """PT-22 over HTTP: after a restart of the server the next call works, on a connection of its own."""
    client: McpClient | None = None
    try:
        with http_server(sdk_server()) as url:
            client = McpClient([ServerSpec(name="sdk", transport="streamable_http", url=url)])
            tools = await tools_of(client)
            port = int(url.split(":")[2].split("/")[0])
        refused = await call(tools["echo"], text="nobody")
        assert refused.is_error
        with http_server(sdk_server(), port=port):
            assert said(await call(tools["echo"], text="back")) == "back"
    finally:
        if client is not None:
            await client.aclose()


# ---------------------------------------------------------------- what servers ask

CHOICE = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
}


class Person:
    """Answers, and remembers what was asked."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def __call__(self, text: str, options: tuple[str, ...]) -> str | None:
        self.asked.append((text, options))
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Blue", {"action": "accept", "content": {"colour": "blue"}}),
        ("green", {"action": "decline"}),
        (None, {"action": "decline"}),
    ],
)
async def test_a_question_of_the_server_goes_to_the_person(
    connect: Any, tmp_path: Path, answer: str | None, expected: Any
) -> None:
    """PT-23: an answer that does not fit is none."""
    tools = await tools_of(await connect(raw_spec(tmp_path / "notes")))
    person = Person(answer)
    result = await call(tools["ask"], ToolContext(ask=person), schema=CHOICE)
    assert json.loads(said(result)) == expected
    assert person.asked == [("The MCP server raw asks: Which colour?\ncolour", ("red", "blue"))]


async def test_where_nobody_can_answer_the_question_is_declined(connect: Any, tmp_path: Path) -> None:
    """PT-23."""
    tools = await tools_of(await connect(raw_spec(tmp_path / "notes")))
    assert json.loads(said(await call(tools["ask"], schema=CHOICE))) == {"action": "decline"}


async def test_a_question_that_may_belong_to_another_session_is_shown_to_nobody(
    connect: Any, tmp_path: Path
) -> None:
    """PT-23, PT-24: one client serves all sessions, and this transport does not name the call."""
    notes = tmp_path / "notes"
    tools = await tools_of(await connect(raw_spec(notes)))
    other = asyncio.create_task(call(tools["wait"]))
    await until_noted(notes, "called")
    person = Person("red")
    result = await call(tools["ask"], ToolContext(ask=person), schema=CHOICE)
    other.cancel()
    assert json.loads(said(result)) == {"action": "decline"} and person.asked == []


async def test_an_input_required_result_is_asked_and_the_call_finished(connect: Any) -> None:
    """PT-23, the form of 2026-07-28; here the question is known to belong to its call."""
    with http_server(sdk_server()) as url:
        tools = await tools_of(await connect(ServerSpec(name="sdk", transport="streamable_http", url=url)))
        person, nobody = Person("red"), Person(None)
        painted, not_painted = await asyncio.gather(
            call(tools["paint"], ToolContext(ask=person)), call(tools["paint"], ToolContext(ask=nobody))
        )
    assert (said(painted), said(not_painted)) == ("painted red", "not painted")
    assert len(person.asked) == len(nobody.asked) == 1


async def test_the_clock_of_a_call_stands_still_while_a_person_thinks(connect: Any, tmp_path: Path) -> None:
    thinking = asyncio.Event()

    async def slow(_text: str, _options: tuple[str, ...]) -> str:
        asyncio.get_running_loop().call_later(2.1, thinking.set)
        await thinking.wait()
        return "red"

    tools = await tools_of(await connect(raw_spec(tmp_path / "notes", call_timeout_s=2)))
    result = await call(tools["ask"], ToolContext(ask=slow), schema=CHOICE)
    assert json.loads(said(result))["action"] == "accept"


async def test_sampling_is_not_even_announced_unless_settings_allow_it(connect: Any, tmp_path: Path) -> None:
    """PT-23: nor are roots."""
    notes = tmp_path / "notes"
    tools = await tools_of(await connect(raw_spec(notes)))
    assert set(noted(notes, "capabilities")[0]) == {"elicitation"}
    assert json.loads(said(await call(tools["think"])))["message"] == "Sampling not supported"


# ---------------------------------------------------------------- secrets


async def test_a_server_sees_its_own_variables_only_and_cannot_echo_its_secrets(
    connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PT-24, CF-79, CF-80."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-for-servers")
    env = {"TRACKER_TOKEN": "planted-0123456789", "MODE": "quick"}
    spec = raw_spec(tmp_path / "notes", env=env, cwd=str(tmp_path))
    tools = await tools_of(await connect(spec))
    result = await call(tools["environment"])
    seen = json.loads(said(result))
    assert noted(tmp_path / "notes", "cwd") == [str(tmp_path)]
    assert seen["MODE"] == "quick" and seen["TRACKER_TOKEN"] == "[redacted:secret]"
    assert set(seen) <= {
        "HOME",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "USER",
        "MODE",
        "TRACKER_TOKEN",
        "LC_CTYPE",
        "LC_ALL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
    }
    assert "planted-0123456789" not in repr(spec)


async def test_headers_go_to_the_server_and_not_into_messages(connect: Any) -> None:
    """CF-79."""
    seen: list[dict[str, str]] = []
    with http_server(sdk_server(), seen) as url:
        spec = ServerSpec(
            name="sdk",
            transport="streamable_http",
            url=url,
            headers={"Authorization": "Bearer planted-0123456789"},
        )
        tools = await tools_of(await connect(spec))
        result = await call(tools["echo"], text="the token is planted-0123456789")
    assert {headers.get("authorization") for headers in seen} == {"Bearer planted-0123456789"}
    assert said(result) == "the token is [redacted:secret]" and "planted" not in repr(spec)
