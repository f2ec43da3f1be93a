"""`bowerbird mcp serve` with the registry of the program itself, over a vendor's wire on loopback (PT-4, PT-6)."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_wires import AgentWires
from support.mcp_clients import stdio
from support.patience import HANG_S, patience

pytestmark = pytest.mark.timeout(patience(90))

KEY = "sk-SECRET-0123456789abcdef"
SERVE = [sys.executable, "-m", "bowerbird", "mcp", "serve"]


@pytest.fixture
async def wires() -> AsyncIterator[AgentWires]:
    async with AgentWires().serving() as served:
        yield served


def environment(place: Path, url: str) -> dict[str, str]:
    (place / ".bowerbird").mkdir(exist_ok=True)
    (place / ".bowerbird/config.yaml").write_text(
        f"providers: {{claude: {{base_url: '{url}', api_key: {KEY}}}}}\n"
    )
    return {"HOME": str(place), "PATH": os.environ["PATH"]}


async def call(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert result.structured_content is not None
    assert result.is_error == (result.structured_content["status"] == "error")
    return result.structured_content


async def test_a_second_process_reads_what_was_asked_and_answered(wires: AgentWires, tmp_path: Path) -> None:
    """Acceptance 2 and 3: question and answer from the store; a refused key fails without being shown."""
    env = environment(tmp_path, wires.url)
    async with asyncio.timeout(HANG_S):
        async with stdio(SERVE, str(tmp_path), env) as client:
            agents = await call(client, "list_agents")
            assert agents["agents"][0]["name"] == "claude"
            assert agents["count"] == len(agents["agents"])
            ran = await call(client, "execute_agent", agent_name="claude", prompt="hi")
            assert ran["content"] == "hello there"
        async with stdio(SERVE, str(tmp_path), env, "legacy") as client:
            memory = await call(client, "get_agent_memory", session_id=ran["session_id"])
            assert [log["content"] for log in memory["logs"]] == ["hi", "hello there"]
            wires.status, wires.said = 401, f"no such key: {KEY}"
            failed = await call(client, "execute_agent", agent_name="claude", prompt="hi")
            assert failed["message"].startswith("Failed to execute agent claude: ")
            assert KEY not in failed["message"]


async def test_kill_9_in_a_run_leaves_the_question(tmp_path: Path) -> None:
    """PT-6, PR-30: the next process tells what was asked; nothing has to be mended first."""
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        writer.close()

    vendor = await asyncio.start_server(silent, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{vendor.sockets[0].getsockname()[1]}"
    env = environment(tmp_path, url)
    said = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        '"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
        '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_agent",'
        '"arguments":{"agent_name":"claude","prompt":"remember me"}}}\n'
    )
    process = await asyncio.create_subprocess_exec(
        *SERVE, cwd=tmp_path, env=env, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        process.stdin.write(said.encode())
        async with asyncio.timeout(HANG_S):
            await asked.wait()
    finally:
        process.kill()
        await process.wait()
        vendor.close()
    import sqlite3

    [database] = tmp_path.rglob("*.db")
    with sqlite3.connect(database) as rows:
        [(session_id,)] = rows.execute("select session_id from provider_sessions").fetchall()
    async with asyncio.timeout(HANG_S), stdio(SERVE, str(tmp_path), env) as client:
        memory = await call(client, "get_agent_memory", session_id=session_id)
    assert memory["logs"] == [{"role": "user", "content": "remember me"}]
