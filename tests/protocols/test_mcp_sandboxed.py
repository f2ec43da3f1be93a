"""Servers of `sandbox: true`: on the branch, in its sandbox, for the length of a turn (PT-23, PT-24)."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.killed_app import application
from support.mcp_servers import RAW, is_running
from support.patience import patience

from bowerbird.app import Application
from bowerbird.core.events import Notice
from bowerbird.sessions import NewSession

MODEL = "anthropic:claude-sonnet-4-5"


def calls(*made: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"tools": [{"name": f"mcp__apart__{name}", "input": arguments} for name, arguments in made]}


@asynccontextmanager
async def opened(directory: Path, fake: FakeModels, **more: Any) -> AsyncIterator[Application]:
    (directory / "project").mkdir()
    shutil.copy(RAW, directory / "project" / "server.py")
    entry = {
        "command": "python3", "args": ["server.py", ".notes"], "sandbox": True, "approval": "allow",
        "start_timeout": 60,
    }  # fmt: skip
    flags = {
        "provider.api_key": "k", "provider.base_url": fake.anthropic_url, "mcp_servers": {"apart": entry}, **more
    }  # fmt: skip
    async with application(directory, flags, MODEL) as application_:
        yield application_


async def turn(application_: Application, directory: Path, thread: str = "") -> tuple[str, list[Any]]:
    """One turn; the notices that its viewers saw."""
    sessions = application_.sessions
    if not thread:
        thread = (await sessions.create(NewSession(workspace=str(directory / "project")))).thread_id
    await application_.drive(thread)
    seen: list[Any] = []
    with sessions.subscribe(thread) as news:

        async def watch() -> None:
            while True:
                seen.append((await anext(news)).event)

        watching = asyncio.create_task(watch())
        receipt = await sessions.submit(thread, "go")
        async with asyncio.timeout(patience(18)):
            assert (await sessions.wait(receipt.turn_id)).state == "done"
        watching.cancel()
    return thread, [event for event in seen if isinstance(event, Notice)]


async def outcomes(application_: Application, thread: str) -> list[str]:
    history = await application_.sessions.history(thread)
    return [json.dumps(r.body["content"]) for r in history if r.type == "tool_outcome"]


async def branch_of(application_: Application, thread: str) -> Any:
    from bowerbird.store.rows.sessions import get_session

    return await application_.branches.of(await application_.store.read(lambda c: get_session(c, thread)))


async def test_a_sandboxed_server_works_on_the_branch_and_ends_with_the_turn(
    fake: FakeModels, tmp_path: Path
) -> None:
    """Its changes are the branch's and nobody else's; only such a server is told a root."""
    async with opened(tmp_path, fake) as application_:
        status = await application_.sandboxes.status()
        if status.tier == "none":
            pytest.skip(f"no process tier here: {status.reasons}")
        fake.script(calls(("touch", {"text": "made.txt"})), calls(("where", {})), {"text": "done"})
        thread, _ = await turn(application_, tmp_path)
        made, where = await outcomes(application_, thread)
        branch = await branch_of(application_, thread)
        changes = await asyncio.to_thread(branch.changes)
        assert "made" in made and "/made.txt" in changes.written
        assert f"file://{tmp_path / 'project'}" in where
        assert sorted(p.name for p in (tmp_path / "project").iterdir()) == ["server.py"]
        notes = (await branch.read_bytes("/.notes")).decode()
        assert '"roots"' in notes and '"ended": "stdin"' in notes
        pids = {json.loads(line)["pid"] for line in notes.splitlines()}
        assert len(pids) == 1 and not application_.sandboxes.is_busy(branch.id)
        # The next turn has a server of its own.
        fake.script(calls(("echo", {"text": "again"})), {"text": "done"})
        await turn(application_, tmp_path, thread)
        assert "again" in (await outcomes(application_, thread))[-1]
    assert not any("server.py" in line for line in command_lines())


def command_lines() -> list[str]:
    found: list[str] = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            line = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if is_running(int(directory.name)) and ".notes" in line:
            found.append(line)
    return found


async def test_without_a_process_tier_it_is_left_out_and_never_run_outside(
    fake: FakeModels, tmp_path: Path
) -> None:
    """Law 6."""
    async with opened(tmp_path, fake, **{"sandbox.tier": "none"}) as application_:
        fake.script(calls(("echo", {"text": "x"})), {"text": "done"})
        thread, notices = await turn(application_, tmp_path)
        [outcome] = await outcomes(application_, thread)
    assert "no tool is named" in outcome and not (tmp_path / "project" / ".notes").exists()
    assert [n for n in notices if "MCP server apart is left out of this turn" in n.text]
