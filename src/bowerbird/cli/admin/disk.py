"""`bowerbird disk` and `bowerbird trash list|restore|empty` (D-22).

Here: printing, asking. Not here: what takes room (`sessions/upkeep/disk_use.py`), the trash
(`sessions/upkeep/trash.py`), what settings keep (`sessions/upkeep/retention.py`).
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.cli.terminal.exits import DONE, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell, ask_sure, opened
from bowerbird.cli.terminal.text import age, harmless, one_line, plural, size, table
from bowerbird.core.timestamps import from_iso

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.sessions.upkeep.disk_use import DiskUse


def disk(shell: Shell, *, free: bool, json: bool) -> int:
    """Show what takes room; with `free`, first remove what settings do not keep and pack the database."""

    async def work(application: "Application", _: Path) -> int:
        from bowerbird.sessions.upkeep.disk_use import disk_use

        before = await disk_use(application.store, application.branches)
        after = before
        if free:
            await application.sessions.tidy()
            await application.store.pack()
            after = await disk_use(application.store, application.branches)
        if json:
            data = {**msgspec.to_builtins(after), "freed": before.total - after.total}
            shell.json(data)
            return DONE
        _show(shell, application.data_dir, after)
        if free:
            shell.terminal.line(f"freed {size(max(0, before.total - after.total))}")
        return DONE

    return opened(shell, None, work)


def _show(shell: Shell, data_dir: Path, use: "DiskUse") -> None:
    terminal = shell.terminal
    terminal.line(f"{data_dir}  {size(use.total)}, {size(use.free)} free on the disk", "bold")
    rows = [[name, size(room)] for name, room in sorted(use.parts.items(), key=lambda row: -row[1]) if room]
    for line in table(rows, width=terminal.width):
        terminal.line(f"  {line}")
    if use.largest:
        terminal.line("largest sessions", "bold")
        found = [[room.session, size(room.bytes), one_line(room.title, 60)] for room in use.largest]
        for line in table(found, width=terminal.width):
            terminal.line(f"  {line}")
    if use.ownerless:
        terminal.note(
            f"{plural(len(use.ownerless), 'branch')} of no session: made by the library, or left over"
        )
    if use.parts.get("trash"):
        terminal.note(
            "the trash is emptied automatically after retention.deleted_days; now: bowerbird trash empty"
        )
    if use.reusable > use.parts["database"] // 4:
        terminal.note(
            f"{size(use.reusable)} of the database are unused; bowerbird disk --free gives them back"
        )


def trash_list(shell: Shell, *, json: bool) -> int:
    """List what was thrown away and can be had back."""

    async def work(application: "Application", _: Path) -> int:
        found = await application.trash.entries()
        if json:
            shell.json(msgspec.to_builtins(found))
            return DONE
        now = datetime.now(UTC)
        rows: list[list[str]] = []
        for entry in found:
            left = "kept"
            if entry.until is not None:
                left = f"{age(max(0.0, (from_iso(entry.until) - now).total_seconds()))} left"
            what = "session" if entry.kind == "session" else f"changes of {entry.session}"
            rows.append([entry.id, what, left, one_line(harmless(entry.title), 60)])
        for line in table(rows, width=shell.terminal.width):
            shell.terminal.line(line)
        if not found:
            shell.terminal.note("the trash is empty")
        return DONE

    return opened(shell, None, work)


def trash_restore(shell: Shell, *, entry: str, json: bool) -> int:
    """Bring one thing back; raises NotFound when it is not there."""

    async def work(application: "Application", _: Path) -> int:
        session = await application.trash.restore(entry)
        if json:
            shell.json({"session": session})
        else:
            shell.terminal.line(f"back: session {session}; its changes: bowerbird diff {session}")
        return DONE

    return opened(shell, None, work)


def trash_empty(shell: Shell, *, yes: bool, json: bool) -> int:
    """Remove everything in the trash for good."""

    async def work(application: "Application", _: Path) -> int:
        found = await application.trash.entries()
        question = f"Remove {plural(len(found), 'thing')} in the trash for good?"
        if found and not yes and not ask_sure(question):
            raise CliExit(USAGE, "nothing was removed; --yes removes without asking")
        done = await application.trash.empty()
        said: dict[str, Any] = {"sessions": done.sessions, "branches": done.branches}
        if json:
            shell.json(said)
        else:
            held = f"{plural(done.sessions, 'session')} and {plural(done.branches, 'branch')}"
            shell.terminal.line(f"{held} removed for good")
        return DONE

    return opened(shell, None, work)
