"""A directory of the data directory copied as it lies on disk, while others write in it.

Here: making a copy equal to its source, again and again, reading only what differs. Not here: what the
files mean, which moment of them is kept (`sessions/transfer/backup.py`), views of branches.

Everything that a branch directory may hold is kept as it is: links, hard links between layers, whiteouts
(devices 0:0), the overlay's extended attributes, holes.
"""

import errno
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from bowerbird.core.errors import StorageFull
from bowerbird.workspace.tree import presence

_CHUNK = 4 << 20
_PIECE = 1 << 18
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_CANNOT_SHARE = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)


class Copied(msgspec.Struct):
    """What one pass did.

    Attributes:
        files, bytes: how many files the copy holds now, and their sizes together.
        changed: entries that this pass wrote or removed.
        refused: what could not be read or written, with the reason.
    """

    files: int = 0
    bytes: int = 0
    changed: int = 0
    refused: list[str] = msgspec.field(default_factory=list[str])


def make_equal(source: Path, target: Path, skip: Callable[[str], bool] = lambda _: False) -> Copied:
    """Make `target` equal to `source`; what vanishes meanwhile is gone in the copy, too.

    Args:
        source: a directory; a missing one gives an empty copy.
        target: made if missing; entries that `source` does not have are removed.
        skip: says of a name directly below `source`, and of the path of a directory below that (`a/b`),
            whether it is left out.

    Example:
        copied = make_equal(data_dir / "branches", backup / "branches")
    """
    done = Copied()
    links: dict[tuple[int, int], Path] = {}
    if presence.is_directory(source):
        _directory(source, target, done, links, skip)
    else:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
    return done


def held(copy: Path) -> tuple[int, int]:
    """Return how many files a finished copy holds, and their sizes together.

    What a pass counted says what it saw in a source that others write; this says what is there.
    """
    files = size = 0
    for folder, directories, names in os.walk(copy):
        for name in (*directories, *names):
            seen = (Path(folder) / name).lstat()
            files += not stat.S_ISDIR(seen.st_mode)
            size += seen.st_size if stat.S_ISREG(seen.st_mode) else 0
    return files, size


def _directory(
    source: Path,
    target: Path,
    done: Copied,
    links: dict[tuple[int, int], Path],
    skip: Callable[[str], bool] = lambda _: False,
) -> None:
    waiting = [(source, target)]
    made: list[tuple[Path, Path]] = []
    while waiting:
        here, there = waiting.pop()
        try:
            present = {entry.name: entry for entry in os.scandir(here)}
        except FileNotFoundError:
            if os.path.lexists(there):  # removed meanwhile, after an earlier pass had copied it
                _remove(there)
                done.changed += 1
            continue
        except OSError as error:
            done.refused.append(f"{here}: {error.strerror}")
            continue
        above = "" if here == source else f"{here.relative_to(source).as_posix()}/"
        present = {name: entry for name, entry in present.items() if not _left_out(above, entry, skip)}
        if there.is_symlink() or (there.exists() and not there.is_dir()):
            there.unlink()
            done.changed += 1
        there.mkdir(mode=0o700, exist_ok=True, parents=here == source)
        there.chmod(0o700)  # of an earlier pass, perhaps without the right to write
        made.append((here, there))
        for name in os.listdir(there):
            if name not in present:
                _remove(there / name)
                done.changed += 1
        for name, entry in present.items():
            if entry.is_dir(follow_symlinks=False):
                waiting.append((here / name, there / name))
            else:
                _entry(here / name, there / name, done, links)
    for here, there in reversed(made):
        _like(here, there)  # last: a directory without the right to write could not be filled


def _left_out(above: str, entry: "os.DirEntry[str]", skip: Callable[[str], bool]) -> bool:
    return (not above or entry.is_dir(follow_symlinks=False)) and skip(f"{above}{entry.name}")


def _entry(source: Path, target: Path, done: Copied, links: dict[tuple[int, int], Path]) -> None:
    try:
        seen = source.lstat()
        if _is_same(seen, target):
            if seen.st_nlink > 1:
                links.setdefault((seen.st_dev, seen.st_ino), target)
        else:
            _remove(target)
            _make(source, seen, target, links)
            done.changed += 1
    except FileNotFoundError:
        return  # vanished between two looks
    except OSError as error:
        if error.errno in _NO_ROOM:  # that is no matter of this file: the next would fail, too
            raise StorageFull(f"{target.parent}: the disk is full; free some space and try again") from error
        done.refused.append(f"{source}: {error.strerror}")
        return
    done.files += 1
    done.bytes += seen.st_size if stat.S_ISREG(seen.st_mode) else 0


def _is_same(seen: os.stat_result, target: Path) -> bool:
    try:
        there = target.lstat()
    except FileNotFoundError:
        return False
    same = (there.st_mode, there.st_size, there.st_mtime_ns) == (seen.st_mode, seen.st_size, seen.st_mtime_ns)
    return same and there.st_rdev == seen.st_rdev


def _make(source: Path, seen: os.stat_result, target: Path, links: dict[tuple[int, int], Path]) -> None:
    if stat.S_ISLNK(seen.st_mode):
        target.symlink_to(source.readlink())
    elif stat.S_ISREG(seen.st_mode):
        known = links.get((seen.st_dev, seen.st_ino)) if seen.st_nlink > 1 else None
        if known is not None:
            target.hardlink_to(known)
            return
        _copy_file(source, target)
        if seen.st_nlink > 1:
            links[(seen.st_dev, seen.st_ino)] = target
    elif stat.S_ISSOCK(seen.st_mode):
        return  # means nothing without the process that listens
    else:
        os.mknod(target, seen.st_mode, seen.st_rdev)
    _like(source, target)


def _copy_file(source: Path, target: Path) -> None:
    """Copy bytes: shared with the source where the filesystem can, holes left out."""
    with source.open("rb") as reading, target.open("xb") as writing:
        out, into = reading.fileno(), writing.fileno()
        end = os.fstat(out).st_size
        at = 0
        while at < end:
            try:
                at = os.lseek(out, at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                break  # only a hole is left
            hole = os.lseek(out, at, os.SEEK_HOLE)
            while at < hole:
                sent = _copy_piece(out, into, at, min(_CHUNK, hole - at))
                if not sent:
                    break  # cut shorter meanwhile
                at += sent
            else:
                continue
            break
        os.ftruncate(into, max(end, at))


def _copy_piece(out: int, into: int, at: int, length: int) -> int:
    """Copy up to `length` bytes at `at`; 0 = the source ends there."""
    try:
        return os.copy_file_range(out, into, length, at, at)
    except OSError as error:
        # Two kinds of filesystem, or one that cannot: a backup's usual place is another disk.
        if error.errno not in _CANNOT_SHARE:
            raise
    piece = os.pread(out, min(_PIECE, length), at)
    return os.pwrite(into, piece, at) if piece else 0


def _like(source: Path, target: Path) -> None:
    """Give `target` the mode, times and extended attributes of `source`."""
    try:
        shutil.copystat(source, target, follow_symlinks=False)
    except FileNotFoundError:
        return


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for folder, _, _ in os.walk(path):
            Path(folder).chmod(0o700)  # a layer may hold directories that nobody may write
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
