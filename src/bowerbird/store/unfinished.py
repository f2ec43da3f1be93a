"""A restore that was killed: what it filled looks like any place, with half of what was in the backup.

Here: the file that says so while a restore runs, and refusing to open such a place. Not here: restoring
(`sessions/transfer/backup.py`).
"""

from pathlib import Path

from bowerbird.core.errors import StoreError

ROWS = ".agent.db"
"""The rows that are still to be brought in: the first file in the data directory, and the last to go."""


def is_unfinished(data_dir: Path) -> bool:
    """Whether a restore into a directory did not come to its end, or runs now. Blocks."""
    return (data_dir / ROWS).exists()


def refuse_unfinished(data_dir: Path) -> None:
    """Raise StoreError where a restore did not come to its end, or nobody may look. Blocks."""
    try:
        unfinished = is_unfinished(data_dir)
    except OSError as error:
        raise StoreError(
            f"the data directory {data_dir} cannot be entered: {error.strerror}; check its owner and "
            "permissions, or keep the data elsewhere with --data-dir"
        ) from error
    if unfinished:
        raise StoreError(
            f"a restore into {data_dir} was not finished, or is running; run `bowerbird restore` again: "
            "it starts from scratch"
        )
