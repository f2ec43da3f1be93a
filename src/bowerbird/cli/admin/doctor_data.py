"""What `bowerbird doctor` looks at in the data directory: is it whole, what takes room (D-22).

Here: those checks. Not here: the others (`doctor.py`), repairing or freeing anything.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bowerbird.cli.terminal.text import one_line, plural, size
from bowerbird.core.errors import BowerbirdError, StoreCorrupt
from bowerbird.core.threads import in_thread

if TYPE_CHECKING:
    from bowerbird.config import Loaded
    from bowerbird.sessions.upkeep.disk_use import DiskUse

Row = tuple[str, Literal["ok", "degraded", "broken"], str, str]
"""Name, state, what was found, what to do."""

_MOST_NAMED = 3
_RESTORE = "restore the last backup elsewhere: bowerbird --data-dir NEW_DIR restore BACKUP"
_MAKE_ROOM = "free some space there, or make it writable for you; what it holds is not damaged"


async def look_at_data(loaded: "Loaded", data_dir: Path, redacted: Callable[[str], str]) -> list[Row]:
    """Return the rows about what is kept: database, landings, branches, room."""
    from bowerbird.app.mapping import store_options
    from bowerbird.config.fields import mask_url
    from bowerbird.sessions.branches.branches import Branches
    from bowerbird.sessions.upkeep.disk_use import disk_use
    from bowerbird.store import Store

    options = store_options(loaded.settings)
    try:
        store = await Store.open(loaded.database_url, data_dir=data_dir, options=options)
    except StoreCorrupt as error:
        return [("database", "broken", redacted(str(error)), _RESTORE)]
    except BowerbirdError as error:  # its message says what to do: the data may be whole
        return [("database", "broken", redacted(str(error)), "")]
    except OSError as error:
        return [("database", "broken", f"{data_dir} cannot be used: {error.strerror}", _MAKE_ROOM)]
    branches = Branches(data_dir)
    try:
        damage = await store.damage()
        found = (
            f"{mask_url(loaded.database_url)}, schema current, durability {loaded.settings.store.durability}"
        )
        rows: list[Row] = [("database", "ok", f"{found}, whole", "")]
        if damage:
            rows = [("database", "broken", f"{found}; damaged: {one_line(damage)}", _RESTORE)]
        rows.append(await in_thread(_landings, data_dir))
        use = await disk_use(store, branches)
        had_sessions = await in_thread(lambda: any((data_dir / "sessions").glob("*.jsonl")))
        return [*rows, _branches(use, had_sessions=had_sessions), _room(use)]
    except BowerbirdError as error:
        return [("database", "broken", redacted(str(error)), "see the log")]
    finally:
        await branches.aclose()
        await store.aclose()


def _landings(data_dir: Path) -> Row:
    left: list[str] = []
    for file in sorted(data_dir.glob("branches/*/landings/*/record.json")):
        try:
            record: dict[str, Any] = json.loads(file.read_bytes())
            state = str(record.get("state"))
        except (OSError, ValueError, AttributeError):
            state = "unreadable"
        if state not in ("done", "undone", "given_up"):
            left.append(f"{file.parent.name} ({state})")
    if not left:
        return ("landings", "ok", "none is unfinished", "")
    shown = ", ".join(left[:_MOST_NAMED]) + (", …" if len(left) > _MOST_NAMED else "")
    return (
        "landings",
        "degraded",
        f"{len(left)} unfinished: {shown}",
        "see them with: bowerbird landings; then: bowerbird landings fix ID",
    )


def _branches(use: "DiskUse", *, had_sessions: bool) -> Row:
    if use.ownerless and not use.largest and had_sessions:
        found = f"{plural(len(use.ownerless), 'branch')} with files, and a database that knows no session"
        remedy = "was the database moved, or does store.url name another one? Otherwise restore a backup"
        return ("branches", "degraded", found, remedy)
    if use.ownerless:
        shown = ", ".join(use.ownerless[:_MOST_NAMED]) + (", …" if len(use.ownerless) > _MOST_NAMED else "")
        return ("branches", "ok", f"{len(use.ownerless)} of no session (made by the library): {shown}", "")
    return ("branches", "ok", "each belongs to a session", "")


def _room(use: "DiskUse") -> Row:
    rows = sorted(use.parts.items(), key=lambda row: -row[1])[:_MOST_NAMED]
    most = ", ".join(f"{name} {size(room)}" for name, room in rows if room)
    return ("room", "ok", f"{size(use.total)} ({most})" if most else size(use.total), "")
