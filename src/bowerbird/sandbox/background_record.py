"""What is known of a branch's background runs, kept so that a dead server loses none of it (SB-37, DE-30).

Here: one run's values and the small file they are in. Not here: running (`background`).
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.core.forms import decode
from bowerbird.sandbox.run.output import HEAD_SHARE, readable, shorten

RunState = Literal["running", "completed", "timeout", "error", "killed", "lost"]
TAIL_BYTES = 500
OUTPUT_BYTES = 50_000
_MOST_KEPT = 100


class BackgroundRun(msgspec.Struct, frozen=True):
    """One background command.

    Attributes:
        task_id: `bg_…`. state: `running`, or how it ended; `lost` when the server died meanwhile.
        notify: an idle session starts a turn when it ends.
        timeout_s: its time limit. started_at: when it began, ISO.
        exit_code, duration_ms: once it ended and that is known.
        output: at most 50,000 bytes, head and tail. total_bytes: what it printed in all.
        spill: name of the whole output for file tools and commands. truncated: `output` is cut.
        told: model and user were told of its end.
    """

    task_id: str
    command: str
    state: RunState
    started_at: str
    timeout_s: float
    notify: bool = False
    exit_code: int | None = None
    duration_ms: int | None = None
    output: str = ""
    total_bytes: int = 0
    truncated: bool = False
    spill: str | None = None
    told: bool = False

    @property
    def ended(self) -> bool:
        """Whether it runs no more."""
        return self.state != "running"

    @property
    def tail(self) -> str:
        """The last 500 bytes of the output, cut on a character boundary."""
        return self.output.encode()[-TAIL_BYTES:].decode("utf-8", "ignore")

    def to_data(self) -> dict[str, object]:
        """Return the form that `poll` and the tools give."""
        data: dict[str, object] = {
            name: getattr(self, name)
            for name in (
                "task_id", "command", "exit_code", "duration_ms", "tail", "output", "total_bytes",
                "truncated", "spill",
            )
        }  # fmt: skip
        return {"task_id": self.task_id, "status": self.state, **data}

    def notification(self) -> dict[str, str]:
        """Return the row that model and viewers are told."""
        return {
            "task_id": self.task_id,
            "status": self.state,
            "command": self.command[:80],
            "result": self.output.strip()[-500:],
        }


class BackgroundFile:
    """The runs of one branch on disk, replaced atomically; an unreadable file counts as none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None  # as it was last read or written here

    def changed(self) -> bool:
        """Tell whether another process wrote it since; one stat."""
        return self._sign() != self._seen

    def load(self) -> list[BackgroundRun]:
        """Read what an earlier or another process left."""
        self._seen = self._sign()
        try:
            return decode(self._path.read_bytes(), list[BackgroundRun])
        except (OSError, msgspec.DecodeError):
            return []

    def save(self, runs: Iterable[BackgroundRun]) -> None:
        """Write `runs`; of those that ended the newest 100 are kept."""
        kept = list(runs)
        ended = [run for run in kept if run.ended and run.told]
        forgotten = {run.task_id for run in ended[: max(0, len(ended) - _MOST_KEPT)]}
        replace_file(self._path, msgspec.json.encode([r for r in kept if r.task_id not in forgotten]))
        self._seen = self._sign()

    def _sign(self) -> tuple[int, int] | None:
        try:
            seen = self._path.stat()
        except OSError:
            return None
        return seen.st_ino, seen.st_mtime_ns


def lost(run: BackgroundRun, spill: Path) -> BackgroundRun:
    """Return `run` as it stands after its server died: the output it had written is kept."""
    text, total, cut = stored_output(spill, run.spill)
    return msgspec.structs.replace(
        run, state="lost", told=False, output=text, total_bytes=total, truncated=cut,
        spill=run.spill if total else None,
    )  # fmt: skip


def stored_output(spill: Path, name: str | None) -> tuple[str, int, bool]:
    """Return at most 50,000 bytes of a stored output, its size, and whether it is cut."""
    try:
        with spill.open("rb") as file:
            total = file.seek(0, os.SEEK_END)
            file.seek(0)
            if total <= OUTPUT_BYTES:
                return readable(file.read()), total, False
            head = file.read(int(OUTPUT_BYTES * HEAD_SHARE))
            file.seek(total - (OUTPUT_BYTES - len(head)))
            return shorten(head, file.read(), total, OUTPUT_BYTES, name), total, True
    except OSError:
        return "", 0, False
