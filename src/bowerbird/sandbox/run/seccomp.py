"""The system-call filter of sandboxed commands (SB-25), compiled once per process.

Here: which calls are refused and how. Not here: installing it (`inside/zygote.py`, copy tier).
Default is allow: a deny list keeps compilers, interpreters and test suites working; what it refuses is what
namespaces without capabilities would still expose as kernel attack surface.
"""

import errno
import functools
import os
import signal
import socket
import tempfile
from typing import Any

from bowerbird.core.errors import SandboxUnavailable

_SUPPORTED = ("x86_64", "aarch64")

REFUSED = (
    "mount umount2 pivot_root open_tree move_mount fsopen fsmount fsconfig fspick mount_setattr "
    "unshare setns bpf perf_event_open userfaultfd "
    "io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key kexec_load kexec_file_load "
    "init_module finit_module delete_module open_by_handle_at quotactl quotactl_fd swapon swapoff reboot "
    "acct settimeofday clock_settime clock_adjtime adjtimex syslog"
).split()

# Debuggers and sanitizers need these for their own processes, and in a process namespace there are no others;
# its init is not dumpable. The copy tier's supervisor relies on nobody being able to change a caller's call.
TRACING = "ptrace process_vm_readv process_vm_writev kcmp".split()

# Without namespaces these reach objects of the host's that Landlock knows nothing of: shared memory, message
# queues, attributes of files, other processes' limits and priorities.
_REFUSED_IN_COPY = (
    "shmget shmat shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink"
).split()
_ATTRIBUTES = (
    "setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr "
    "getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr"
).split()
_NEWER_ATTRIBUTES = (463, 464, 465, 466, 468, 469)  # {set,get,list,remove}xattrat, file_{get,set}attr
_OTHER_PROCESS = (  # call, which argument names the process; 0 is the caller itself
    ("prlimit64", 0), ("sched_setaffinity", 0), ("sched_setscheduler", 0), ("sched_setparam", 0),
    ("sched_setattr", 0), ("setpriority", 1), ("ioprio_set", 1),
)  # fmt: skip
_PRIO_USER, _IOPRIO_WHO_USER = 2, 3
_FILE_IOCTLS = (0x4008_6602, 0x4004_6602, 0x401C_5820, 0x4008_7602, 0x4080_6685, 0x800C_6613)
# FS_IOC_SETFLAGS, its 32-bit form, FSSETXATTR, SETVERSION, ENABLE_VERITY, SET_ENCRYPTION_POLICY
_NOTIFIED = (
    "chmod fchmod fchmodat chown fchown lchown fchownat utime utimes futimesat utimensat connect fork vfork"
).split()
_FCHMODAT2 = 452
_PUNCH_HOLE = 0x02
_RESERVING_IOCTLS = (0x4030_5828, 0x4030_582A, 0x4030_5839, 0x4030_5824, 0x4030_5825)
# FS_IOC_RESVSP, RESVSP64, ZERO_RANGE, XFS_IOC_ALLOCSP and its 64-bit form: `fallocate` by other names
_PR_SET_DUMPABLE = 4
_SOCK_DGRAM, _SOCK_RAW, _SOCK_TYPE = 2, 3, 0xF

_NEW_NAMESPACES = 0x7E02_0000 | 0x80  # CLONE_NEWNS … CLONE_NEWNET, and CLONE_NEWTIME
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_ALLOWED_LOCAL = frozenset({socket.AF_UNIX})
_AF_ALLOWED_NET = frozenset({socket.AF_UNIX, socket.AF_INET, socket.AF_INET6})
_AF_NETLINK, _NETLINK_ROUTE, _HIGHEST_AF = 16, 0, 46


