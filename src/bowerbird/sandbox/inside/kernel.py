"""System calls that Python 3.11 does not offer, through ctypes.

Here: thin calls that raise OSError, with their constants. Not here: any policy. Numbers are those
of the generic table (all calls newer than 5.1 have one number on every architecture); the older ones
go through libc. Sources: the kernel's man pages unshare(2), mount(2), prctl(2), openat2(2),
Documentation/filesystems/mount_api.
"""

import contextlib
import ctypes
import os
import struct

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 0x1000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
MNT_DETACH = 2

_SYS_OPEN_TREE = 428
_SYS_MOVE_MOUNT = 429
_SYS_FSOPEN = 430
_SYS_FSCONFIG = 431
_SYS_FSMOUNT = 432
_SYS_OPENAT2 = 437
_SYS_CLONE = {"x86_64": 56, "aarch64": 220}
_SYS_RENAMEAT2 = {"x86_64": 316, "aarch64": 276}
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _FILTER_NEW_LISTENER, _FILTER_WAIT_KILLABLE = 1, 8, 32

_FSCONFIG_SET_FLAG, _FSCONFIG_SET_STRING, _FSCONFIG_CMD_CREATE = 0, 1, 6
_MOVE_MOUNT_F_EMPTY_PATH = 4
_OPEN_TREE_CLONE, _AT_EMPTY_PATH, _AT_FDCWD = 1, 0x1000, -100

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 22, 36, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
_LAST_CAPABILITY = 40

RESOLVE_NO_MAGICLINKS, RESOLVE_BENEATH = 0x02, 0x08

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def is_at_least(major: int, minor: int) -> bool:
    """Tell whether the kernel has this version or a newer one."""
    first, second = os.uname().release.split(".")[:2]
    digits = second.partition("-")[0]
    return (int(first), int(digits) if digits.isdigit() else 0) >= (major, minor)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(what: str, number: int, *arguments: object) -> int:
    """Make a system call by number; `what` names it in the error."""
    return _checked(_libc.syscall(number, *arguments), what)


