"""`bowerbird tasks …`: scheduled tasks (UI-47, AS-39), here or on a server.

Here: the commands. Not here: options (`options/task_options.py`), what a task may be (`scheduler/`).
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from bowerbird.cli.client.opening import with_client
from bowerbird.cli.client.protocol import Client, Row
from bowerbird.cli.terminal.exits import DONE, FAILED, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import harmless, money, one_line, table

PROMPT_SHOWN = 60
LOOK_S = 0.3


def add(
    shell: Shell,
    *,
    wanted: Mapping[str, Any],
    times: Mapping[str, str | None],
    workspace: str | None,
    json: bool,
) -> int:
    """Make a task.

    Args:
        times: the value by type; one of them is given.

    Raises:
        CliExit: code 2, none or several are.
    """
    given = {kind: value for kind, value in times.items() if value is not None}
    if len(given) != 1:
        raise CliExit(USAGE, "say when, by one of --cron, --every and --at")
    [(kind, value)] = given.items()

    async def work(client: Client) -> int:
        made = await client.add_task({**wanted, "type": kind, "value": value})
        if json:
            return shell.json(made)
        shell.terminal.line(f"task {made['id']}: first run {_time(made['next_run'])} UTC")
        return DONE

    return with_client(shell, workspace, work)


def list_tasks(shell: Shell, *, every: bool, json: bool) -> int:
    """List tasks in the order they were made."""

    async def work(client: Client) -> int:
        found = await client.scheduled_tasks(every=every)
        if json:
            return shell.json(found)
        cells = [
            [row["id"], f"{row['type']} {row['value']}", _next(row), row["last_status"] or "",
             one_line(row["prompt"], PROMPT_SHOWN)]
            for row in found
        ]  # fmt: skip
        _write(shell, cells, "no tasks are scheduled; `bowerbird tasks add` makes one")
        return DONE

    return with_client(shell, None, work)


def runs(shell: Shell, *, task_id: str, json: bool) -> int:
    """List a task's runs, newest first."""

    async def work(client: Client) -> int:
        found = await client.task_runs(task_id)
        if json:
            return shell.json(found)
        cells = [
            [_time(row["started_at"]), row["status"], money(row["cost"]), one_line(row["error"] or "", 80)]
            for row in found
        ]
        _write(shell, cells, f"task {task_id} has not run yet")
        return DONE

    return with_client(shell, None, work)


def run_now(shell: Shell, *, task_id: str, json: bool) -> int:
    """Run a task and wait for its end; the exit code is 1 when it failed."""

    async def work(client: Client) -> int:
        begun = await client.run_task(task_id)
        run: Row = begun
        while run["status"] == "running":
            await asyncio.sleep(LOOK_S)
            found = await client.task_runs(task_id)
            same = [row for row in found if row["due"] == begun["due"]]
            run = same[0] if same else {**run, "status": "cancelled"}
        code = DONE if run["status"] == "done" else FAILED
        if json:
            shell.json(run)
            return code
        shell.terminal.line(harmless(f"{run['status']}  {money(run['cost'])}  {run['error'] or ''}".rstrip()))
        shell.terminal.note(f"its answer: bowerbird show scheduler_{task_id}")
        return code

    return with_client(shell, None, work)


def pause(shell: Shell, *, task_id: str, json: bool) -> int:
    """Pause a task."""
    return _changed(shell, task_id, {"paused": True}, "is paused", json=json)


def resume(shell: Shell, *, task_id: str, json: bool) -> int:
    """Resume a paused task."""
    return _changed(shell, task_id, {"paused": False}, "runs again at", json=json)


def cancel(shell: Shell, *, task_id: str, json: bool) -> int:
    """Cancel a task for good."""
    return _changed(shell, task_id, None, "is cancelled", json=json)


def _changed(shell: Shell, task_id: str, changes: Mapping[str, Any] | None, said: str, *, json: bool) -> int:
    async def work(client: Client) -> int:
        row: Row
        row = await (client.cancel_task(task_id) if changes is None else client.change_task(task_id, changes))
        if json:
            return shell.json(row)
        when = f" {_time(row['next_run'])} UTC" if said.endswith(" at") else ""
        shell.terminal.note(f"task {task_id} {said}{when}")
        return DONE

    return with_client(shell, None, work)


def _next(row: Row) -> str:
    if not row["active"]:
        return "over"
    if row["paused"]:
        return "paused"
    return _time(row["next_run"]) if row["next_run"] else "now"


def _time(iso: str | None) -> str:
    return iso[:19].replace("T", " ") if iso else "never"


def _write(shell: Shell, cells: list[list[str]], nothing: str) -> None:
    for line in table([[harmless(cell) for cell in row] for row in cells], width=shell.terminal.width):
        shell.terminal.line(line)
    if not cells:
        shell.terminal.note(nothing)
