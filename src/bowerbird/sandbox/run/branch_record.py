"""What the record of a command on a branch says (SB-14): values from its end, and notes for who reads it.

Here: pure composition. Not here: running (`running`), capture.
"""

from collections.abc import Sequence
from pathlib import Path

from bowerbird.sandbox.run.causes import Causes
from bowerbird.sandbox.run.command import CommandRequest, CommandResult, Ending, exit_code
from bowerbird.sandbox.run.running import Finished
from bowerbird.sandbox.run.status import Tier
from bowerbird.workspace import Captured

NOTHING_KEPT = Captured((), (), ())
"""What a command changed that was taken back as a whole."""


def told_record(
    request: CommandRequest,
    finished: Finished,
    captured: Captured,
    *,
    tier: Tier,
    network: str,
    background: Sequence[str],
    places: tuple[Path | None, str],
    causes: Causes,
) -> CommandResult:
    """Return the record of a command, with what its reader should be told.

    Args:
        background: what goes on running. places: the user's directory, and where the command saw it.
        causes: of this branch's sandbox; each is told once.
    """
    notes = [stragglers_note(finished.ending, background), disk_note(finished, captured)]
    if tier == "copy":
        notes += [original_note(request, finished, *places), shared_memory_note(finished)]
    notes += causes.notes(finished, tier, network)
    return record_of(request, finished, captured, tier=tier, network=network, notes=notes)


def record_of(
    request: CommandRequest,
    finished: Finished,
    captured: Captured,
    *,
    tier: Tier,
    network: str,
    notes: Sequence[str],
) -> CommandResult:
    """Return the record; `notes` come after those of the request, before those of the end itself."""
    ending, output = finished.ending, finished.output
    return CommandResult(
        exit_code=exit_code(ending),
        signal=ending.signal,
        timed_out=ending.stop == "timeout",
        cancelled=ending.stop == "cancel",
        oom=ending.stop == "memory",
        output=output.text,
        truncated=output.truncated,
        total_bytes=output.total_bytes,
        spill=output.spill,
        duration_ms=finished.duration_ms,
        cpu_ms=ending.cpu_ms,
        peak_bytes=ending.peak_bytes,
        stragglers_killed=ending.stragglers,
        tier=tier,
        network=network,
        written=list(captured.written),
        deleted=list(captured.deleted),
        stdout=finished.stdout.text if finished.stdout else None,
        stderr=finished.stderr.text if finished.stderr else None,
        spill_truncated=output.spill_truncated,
        reason=ending.stop,
        note="; ".join(filter(None, (request.note, *notes, rename_note(ending)))) or None,
    )


def stragglers_note(ending: Ending, background: Sequence[str]) -> str:
    """Say that nothing outlives a command but background runs; empty when nothing was killed."""
    if not ending.stragglers or ending.stop is not None:
        return ""
    killed = (
        f"{ending.stragglers} processes it left behind were killed; start what must go on as a background run"
    )
    return f"{killed}; background runs go on: {', '.join(background)}" if background else killed


def rename_note(ending: Ending) -> str:
    """Say why renaming a directory failed as between two file systems; empty when none did."""
    if not ending.not_renamed:
        return ""
    return (
        "the sandbox renames a directory of the workspace by copying it, and refused to: "
        f"{', '.join(ending.not_renamed)}; use mv, or move its parts"
    )


def disk_note(finished: Finished, captured: Captured) -> str:
    """Say what became of the changes of a command that was over the disk limit, or filled the disk."""
    if finished.ending.stop != "disk":
        return ""
    if finished.disk_left is not None:
        disk = f"the disk of Bowerbird's data has {finished.disk_left >> 20} MiB left"
        left = (
            f"it was ended because {disk}"
            if finished.ending.signal is not None
            else f"it was cut off: {disk}"
        )
        return f"{left}: make room (`bowerbird disk` shows what takes it) and try again; {_kept(captured)}"
    return _kept(captured)


def _kept(captured: Captured) -> str:
    if captured is NOTHING_KEPT:
        return "all that it wrote was taken back: the branch is as it was before this command"
    return "what it wrote is still there, as something else changed the branch meanwhile; delete some of it"


def original_note(request: CommandRequest, finished: Finished, workspace: Path | None, root: str) -> str:
    """Say that the workspace's own path leads nowhere, when a command that names it failed."""
    if workspace is None or str(workspace) == root or exit_code(finished.ending) == 0:
        return ""
    named = str(workspace)
    if named not in finished.output.text and not any(named in word for word in request.argv):
        return ""
    return (
        f"{named} cannot be reached from commands: they run on a copy of the branch at {root}; "
        "use relative paths, which start at its root"
    )


def shared_memory_note(finished: Finished) -> str:
    """Say why locks and pools of `multiprocessing` fail in the copy tier; empty for other failures."""
    said = finished.output.text
    if exit_code(finished.ending) == 0 or not ("SemLock" in said or "/dev/shm" in said):
        return ""
    return (
        "commands of the copy tier have no /dev/shm, which they would share with all programs of this user: "
        "Python's multiprocessing locks, queues and pools need it; use threads, or one process "
        "(in the overlay tier they work)"
    )