def unshare(flags: int) -> None:
    """Leave the namespaces named by CLONE_NEW* `flags`."""
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def map_own_ids(uid: int, gid: int) -> None:
    """Map exactly this user and group, one to one, in the user namespace just entered."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)


def clone_process(flags: int) -> int:
    """Fork into new namespaces; only for single-threaded processes. Returns like `os.fork`."""
    signal_child = 17
    zero = ctypes.c_void_p(0)
    number = _SYS_CLONE[os.uname().machine]
    return _checked(
        _libc.syscall(number, ctypes.c_ulong(flags | signal_child), zero, zero, zero, zero), "clone"
    )


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """mount(2)."""
    _checked(
        _libc.mount(
            source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode()
        ),
        f"mount {target}",
    )


def umount(target: str) -> None:
    """Detach the mount at `target` at once; open files keep it until they close."""
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def overlay_mount(lower: "list[str]", upper: str, work: str) -> int:
    """Return a detached overlay mount, `lower` newest first, as a descriptor that can be sent and attached.

    An empty `upper` makes it read-only; then there must be two lower directories.

    Attributes go under `user.overlay.` (`userxattr`), as an unprivileged mount needs. The mount lives
    as long as a descriptor or an attachment of it does: nothing is left behind by a killed process.

    A writable one is `volatile`: else the kernel waits for the disk with each file of a lower directory that
    is changed, so that a `chmod -R` of 50,000 takes minutes. A killed process loses nothing by that; a power
    cut may lose what was written shortly before, as it does of files that were not changed but made.
    """
    context = _checked(_libc.syscall(_SYS_FSOPEN, b"overlay", 1), "fsopen overlay")
    try:
        _set_flag(context, "userxattr")
        for directory in lower:
            _set_string(context, "lowerdir+", directory)
        if upper:
            _set_string(context, "upperdir", upper)
            _set_string(context, "workdir", work)
            _set_flag(context, "volatile")
            _forget_volatile(work)
        _checked(_libc.syscall(_SYS_FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0), "create overlay")
        if upper:
            _forget_volatile(work)
        attributes = ctypes.c_uint(0x2 | 0x4)  # MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV
        return _checked(_libc.syscall(_SYS_FSMOUNT, context, 1, attributes), "fsmount overlay")
    finally:
        os.close(context)


def _forget_volatile(work: str) -> None:
    """Remove the kernel's note that an overlay was volatile: it refuses to mount these directories again.

    It fears a power cut, after which we can only show what is there, as with every other file. A note that
    cannot be removed is the kernel's to name, at the next mount.
    """
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(work, "work", "incompat/volatile/dirty"))
    for name in ("incompat/volatile", "incompat"):
        with contextlib.suppress(OSError):
            os.rmdir(os.path.join(work, "work", name))


def _set_flag(context: int, key: str) -> None:
    _checked(
        _libc.syscall(_SYS_FSCONFIG, context, _FSCONFIG_SET_FLAG, key.encode(), None, 0), f"overlay {key}"
    )


def _set_string(context: int, key: str, value: str) -> None:
    raw = os.fsencode(value)
    _checked(
        _libc.syscall(_SYS_FSCONFIG, context, _FSCONFIG_SET_STRING, key.encode(), raw, 0), f"overlay {key}"
    )


def attach(mount_fd: int, target: str) -> None:
    """Attach a detached mount at `target`."""
    _checked(
        _libc.syscall(
            _SYS_MOVE_MOUNT, mount_fd, b"", _AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH
        ),
        f"attach mount at {target}",
    )


def copy_of_mount(mount_fd: int) -> int:
    """Return a second detached mount of the same file system: one attachment uses one up."""
    flags = _OPEN_TREE_CLONE | _AT_EMPTY_PATH | os.O_CLOEXEC
    return _checked(_libc.syscall(_SYS_OPEN_TREE, mount_fd, b"", ctypes.c_uint(flags)), "open_tree")


def open_beneath(root_fd: int, path: bytes, flags: int, mode: int = 0) -> int:
    """Open `path` below `root_fd`; links, `..` and magic links cannot lead out (openat2)."""
    resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS
    how = ctypes.create_string_buffer(struct.pack("QQQ", flags | os.O_CLOEXEC, mode, resolve))
    return _checked(_libc.syscall(_SYS_OPENAT2, root_fd, path or b".", how, 24), "openat2")


def rename(old: int, old_name: bytes, new: int, new_name: bytes, flags: int) -> None:
    """renameat2(2): from the name in one open directory to the name in another."""
    number = _SYS_RENAMEAT2[os.uname().machine]
    syscall("renameat2", number, old, old_name, new, new_name, ctypes.c_uint(flags))


def prctl(option: int, argument: int = 0) -> None:
    """prctl(2) with one argument."""
    zero = ctypes.c_ulong(0)
    _checked(_libc.prctl(option, ctypes.c_ulong(argument), zero, zero, zero), f"prctl {option}")


def drop_all_capabilities() -> None:
    """Give up every capability for good, the bounding set included, and forbid gaining any by exec."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break  # without CAP_SETPCAP the bounding set stays; no_new_privs below makes it moot
    zero = ctypes.c_ulong(0)
    _libc.prctl(PR_CAP_AMBIENT, ctypes.c_ulong(_PR_CAP_AMBIENT_CLEAR_ALL), zero, zero, zero)
    header = ctypes.create_string_buffer(struct.pack("Ii", 0x2008_0522, 0))
    empty = ctypes.create_string_buffer(24)
    _checked(_libc.syscall(_SYS_CAPSET[os.uname().machine], header, empty), "capset")
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def _filter(program: bytes) -> "tuple[object, object]":
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    return ctypes.create_string_buffer(header, len(header)), instructions


def install_notifying_seccomp(program: bytes) -> int:
    """Install a filter some of whose calls another process answers; return the descriptor it answers at."""
    buffer, _kept = _filter(program)
    flags = _FILTER_NEW_LISTENER | _FILTER_WAIT_KILLABLE
    return syscall("seccomp", _SYS_SECCOMP[os.uname().machine], _SET_MODE_FILTER, flags, buffer)


def install_seccomp(program: bytes) -> None:
    """Install a compiled BPF filter (`struct sock_filter[]`); no_new_privs must be set."""
    buffer, _kept = _filter(program)
    zero = ctypes.c_ulong(0)
    result = _libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), buffer, zero, zero)
    _checked(result, "seccomp")
