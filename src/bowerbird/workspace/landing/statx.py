"""What the kernel says of an entry beyond `stat`: may it be changed at all, on which mount does it lie.

Here: one call of `statx`. Not here: what follows from it (`obstacles.py`, `staging.py`).
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable
from functools import cache

import msgspec

from bowerbird.workspace.tree.handles import UNSUPPORTED

_NOFOLLOW, _EMPTY_PATH = 0x100, 0x1000
_MASK = 0x7FF | 0x1000  # basic stats and the mount's id
_SIZE = 256
_IMMUTABLE, _APPEND, _MOUNT_ROOT = 0x10, 0x20, 0x2000


class Beyond(msgspec.Struct, frozen=True):
    """Attributes of one entry.

    Attributes:
        immutable, append_only: nobody, not even root, may change or replace it (`chattr +i`, `+a`).
        mount_root: a file system is mounted here.
        mount: the id of the mount, 0 where the kernel does not tell.
    """

    immutable: bool = False
    append_only: bool = False
    mount_root: bool = False
    mount: int = 0


UNKNOWN = Beyond()


def beyond(handle: int, name: bytes = b"") -> Beyond:
    """Return the attributes of `name` in an open directory, or of the handle itself; no link is followed.

    Where the system does not tell, nothing is said against the entry.
    """
    call = _statx()
    if call is None:
        return UNKNOWN
    buffer = ctypes.create_string_buffer(_SIZE)
    flags = _NOFOLLOW if name else _NOFOLLOW | _EMPTY_PATH
    if call(handle, name, flags, _MASK, buffer) != 0:
        number = ctypes.get_errno()
        if number in (*UNSUPPORTED, errno.EPERM):  # an old kernel, or a filter of system calls
            return UNKNOWN
        raise OSError(number, os.strerror(number), os.fsdecode(name))
    told, attributes = struct.unpack_from("=I", buffer, 0)[0], struct.unpack_from("=Q", buffer, 8)[0]
    mount = struct.unpack_from("=Q", buffer, 144)[0] if told & 0x1000 else 0
    return Beyond(
        bool(attributes & _IMMUTABLE), bool(attributes & _APPEND), bool(attributes & _MOUNT_ROOT), mount
    )


@cache
def _statx() -> Callable[..., int] | None:
    if platform.system() != "Linux":
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    if function is None:
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)
    function.restype = ctypes.c_int
    return function
