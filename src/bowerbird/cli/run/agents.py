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
                one_line(row["detail"] or row["description"], DETAIL_SHOWN),
            ]
            for row in found
        ]
        _table(shell, rows)
        return DONE

    return with_client(shell, workspace, work)


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
    if paths:
        for path in paths[:PATHS_SHOWN]:
            terminal.note(f"  {harmless_path(path)}")
        if len(paths) > PATHS_SHOWN:
            terminal.note(f"  … and {len(paths) - PATHS_SHOWN} more")
        terminal.note(
            f"{len(paths)} files changed on a branch, +{changes['added_lines']} -{changes['removed_lines']}; "
            f"`bowerbird diff {thread}` shows them, `bowerbird land {thread}` brings them here"
        )
    terminal.note(f"session {answer['session_id']}; go on with --session {answer['session_id']}")
    if answer["error"]:
        terminal.warn(f"{name}: {harmless(answer['error'])}", "red")


def _table(shell: Shell, rows: list[list[str]]) -> None:
    cells = [[harmless(cell) for cell in row] for row in rows]
    for line in table(cells, width=shell.terminal.width):
        shell.terminal.line(line)
