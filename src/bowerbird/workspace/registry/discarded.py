"""When a branch went to the trash: the file `discarded_at` in its directory.

Here: writing and reading it. Not here: what the trash is (`registry.py`).
"""

from datetime import UTC, datetime
from pathlib import Path

from bowerbird.core.atomic import replace_file
from bowerbird.core.timestamps import from_iso, now_iso, to_iso
from bowerbird.workspace.registry.lock import WriterLock


def note_discarded(directory: Path) -> None:
    """Put a branch into the trash; in one step, for half a date would be one that never ends."""
    replace_file(directory / "discarded_at", now_iso().encode())


def take_out(directory: Path) -> None:
    """Take a branch out of the trash.

    Raises:
        NotFound: it was removed meanwhile: who empties the trash looks again under the branch's lock.
        BranchBusy: another process works on it.
    """
    with WriterLock(directory / "lock").hold():
        (directory / "discarded_at").unlink(missing_ok=True)


def discarded_at(directory: Path) -> str | None:
    """Return when a branch went to the trash, None when it is not there."""
    try:
        at = (directory / "discarded_at").read_text()
        from_iso(at)
    except FileNotFoundError:
        return None
    except ValueError:  # cut by a kill, or a full disk, in an earlier version: the file's time says as much
        return to_iso(datetime.fromtimestamp((directory / "discarded_at").stat().st_mtime, UTC))
    return at
