"""Runs every vendor's agent that is installed, on a branch, against a scripted model; prints one row each.

    python benchmarks/real_agents.py --data DIR [--agent NAME …] [--transport acp]
    python benchmarks/real_agents.py --data DIR --kills [--agent NAME …] [--transport acp]

`DIR` is a data directory in which `bowerbird agents install` or `scripts/install_agents.py` put agents. A row
says: version, transport, what it wrote, tokens, whether the session went on, and what cancel, a timeout, a wrong
key and a host that does not answer came to; over ACP also whether it had the tools of an MCP server that it
was lent. With `--kills` it says what was left after a time limit, a cancelled run and kill -9 of the server in
the middle of the work (`agent_kills.py`). The rows are JSON, then one table. Nothing leaves this machine.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from agent_kills import kills
from scripted_models import KEY, Scripted, scripted

from bowerbird.config.sections.agent import ProviderEntry
from bowerbird.core.ids import new_id
from bowerbird.protocols.mcp_client import McpClient, ServerSpec
from bowerbird.protocols.mcp_client.lending import lend
from bowerbird.providers.catalogue import CATALOGUE
from bowerbird.providers.contract.types import AgentRequest, AgentResponse, BranchRef
from bowerbird.providers.programs.agent import ProgramAgent, program_agent
from bowerbird.providers.programs.finding import find_programs, search_path
from bowerbird.providers.programs.ground import ProgramGround, branches_of
from bowerbird.providers.programs.vendors import VENDORS
from bowerbird.sandbox.host import PROGRAMS, SandboxHost
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Workspace

_PATHS = {"claude_code": "", "gemini": ""}
_MODELS = {"gemini": "gemini-2.5-pro", "claude_code": "claude-sonnet-5", "codex_cli": "gpt-5.3-codex"}
_PROMPT = "Write made.txt and remove gone.txt."
_ADDS = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("adds")
@server.tool()
def add_up(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
server.run("stdio")
"""


async def row(name: str, place: Path, data: Path, model: Scripted, transport: str) -> dict[str, object]:
    """Return what was seen of one agent."""
    given = {**_provider(name, model, transport), "mcp_servers": ["adds"] if transport == "acp" else []}
    settings = ProviderEntry.model_validate(given)
    (place / "ws").mkdir(parents=True)
    (place / "ws/gone.txt").write_text("one\ntwo\n")
    (place / "data").mkdir()
    (place / "data" / PROGRAMS).symlink_to(data / PROGRAMS)
    shown = SandboxSettings(read_only=(str((data / PROGRAMS).resolve()),))
    with Workspace(place / "ws", data_dir=place / "data") as workspace:
        host = SandboxHost(place / "data", shown)
        adds = ServerSpec(
            name="adds", transport="stdio", command=sys.executable, args=("-c", _ADDS), approval="allow",
            env={"ADDS_TOKEN": KEY}, start_timeout_s=60,
        )  # fmt: skip
        servers = McpClient([adds])
        ground = ProgramGround(
            place / "data",
            host,
            branches_of(workspace),
            lender=lambda *names, **more: lend(servers, *names, **more),
        )
        agent = program_agent(CATALOGUE[name], settings, ground)
        try:
            return await _seen(name, agent, workspace, place, model)
        finally:
            await agent.close()
            await servers.aclose()
            await host.close()


def _provider(name: str, model: Scripted, transport: str) -> dict[str, object]:
    url = model.url + _PATHS.get(name, "/v1")
    return {"api_key": KEY, "base_url": url, "model": _MODELS.get(name, "scripted"), "transport": transport}


async def _seen(
    name: str, agent: ProgramAgent, workspace: Workspace, place: Path, model: Scripted
) -> dict[str, object]:
    probe = await agent.probe()
    found: dict[str, object] = {"agent": name, "version": probe.version}
    model.mode, model.edits = "fine", name == "aider"
    model.asked.clear()
    session = new_id("sess")
    first = await agent.execute(AgentRequest(_PROMPT, session_id=session, timeout=120))
    found["transport"] = first.metadata.get("transport")
    found["fallback"] = first.metadata.get("fallback")
    found["answer"] = (first.error or first.content)[:300]
    found["success"] = first.success
    found["tokens"] = first.tokens_used
    found["calls"] = len(model.asked)
    if "mcp_servers" in first.metadata:
        found["tools lent"] = "listed" if first.metadata["mcp_servers"].get("listed") else "not asked for"
    found["seconds"] = round(first.execution_time, 1)
    found["changes"] = [first.changes.written, first.changes.deleted] if first.changes else None
    found["workspace untouched"] = (place / "ws/gone.txt").exists() and not (place / "ws/made.txt").exists()
    found["key found inside"] = _leaks(place)
    found["session continued"] = await _continued(agent, session, first, model)
    found["cancel"] = await _cancelled(agent, model, place)
    found["timeout"] = await _ends(agent, model, "hang", timeout=8)
    found["wrong key"] = await _ends(agent, model, "reject", timeout=90)
    return found


