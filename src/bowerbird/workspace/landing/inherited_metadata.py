"""Owner, access lists and extended attributes of a file that is being replaced.

Here: carrying them from the old file to the temporary one (WS-55). Not here: bytes, modes,
when a file is replaced.
"""

import errno
import os

from bowerbird.workspace.tree.real_directory import Beneath

# A capability is a kind of setuid; an overlay mark is data of another layer system.
_NOT_CARRIED = ("security.capability", "user.overlay.")
_UNSUPPORTED = (errno.ENOTSUP, errno.EOPNOTSUPP)


def inherit(target: int, tree: Beneath, path: bytes | None) -> None:
    """Give the new file `target` (a descriptor) owner, ACLs and xattrs of the file at `path`.

    Args:
        path: the file being replaced, None for a new file.

    Raises:
        PermissionError: owner, group or an attribute cannot be kept.
    """
    if path is None:
        return
    source = tree.open(path)
    try:
        old, new = os.fstat(source), os.fstat(target)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.fchown(target, old.st_uid, old.st_gid)
        for name in _attributes(source):
            if name.startswith(_NOT_CARRIED):
                continue
            value = os.getxattr(source, name)
            try:
                os.setxattr(target, name, value)
            except OSError as error:
                # Labels of the security system are set by the system itself.
                if not name.startswith("security."):
                    raise PermissionError(error.errno, f"cannot keep {name}", path) from error
    finally:
        os.close(source)


def default_acl(handle: int) -> bytes | None:
    """Return the access list that new entries of an open directory get, None when there is none."""
    try:
        return os.getxattr(handle, "system.posix_acl_default")
    except OSError as error:
        if error.errno in (*_UNSUPPORTED, errno.ENODATA):
            return None
        raise


def _attributes(fd: int) -> list[str]:
    try:
        return os.listxattr(fd)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return []
        raise
