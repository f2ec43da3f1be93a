"""A directory that is filled beside the place it is meant for, and gets its name when it is whole.

Here: making it, what killed processes left of such ones, giving it its name. Not here: what is in it (a
branch's files in `export.py`, backups and exports in `sessions/transfer/`), which places may be written.

At every moment the name stands for a whole directory, the earlier one or the new one, or for none where there
was none.
"""

import os
import re
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from bowerbird.core.errors import Exists
from bowerbird.core.ids import ulid
from bowerbird.core.processes.alone import claim_in
from bowerbird.workspace.tree.handles import UNSUPPORTED, exchange


@contextmanager
def made_beside(target: Path, is_kept: Callable[[Path], bool] = lambda _: False) -> Generator[Path]:
    """Give an empty private directory beside `target`; what is still in it at the end is removed. Blocks.

    Args:
        is_kept: whether something that a killed process left is worth more than its room.
    """
    _remove_killed(target, is_kept)
    made, lock = _claimed_beside(target)
    try:
        yield made
    finally:
        remove_tree(made)
        os.close(lock)


def _claimed_beside(target: Path) -> tuple[Path, int]:
    """Make a directory, and claim it: while that is held, everybody knows that it is being filled."""
    while True:
        made = target.with_name(f".{target.name}.{ulid()}")
        made.mkdir(mode=0o700, parents=True)
        with suppress(FileNotFoundError):  # who came in between took it for one that a killed process left
            lock = claim_in(made)
            if lock is not None and os.fstat(lock).st_nlink:
                return made, lock
            if lock is not None:
                os.close(lock)


def give_name(made: Path, target: Path, *, replaces: bool) -> None:
    """Let a whole directory be `target`; what `replaces` is then in `made`. Blocks.

    Raises:
        Exists: something stands there and is not to be replaced: another process was first.
    """
    if not replaces:
        try:
            made.rename(target)  # over an empty directory, too
        except (FileExistsError, NotADirectoryError) as error:
            raise Exists(f"{target} was made by somebody else meanwhile; name another directory") from error
        except OSError as error:
            if not target.is_dir() or not any(target.iterdir()):
                raise
            raise Exists(f"{target} was filled by somebody else meanwhile; name another directory") from error
        return
    above = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        exchange(above, os.fsencode(made.name), above, os.fsencode(target.name))
    except FileNotFoundError:
        made.rename(target)  # what was there has gone by itself
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        _exchange_in_steps(made, target)
    finally:
        os.close(above)


def _exchange_in_steps(made: Path, target: Path) -> None:
    """The next best, where the file system cannot: for a moment nothing has the name."""
    old = made.with_name(f"{made.name}.old")
    target.rename(old)
    made.rename(target)
    old.rename(made)


def beside(target: Path) -> list[Path]:
    """Return the directories beside a place that were made to be filled."""
    ours = re.compile(rf"\.{re.escape(target.name)}\.[0-9A-Za-z]{{26}}")
    above = target.parent
    return [entry for entry in above.iterdir() if ours.fullmatch(entry.name)] if above.is_dir() else []


def _remove_killed(target: Path, is_kept: Callable[[Path], bool]) -> None:
    for entry in beside(target):
        if is_kept(entry):
            continue
        try:
            lock = claim_in(entry)
        except OSError:  # another process removes it just now, or it is not ours to look at
            continue
        if lock is not None:
            remove_tree(entry)
            os.close(lock)


def remove_tree(path: Path) -> None:
    """Remove a file or a directory with all in it, as far as that is possible."""
    if path.is_dir() and not path.is_symlink():
        for folder, _, _ in os.walk(path):
            Path(folder).chmod(0o700)  # a layer may hold directories that nobody may write
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
