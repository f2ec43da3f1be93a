"""Writing a branch out (WS-39): as a patch, as a tar of its changes, as a whole directory.

Here: the three formats. Not here: finding changes, the patch's syntax.
"""

import errno
import io
import os
import stat
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from bowerbird.core.atomic import replace_file
from bowerbird.core.errors import Exists, InvalidArgument
from bowerbird.core.ids import ulid
from bowerbird.core.processes.creation_mask import new_mode
from bowerbird.workspace.compare.diff import unified_patch
from bowerbird.workspace.compare.results import Exported
from bowerbird.workspace.filled_beside import give_name, made_beside
from bowerbird.workspace.tree.changes import Change, parents_of
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.handles import copy_bytes
from bowerbird.workspace.tree.stack import Stack, open_regular
from bowerbird.workspace.tree.threeway import Side

Format = Literal["patch", "tar", "dir"]
_ONLY_INSIDE = (errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS)
"""A mount point, or a directory that one may fill, but not put another in the place of."""
WHITEOUT_PREFIX = ".wh."
OPAQUE_NAME = ".wh..wh..opq"


def export_branch(stack: Stack, changes: Sequence[Change], to: Path, form: Format) -> Exported:
    """Write the branch to `to`.

    Args:
        to: a file for `patch` and `tar`, replaced in one step; for `dir` an empty or new directory, which
            appears whole.

    Raises:
        Exists: the directory has entries. InvalidArgument: an unknown format.
    """
    if form == "patch":
        replace_file(to, unified_patch(changes, 3).encode())
        return Exported(str(to), form, len(changes))
    if form == "tar":
        temporary = to.with_name(f".{to.name}.{ulid()}")  # two may export to one place
        try:
            with tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT, errors="surrogateescape") as archive:
                _write_tar(archive, changes)
            temporary.rename(to)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return Exported(str(to), form, len(changes))
    if form == "dir":
        return Exported(str(to), form, _write_tree(stack, to))
    raise InvalidArgument(f"export format is {form!r}; use patch, tar or dir")


# ---------------------------------------------------------------- tar


def _write_tar(archive: tarfile.TarFile, changes: Sequence[Change]) -> None:
    """Changed entries; a deletion is an empty `.wh.NAME`, a replaced directory holds `.wh..wh..opq`."""
    gone = {c.path for c in changes if c.new is None}
    for change in changes:
        if change.new is not None:
            _add(archive, change.path, change.new)
            if change.new.kind == "dir" and change.base is not None and change.base.kind != "dir":
                _add_empty(archive, f"{change.path}/{OPAQUE_NAME}")
        elif not any(above in gone for above in parents_of([change.path])):
            above, _, name = change.path.rpartition("/")
            _add_empty(archive, f"{above}/{WHITEOUT_PREFIX}{name}")


def _add(archive: tarfile.TarFile, path: str, side: Side) -> None:
    info = tarfile.TarInfo(path[1:])
    if side.kind == "dir":
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(info)
    elif side.kind == "symlink":
        info.type, info.linkname = tarfile.SYMTYPE, side.target or ""
        archive.addfile(info)
    elif side.kind == "file":
        content = side.content if side.content is not None else Content(b"")
        info.size, info.mode = content.size, side.mode & 0o777
        with content.stream() as stream:
            archive.addfile(info, stream)


def _add_empty(archive: tarfile.TarFile, path: str) -> None:
    archive.addfile(tarfile.TarInfo(path[1:]), io.BytesIO(b""))


# ---------------------------------------------------------------- directory


def _write_tree(stack: Stack, to: Path) -> int:
    """Copy the merged view; special files are left out. Returns the number of paths."""
    if to.exists() and (not to.is_dir() or next(to.iterdir(), None) is not None):
        raise Exists(f"{to} exists and is not an empty directory; export into a new one", None)
    mode = stat.S_IMODE(to.stat().st_mode) if to.exists() else new_mode(0o777)
    try:
        with made_beside(to) as made:
            count = _fill(stack, made)
            made.chmod(mode)
            give_name(made, to, replaces=False)
    except OSError as error:
        if error.errno not in _ONLY_INSIDE or not to.is_dir():
            raise
        return _fill(stack, to)
    return count


def _fill(stack: Stack, to: Path) -> int:
    view = stack.view
    count = 0
    for path, entry in view.subtree("/").items():
        target = os.fspath(to) + path
        if entry.kind == "dir":
            Path(target).mkdir()
        elif entry.kind == "symlink":
            Path(target).symlink_to(entry.target or "")
        elif entry.kind == "file":
            fd = open_regular(view, path, entry)
            try:
                _copy(fd, target, entry.mode & 0o777)
            finally:
                os.close(fd)
        count += entry.kind != "special"
    return count


def _copy(source: int, target: str, mode: int) -> None:
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        copy_bytes(source, fd)
        os.fchmod(fd, mode)
    finally:
        os.close(fd)
