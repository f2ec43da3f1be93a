"""`bowerbird agents …`: other vendors' agents (PR-8, PR-30), here or on a server.

Here: the commands. Not here: options (`options/agent_options.py`), agents (`providers/`).
"""

import sys
from collections.abc import Mapping
from typing import Any

from bowerbird.cli.client.opening import with_client
from bowerbird.cli.client.protocol import Client, Row
from bowerbird.cli.terminal.exits import DONE, FAILED, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import harmless, harmless_path, money, one_line, table

PROMPT_SHOWN = 50
DETAIL_SHOWN = 100
PATHS_SHOWN = 20


def list_agents(shell: Shell, *, json: bool, workspace: str | None) -> int:
    """List types of subagents and other vendors' agents, each with its state."""

    async def work(client: Client) -> int:
        found = await client.agents()
        if json:
            return shell.json(found)
        rows = [
            [
                row["name"],
                row["type"],
                row["status"],
                one_line(row["detail"] or row["description"], DETAIL_SHOWN) + _most(row),
            ]
            for row in found
        ]
        _table(shell, rows)
        return DONE

    return with_client(shell, workspace, work)


def _most(row: Row) -> str:
    most = row.get("max_cost")  # types of subagents have none
    return "" if most is None else f"; at most ${most:g} a run"


def probe(shell: Shell, *, name: str, live: bool, json: bool) -> int:
    """Say whether an agent can be used; exit code 1 when it cannot."""

    async def work(client: Client) -> int:
        found = await client.probe_agent(name, live=live)
        if json:
            shell.json(found)
        else:
            version = f" (version {found['version']})" if found["version"] else ""
            said = f"{found['name']}: {found['status']}{version}; {found['detail']}"
            shell.terminal.line(harmless(said))
        return DONE if found["status"] == "operative" else FAILED

    return with_client(shell, None, work)


def run(shell: Shell, *, name: str, wanted: Mapping[str, Any], workspace: str | None, json: bool) -> int:
    """Run an agent: its text as it comes, what it changed at the end; exit code 1 when it failed."""
    prompt = sys.stdin.read() if wanted["prompt"] == "-" else wanted["prompt"]
    if not prompt.strip():
        raise CliExit(USAGE, "the prompt is blank; say what the agent should do")
    streamed = False
    if wanted.get("direct"):
        shell.terminal.warn(f"{name} works without review: what it changes lands in the directory at its end")

    def told(event: Row) -> None:
        nonlocal streamed
        if json:
            return
        if event["kind"] == "text":
            streamed = True
            shell.terminal.write(harmless(event["text"]))
        elif event["kind"] == "tool":
            shell.terminal.note(harmless(one_line(event["text"], DETAIL_SHOWN)))

    async def work(client: Client) -> int:
        answer = await client.run_agent(name, {**wanted, "prompt": prompt}, told)
        if json:
            shell.json(answer)
        else:
            _show(shell, name, answer, streamed=streamed)
        return FAILED if answer["error"] else DONE

    return with_client(shell, workspace, work)


def memory(shell: Shell, *, session: str, json: bool) -> int:
    """Show the newest 50 messages of a session."""

    async def work(client: Client) -> int:
        logs = await client.agent_memory(session)
        if json:
            return shell.json(logs)
        for log in logs:
            shell.terminal.line(f"[{log['role']}] {harmless(log['content'])}")
        return DONE

    return with_client(shell, None, work)


def runs(shell: Shell, *, json: bool) -> int:
    """List the newest 50 runs, newest first."""

    async def work(client: Client) -> int:
        found = await client.agent_runs()
        if json:
            return shell.json(found)
        rows = [
            [row["at"][:16].replace("T", " "), row["agent"], row["state"], row["session_id"],
             row["conversation_id"] or "", "" if row["cost"] is None else money(row["cost"]),
             one_line(row["prompt"], PROMPT_SHOWN)]
            for row in found
        ]  # fmt: skip
        _table(shell, rows)
        if not found:
            shell.terminal.note("no agent was run; `bowerbird agents run NAME PROMPT` does it")
        return DONE

    return with_client(shell, None, work)


def _show(shell: Shell, name: str, answer: Row, *, streamed: bool) -> None:
    terminal = shell.terminal
    content = harmless(answer["content"])
    if streamed:
        terminal.line("")
    elif content:
        terminal.line(content)
    changes: Mapping[str, Any] = answer["changes"] or {}
    paths = [*changes.get("written", ()), *(f"{path} (deleted)" for path in changes.get("deleted", ()))]
    thread = answer["metadata"].get("thread_id")
    landed = answer["metadata"].get("landed")
    if paths:
        for path in paths[:PATHS_SHOWN]:
            terminal.note(f"  {harmless_path(path)}")
        if len(paths) > PATHS_SHOWN:
            terminal.note(f"  … and {len(paths) - PATHS_SHOWN} more")
        count = f"{len(paths)} files changed, +{changes['added_lines']} -{changes['removed_lines']}"
        where = f"`bowerbird diff {thread}` shows them, `bowerbird land {thread}` brings them here"
        if landed is None:
            terminal.note(f"{count}, on a branch; {where}")
        else:
            _show_landed(shell, landed, f"{count}; {where}")
    terminal.note(f"session {answer['session_id']}; go on with --session {answer['session_id']}")
    if answer["error"]:
        said = harmless(answer["error"])
        terminal.warn(said if said.startswith(name) else f"{name}: {said}", "red")


def _show_landed(shell: Shell, landed: Mapping[str, Any], else_said: str) -> None:
    """Say what of a run without review is in the directory, and what stayed on the branch."""
    if landed["landing"] is None:
        why = f" ({harmless(landed['why'])})" if landed.get("why") else ""
        shell.terminal.warn(f"nothing landed{why}; {else_said}")
    else:
        shell.terminal.note(
            f"{len(landed['paths'])} files landed without review; "
            f"`bowerbird undo {landed['landing']}` takes them back"
        )
    for each in landed["stayed"][:PATHS_SHOWN]:
        path, reason = harmless_path(each["path"]), harmless(each["reason"])
        shell.terminal.warn(f"  stayed on the branch: {path} ({reason})")


def _table(shell: Shell, rows: list[list[str]]) -> None:
    cells = [[harmless(cell) for cell in row] for row in rows]
    for line in table(cells, width=shell.terminal.width):
        shell.terminal.line(line)
