"""Confinement without namespaces: Landlock rules and the bookkeeping of process trees (copy tier).

Here: the Landlock calls (Documentation/userspace-api/landlock.rst), finding and killing all descendants of a
process. Not here: which paths are allowed, starting commands (`zygote`).
"""

import contextlib
import ctypes
import errno
import os
import signal
import socket
import struct

from . import init, kernel, notified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .channel import Message

OLDEST_ABI = 6  # the first that scopes signals and abstract sockets

_SYS_CREATE_RULESET, _SYS_ADD_RULE, _SYS_RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION, _RULE_PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ALL = (1 << 16) - 1
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_SCOPE_ALL = 1 | 2  # abstract Unix sockets, signals
_NET_ALL = 1 | 2  # bind and connect of TCP
_KILL_ROUNDS = 100


def landlock_abi() -> int:
    """Return the kernel's Landlock version; raises OSError where there is none."""
    return kernel.syscall("landlock", _SYS_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)


def restrict(write: "list[str]", read: "list[str]", devices: "list[str]") -> None:
    """Confine this process and all it starts; no_new_privs must be set.

    Args:
        write: trees that may be read, changed and executed.
        read: trees that may be read and executed.
        devices: single files that may be read and written.
    """
    attributes = ctypes.create_string_buffer(struct.pack("QQQ", _ALL, _NET_ALL, _SCOPE_ALL))
    ruleset = kernel.syscall("landlock", _SYS_CREATE_RULESET, attributes, 24, 0)
    try:
        for paths, access in ((write, _ALL), (read, _READ), (devices, _READ_FILE | _WRITE_FILE | _IOCTL_DEV)):
            for path in paths:
                _allow(ruleset, path, access)
        kernel.syscall("landlock", _SYS_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        allowed = access if os.path.isdir(path) else access & _FILE_ONLY
        rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, descriptor))
        kernel.syscall(f"landlock {path}", _SYS_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)


def descendants(*pids: int) -> "list[int]":
    """Return every living descendant of `pids`, children before their own children."""
    return _below(_children_of_all(), list(pids))


def trees(pids: "list[int]") -> "list[list[int]]":
    """Return for each of `pids` its living descendants, all as of one look."""
    parents = _children_of_all()
    return [_below(parents, [pid]) for pid in pids]


def _below(parents: "dict[int, list[int]]", todo: "list[int]") -> "list[int]":
    found: list[int] = []
    while todo:
        below = parents.get(todo.pop(), [])
        found += below
        todo += below
    return found


def children(pid: int) -> "list[int]":
    """Return the living children of `pid`."""
    return _children_of_all().get(pid, [])


def _children_of_all() -> "dict[int, list[int]]":
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="latin-1") as file:
                    after_name = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if after_name[0] != "Z":
                parents.setdefault(int(after_name[1]), []).append(int(name))
    return parents


def tasks(pids: "list[int]") -> int:
    """Return how many threads these processes have together."""
    found = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            found += len(os.listdir(f"/proc/{pid}/task"))
    return found


def _kill(pid: int) -> None:
    # Stopping first keeps a fork bomb from growing between two looks.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def kill_tree(pid: int) -> int:
    """Kill every descendant of `pid`, which must be a subreaper; return how many there were."""
    seen: set[int] = set()
    for _ in range(_KILL_ROUNDS):
        living = descendants(pid)
        if not living:
            break
        for each in living:
            _kill(each)
        seen.update(living)
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break
    return len(seen)


class Confined:
    """One sandbox's way of separating commands without namespaces.

    Args:
        pids: most processes of one command. seccomp: the compiled filter.
        write, read, devices: see `restrict`.
    """

    def __init__(
        self, pids: int, seccomp: bytes, write: "list[str]", read: "list[str]", devices: "list[str]"
    ) -> None:
        self.pids = pids
        self.seccomp = seccomp
        self.rules = (write, read, devices)
        self.room = notified.Room(pids, lambda: tasks(descendants(os.getpid())))

    def fork(self) -> int:
        """Fork an init."""
        return os.fork()

    def be_init(self, zygote: socket.socket, server: socket.socket) -> None:
        """Be the reaper of one command's whole tree; stay outside its confinement, so it cannot be killed."""
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        kernel.drop_all_capabilities()  # it acts in a command's place (`notified`)
        signal.signal(signal.SIGTERM, _pass_on_sigterm)
        init.serve_one(zygote, server, self._start, self._finish)

    def _finish(self) -> "Message":
        self.room.closed = True
        return {"stragglers": kill_tree(os.getpid())}

    def _start(self, message: "Message", fds: "list[int]") -> int:
        # The kernel's own limit counts all that this user runs, here and elsewhere; see `notified.Room`.
        message.get("rlimits", {}).pop("NPROC", None)
        program = init.prepare(message)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            pid = os.fork()
            if pid == 0:
                try:
                    self._become(program, message, fds, theirs)
                except OSError as error:
                    theirs.send(str(error.errno or errno.EPERM).encode())
                os._exit(126)
            theirs.close()
            told, listeners, _, _ = socket.recv_fds(ours, 16, 1)
            if told == b"filter":  # the next word comes only if the program cannot be started
                notified.start(listeners[0], self.rules[0], self.room)
                told = ours.recv(16)
        if told:
            os.waitpid(pid, 0)
            raise OSError(int(told), os.strerror(int(told)))
        return pid

    def _become(self, program: str, message: "Message", fds: "list[int]", told: socket.socket) -> None:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for target, descriptor in enumerate(fds[:3]):
            os.dup2(descriptor, target)
        restrict(*self.rules)
        listener = kernel.install_notifying_seccomp(self.seccomp)
        socket.send_fds(told, [b"filter"], [listener])
        os.close(listener)
        os.execve(program, message["argv"], message["env"])

    def signal(self, pid: int, number: int) -> None:
        """SIGKILL ends a command's tree with its init; SIGTERM is passed on to all of the tree."""
        if number == signal.SIGTERM:
            os.kill(pid, number)
            return
        os.kill(pid, signal.SIGSTOP)  # so that it starts nothing while its tree is killed
        for each in descendants(pid):
            _kill(each)
        os.kill(pid, signal.SIGKILL)

    def sweep(self, inits: "list[int]") -> None:
        """Kill what an init that was killed left behind: it has become this process's own child."""
        for _ in range(_KILL_ROUNDS):
            orphans = [each for each in children(os.getpid()) if each not in inits]
            if not orphans:
                return
            for each in (*descendants(*orphans), *orphans):
                _kill(each)
            for each in orphans:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(each, 0)


def _pass_on_sigterm(_number: int, _frame: object) -> None:
    for each in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGTERM)
