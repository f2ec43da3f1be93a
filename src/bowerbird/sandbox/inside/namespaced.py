"""Commands in namespaces: each has its own process ids and mounts; its init is pid 1 there (overlay tier).

When pid 1 ends, the kernel kills every process of its namespace: double forks and `setsid` do not escape.
"""

import contextlib
import os
import signal
import socket

from . import init, kernel, renames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .channel import Message


class Namespaced:
    """One sandbox's way of separating commands.

    Args:
        pids: most processes of one command. seccomp: the compiled filter.
    """

    def __init__(self, pids: int, seccomp: bytes) -> None:
        self.pids = pids
        self.seccomp = seccomp

    def fork(self) -> int:
        """Fork an init into namespaces of its own."""
        return kernel.clone_process(kernel.CLONE_NEWPID | kernel.CLONE_NEWNS)

    def be_init(self, zygote: socket.socket, server: socket.socket) -> None:
        """Be pid 1: mount /proc, then serve one command.

        Capabilities go and the filter comes on before there is a command, so both hold for it from its
        first instruction; what remains to be done here needs neither.
        """
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        kernel.mount("proc", "/proc", "proc", flags)
        self._limit_pids()
        # What stands there beside processes is the host's, and files of root's can be written by a server's
        # commands when the server is root: no capability is asked for. `kernel.core_pattern` names a program
        # that the host's kernel starts.
        kernel.mount("none", "/proc", "", flags | kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY)
        signal.signal(signal.SIGTERM, _pass_on_sigterm)
        kernel.drop_all_capabilities()
        kernel.install_seccomp(self.seccomp)
        supervisor = renames.Renames()
        supervisor.start()

        def finish() -> "Message":
            left = _kill_all()
            supervisor.settle()
            return {"stragglers": left, "not_renamed": supervisor.refused}

        init.serve_one(zygote, server, self._start, finish)

    def _limit_pids(self) -> None:
        # Kernels from 6.14 on have it per namespace; on older ones it is the host's, and RLIMIT_NPROC and
        # the watcher hold.
        if not kernel.is_at_least(6, 14):
            return
        with contextlib.suppress(OSError), open("/proc/sys/kernel/pid_max", "w", encoding="ascii") as file:
            file.write(str(max(301, self.pids)))

    def _start(self, message: "Message", fds: "list[int]") -> int:
        program = init.prepare(message)
        return init.spawn(program, message, fds)

    def signal(self, pid: int, number: int) -> None:
        """Signal a command's init: SIGKILL ends the tree, SIGTERM is passed on to all of it."""
        os.kill(pid, number)

    def command_pids(self, inits: "list[int]") -> "list[int]":
        """Return the processes of all commands: all but bubblewrap's, this one, the inits."""
        own = {1, os.getpid(), *inits}
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in own]


def _kill_all() -> int:
    left = sum(1 for name in os.listdir("/proc") if name.isdigit()) - 1
    if left:
        os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
    return left


def _pass_on_sigterm(_number: int, _frame: object) -> None:
    os.kill(-1, signal.SIGTERM)
