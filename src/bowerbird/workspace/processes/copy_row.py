"""What is remembered of one path of a copy, and whether it is still so (copy tier, SB-12).

Here: signs of entries on both sides. Not here: what follows from a difference (`mirror.py`).
"""

import os
import stat

import msgspec

from bowerbird.workspace.tree import handles, owned
from bowerbird.workspace.tree.nodes import Entry, kind_of

Sign = tuple[str, int, int, int, int, int]
UNKNOWN: Sign = ("", 0, 0, 0, 0, 0)


class Row(msgspec.Struct, array_like=True):
    """One path as it was when branch and copy last agreed.

    Attributes:
        copy: kind, size, mtime_ns, ctime_ns, inode, mode of the copy's entry.
        branch: kind, size, mtime_ns, ctime_ns, layer (-1 = workspace), mode of the branch's entry.
        digest: of a file that had just been changed: it may change again without `copy` showing it.
        late: its user saved it while processes ran, which may have read what was there before.
    """

    copy: Sign
    branch: Sign
    digest: bytes = b""
    late: bool = False


def sign_of(status: os.stat_result) -> Sign:
    """Return what tells an entry of the copy from one that was changed."""
    kind = kind_of(status.st_mode)
    mode = stat.S_IMODE(status.st_mode)
    if kind == "dir":
        # Times of a directory change with every entry in it; its entries are looked at anyway.
        return (kind, 0, 0, 0, status.st_ino, mode)
    return (kind, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, mode)


def is_unchanged(row: Row, above: int, name: str, status: os.stat_result) -> bool:
    """Whether an entry of the copy is still what its row says."""
    if row.copy != sign_of(status):
        return False
    if row.digest:
        try:
            if digest_at(above, name, status, always=True) != row.digest:
                return False
        except OSError as error:
            return error.errno in handles.ABSENT  # something else by now: the next look tells
        row.digest = row.digest if owned.is_fresh(status.st_ctime_ns) else b""
    return True


def digest_at(above: int, name: str, status: os.stat_result, *, always: bool = False) -> bytes:
    """Return the digest of a file that was changed just now, nothing for others."""
    if not stat.S_ISREG(status.st_mode) or not (always or owned.is_fresh(status.st_ctime_ns)):
        return b""
    fd = owned.open_file(above, name)
    try:
        return owned.digest(fd)
    finally:
        os.close(fd)


def branch_sign_of(entry: Entry) -> Sign:
    """Return what tells an entry of the branch from one that was changed."""
    layer = -1 if entry.layer is None else entry.layer
    if entry.kind == "dir":
        return ("dir", 0, 0, 0, 0, entry.mode)
    return (entry.kind, entry.size, entry.mtime_ns, entry.ctime_ns, layer, entry.mode)