def _add_copy_rules(rules: Any) -> None:
    import pyseccomp  # pyright: ignore[reportMissingTypeStubs]  (it has none)

    refuse, absent = pyseccomp.ERRNO(errno.EPERM), pyseccomp.ERRNO(errno.EOPNOTSUPP)
    for name in (*_REFUSED_IN_COPY, *TRACING):
        rules.add_rule(refuse, name)
    for call in (*_ATTRIBUTES, *_NEWER_ATTRIBUTES):
        rules.add_rule(absent, call)  # as on a file system that has none; programs know that
    for name, index in _OTHER_PROCESS:
        rules.add_rule(refuse, name, pyseccomp.Arg(index, pyseccomp.NE, 0))
    for name, everybody in (("setpriority", _PRIO_USER), ("ioprio_set", _IOPRIO_WHO_USER)):
        rules.add_rule(refuse, name, pyseccomp.Arg(0, pyseccomp.MASKED_EQ, 0xFFFF_FFFF, everybody))
    for request in _FILE_IOCTLS:
        rules.add_rule(refuse, "ioctl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, 0xFFFF_FFFF, request))
    for kind in (_SOCK_DGRAM, _SOCK_RAW):  # only these take another address with every message
        for name in ("socket", "socketpair"):
            rules.add_rule(refuse, name, pyseccomp.Arg(1, pyseccomp.MASKED_EQ, _SOCK_TYPE, kind))
    for call in (*_NOTIFIED, _FCHMODAT2):
        rules.add_rule(pyseccomp.NOTIFY, call)
    # See `notified`: what a child's end interrupts must begin again.
    of_children = (pyseccomp.Arg(0, pyseccomp.EQ, signal.SIGCHLD), pyseccomp.Arg(1, pyseccomp.NE, 0))
    rules.add_rule(pyseccomp.NOTIFY, "rt_sigaction", *of_children)
    none_new = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, _NEW_NAMESPACES, 0)  # the others are refused already
    rules.add_rule(pyseccomp.NOTIFY, "clone", none_new)


def _add_limit_rules(rules: Any) -> None:
    """Refuse what would pass the limits unseen."""
    import pyseccomp  # pyright: ignore[reportMissingTypeStubs]  (it has none)

    # It takes a disk's room in no time, so no watcher is fast enough. Programs know file systems without it
    # and write instead; giving room back stays allowed.
    unsupported = pyseccomp.ERRNO(errno.EOPNOTSUPP)
    rules.add_rule(unsupported, "fallocate", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, _PUNCH_HOLE, 0))
    for request in _RESERVING_IOCTLS:
        rules.add_rule(unsupported, "ioctl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, 0xFFFF_FFFF, request))
    # What such a process holds open could not be counted. It is told that it was done.
    not_dumpable = (pyseccomp.Arg(0, pyseccomp.EQ, _PR_SET_DUMPABLE), pyseccomp.Arg(1, pyseccomp.EQ, 0))
    rules.add_rule(pyseccomp.ERRNO(0), "prctl", *not_dumpable)


@functools.cache
def filter_program(*, copy_tier: bool = False) -> bytes:
    """Return the compiled BPF program.

    Args:
        copy_tier: also refuse what namespaces would keep apart, and hand over what only a supervisor can
            confine (`inside/notified`); then it must be installed with a listener.

    Raises:
        SandboxUnavailable: the machine is neither x86_64 nor aarch64, or libseccomp is missing.
    """
    machine = os.uname().machine
    if machine not in _SUPPORTED:
        raise SandboxUnavailable(f"no system-call filter for {machine}: commands run on x86_64 and aarch64")
    try:
        import pyseccomp  # pyright: ignore[reportMissingTypeStubs]  (it has none)
    except (ImportError, RuntimeError, OSError) as error:
        raise SandboxUnavailable(f"libseccomp cannot be loaded ({error}); install libseccomp2") from error
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    rules.set_attr(pyseccomp.Attr.ACT_BADARCH, pyseccomp.KILL_PROCESS)  # 32-bit and x32 calls
    refuse = pyseccomp.ERRNO(errno.EPERM)
    for name in REFUSED:
        rules.add_rule(refuse, name)
    rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")  # its flags cannot be read by a filter
    for bit in (1 << n for n in range(32) if _NEW_NAMESPACES >> n & 1):
        rules.add_rule(refuse, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, bit, bit))
    for request in (_TIOCSTI, _TIOCLINUX):
        rules.add_rule(refuse, "ioctl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, 0xFFFF_FFFF, request))
    allowed = _AF_ALLOWED_LOCAL if copy_tier else _AF_ALLOWED_NET
    for family in range(_HIGHEST_AF):
        if family == _AF_NETLINK and not copy_tier:
            route = pyseccomp.Arg(2, pyseccomp.NE, _NETLINK_ROUTE)
            rules.add_rule(refuse, "socket", pyseccomp.Arg(0, pyseccomp.EQ, family), route)
        elif family not in allowed:
            rules.add_rule(refuse, "socket", pyseccomp.Arg(0, pyseccomp.EQ, family))
    rules.add_rule(refuse, "socket", pyseccomp.Arg(0, pyseccomp.GE, _HIGHEST_AF))
    _add_limit_rules(rules)
    if copy_tier:
        _add_copy_rules(rules)
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()
