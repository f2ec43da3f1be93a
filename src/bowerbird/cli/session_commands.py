"""`sessions`, `show`, `rename`, `delete`, `fork` (UI-42, UI-45).

Here: printing of sessions. Not here: finding them (`picking.py`), what they are (`sessions`).
"""

import json as json_text
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.cli.drawing import key_parameter
from bowerbird.cli.exits import DONE, USAGE, CliExit
from bowerbird.cli.picking import pick_session
from bowerbird.cli.review_commands import ask_sure, opened
from bowerbird.cli.shell import Shell
from bowerbird.cli.text import age, harmless, money, one_line, plural, table
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import from_iso

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.sessions import SessionInfo


def sessions(shell: Shell, *, every: bool, json: bool, workspace: str | None) -> int:
    """List sessions: of this directory, or all; the most recently used first."""

    async def work(application: "Application", directory: Path) -> int:
        found = await application.sessions.list(workspace=None if every else str(directory))
        if json:
            data = [msgspec.to_builtins(session) for session in found]
            shell.terminal.write(json_text.dumps(data, ensure_ascii=False, indent=2) + "\n")
            return DONE
        for line in table([session_row(s, every=every) for s in found], width=shell.terminal.width):
            shell.terminal.line(line)
        if not found:
            where = "" if every else f" works on {directory}; --all lists those of other directories"
            shell.terminal.note(f"no session{where}")
        return DONE

    return opened(shell, workspace, work)


def session_row(session: "SessionInfo", *, every: bool) -> list[str]:
    """Return a session's line as cells: id, state, age, cost, title."""
    idle = (datetime.now(UTC) - from_iso(session.updated_at)).total_seconds()
    cells = [session.thread_id, session.status, age(idle), money(session.cost)]
    if every:
        cells.append(harmless(session.workspace or "-"))
    return [*cells, one_line(session.title or "", 80)]


def show(shell: Shell, *, session: str | None, json: bool, workspace: str | None) -> int:
    """Show one session: its turns, what was said, its changes."""

    async def work(application: "Application", directory: Path) -> int:
        found = await pick_session(application.sessions, session, directory)
        turns = await application.sessions.turns(found.thread_id)
        records = await application.sessions.history(found.thread_id)
        from bowerbird.workspace import Changes

        changes = Changes()
        if found.branch_id is not None:
            branch = await application.sessions.branch(found.thread_id)
            changes = await to_thread(branch.changes)
        if json:
            data = {
                "session": msgspec.to_builtins(found),
                "turns": msgspec.to_builtins(turns),
                "records": msgspec.to_builtins(records),
                "changes": changes.record(),
            }
            shell.terminal.write(json_text.dumps(data, ensure_ascii=False, indent=2) + "\n")
            return DONE
        terminal = shell.terminal
        terminal.line(f"{found.thread_id}  {one_line(found.title or 'untitled')}", "bold")
        terminal.line(
            f"{found.status} · {plural(found.turns, 'turn')} · {money(found.cost)} · {found.workspace}"
        )
        for line in history_lines(records, width=terminal.width):
            terminal.line(line)
        count = len(changes.paths)
        terminal.line(f"{plural(count, 'file')} changed on the branch")
        return DONE

    return opened(shell, workspace, work)


def history_lines(records: Any, *, width: int, limit: int | None = None) -> list[str]:
    """Return the dialogue of a journal as lines: `>` the person, tools by name, the model's words.

    Args:
        limit: the newest so many messages; None = all.
    """
    from bowerbird.core.events import AssistantStep, UserStep
    from bowerbird.sessions.journal.events_as_records import events_of

    blocks: list[list[str]] = []
    for _, event in events_of(records):
        if isinstance(event, UserStep):
            blocks.append(["", *(f"> {line}" for line in harmless(event.message.text).splitlines())])
        elif isinstance(event, AssistantStep):
            said = [f"  {line}" for line in harmless(event.message.text).splitlines()]
            calls = [f"  · {use.name} {key_parameter(use.input)}" for use in event.message.tool_uses]
            blocks.append(said + calls)
    from bowerbird.cli.text import cut

    chosen = blocks if limit is None else blocks[-limit:]
    return [cut(line, width) if line.startswith("  · ") else line for block in chosen for line in block]


def rename(shell: Shell, *, session: str, title: str) -> int:
    """Give a session another title."""

    async def work(application: "Application", _: Path) -> int:
        found = await application.sessions.get(session)
        await application.sessions.rename(found.thread_id, title)
        return DONE

    return opened(shell, None, work)


def delete(shell: Shell, *, session: str, yes: bool) -> int:
    """Delete a session and its branch; both can be restored for 7 days."""

    async def work(application: "Application", _: Path) -> int:
        found = await application.sessions.get(session)
        if not yes and not ask_sure(f"Delete session {found.thread_id} ({one_line(found.title or '', 60)})?"):
            raise CliExit(USAGE, "nothing was deleted; --yes deletes without asking")
        await application.sessions.delete(found.thread_id)
        shell.terminal.line(f"deleted session {found.thread_id}")
        return DONE

    return opened(shell, None, work)


def fork(shell: Shell, *, session: str | None, turn: int | None, json: bool, workspace: str | None) -> int:
    """Copy a session with its files as they were at the end of a turn."""

    async def work(application: "Application", directory: Path) -> int:
        found = await pick_session(application.sessions, session, directory)
        child = await application.sessions.fork(found.thread_id, await turn_id_of(application, found, turn))
        if json:
            shell.terminal.write(json_text.dumps(msgspec.to_builtins(child), ensure_ascii=False) + "\n")
        else:
            shell.terminal.line(child.thread_id)
            shell.terminal.note(f'go on there with: bowerbird --resume={child.thread_id} "…"')
        return DONE

    return opened(shell, workspace, work)


async def turn_id_of(application: "Application", session: "SessionInfo", number: int | None) -> str | None:
    """Return the id of turn `number` of a session, None for the last; raises CliExit for an unknown one."""
    if number is None:
        return None
    turns = await application.sessions.turns(session.thread_id)
    found = next((turn for turn in turns if turn.n == number), None)
    if found is None:
        numbers = ", ".join(str(turn.n) for turn in turns) or "none"
        raise CliExit(USAGE, f"session {session.thread_id} has no turn {number}; there are: {numbers}")
    return found.turn_id