async def _continued(agent: ProgramAgent, session: str, first: AgentResponse, model: Scripted) -> str:
    native = first.metadata.get("native_session_id")
    if not native:
        return "no: it names no session"
    model.asked.clear()
    branch = BranchRef(str(first.metadata["branch_id"]))
    request = AgentRequest("And what did I ask first?", session_id=session, branch=branch,
                           native_session_id=str(native), timeout=120)  # fmt: skip
    second = await agent.execute(request)
    remembered = any(_PROMPT in json.dumps(body) for _, body in model.asked)
    return ("yes" if remembered and second.success else "no") + (
        f": {second.error[:200]}" if second.error else ""
    )


async def _cancelled(agent: ProgramAgent, model: Scripted, place: Path) -> str:
    model.mode = "hang"
    model.asked.clear()
    task = asyncio.create_task(agent.execute(AgentRequest(_PROMPT, timeout=60)))
    until = time.monotonic() + 40
    while not model.asked and time.monotonic() < until and not task.done():  # noqa: ASYNC110 - of another task
        await asyncio.sleep(0.05)
    started = time.monotonic()
    task.cancel()
    left = 0
    while time.monotonic() - started < 5 and (left := len(_marked(place))):  # noqa: ASYNC110 - processes
        await asyncio.sleep(0.01)
    took = (time.monotonic() - started) * 1000
    await asyncio.wait({task})
    return f"nothing left after {took:.0f} ms" if not left else f"{left} processes left"


async def _ends(agent: ProgramAgent, model: Scripted, mode: str, timeout: float) -> str:
    model.mode = mode
    started = time.monotonic()
    answer = await agent.execute(AgentRequest(_PROMPT, timeout=timeout))
    took = time.monotonic() - started
    return f"{took:.1f} s {answer.metadata.get('error_type')}: {(answer.error or answer.content)[:160]}"


def _marked(place: Path) -> list[str]:
    """Return the processes of runs on branches below `place`, by their variables."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                told = (entry / "environ").read_bytes()
                if b"BOWERBIRD_AGENT_RUN=" in told and str(place).encode() in told:
                    found.append(entry.name)
            except OSError:
                continue
    return found


def _leaks(place: Path) -> list[str]:
    """Return the files below `place` that hold the real key."""
    found: list[str] = []
    for top, folders, names in os.walk(place):
        folders[:] = [f for f in folders if not Path(top, f).is_symlink()]
        for name in names:
            try:
                if KEY.encode() in Path(top, name).read_bytes():
                    found.append(str(Path(top, name)))
            except OSError:
                continue
    return found


async def main(arguments: Sequence[str] | None = None) -> None:
    """Print the rows as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--agent", action="append", default=[])
    parser.add_argument("--transport", default="headless", choices=("auto", "acp", "headless"))
    parser.add_argument(
        "--kills", action="store_true", help="what is left when a run is killed in its middle"
    )
    chosen = parser.parse_args(arguments)
    rows: list[dict[str, object]] = []
    async with scripted() as model:
        for name in chosen.agent or VENDORS:
            path = search_path(chosen.data)
            programs = find_programs(CATALOGUE[name], ProviderEntry(), path)
            if (programs.acp if chosen.transport == "acp" else programs.headless) is None:
                print(json.dumps({"agent": name, "missing": True}), flush=True)
                continue
            os.environ["PATH"] = path
            with tempfile.TemporaryDirectory(dir=chosen.data, prefix="drill-") as place:
                if chosen.kills:
                    provider = _provider(name, model, chosen.transport)
                    seen = await kills(name, Path(place), (chosen.data / PROGRAMS).resolve(), provider, model)
                else:
                    seen = await row(name, Path(place), chosen.data, model, chosen.transport)
            rows.append(seen)
            print(json.dumps(seen), flush=True)
    print(_table(rows))


def _table(rows: Sequence[dict[str, object]]) -> str:
    """Return the rows as one table of Markdown."""
    names = list(dict.fromkeys(name for seen in rows for name in seen))
    lines = [names, ["---"] * len(names), *([str(seen.get(name, "")) for name in names] for seen in rows)]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', '/').replace(chr(10), ' ') for cell in line)} |" for line in lines
    )


if __name__ == "__main__":
    asyncio.run(main())
