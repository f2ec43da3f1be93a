"""The process that starts commands inside a sandbox, each as its own little machine.

Runs as `python -I -S -c "…; from inside.zygote import main; main(FD)"` in the namespaces that bubblewrap
made, holding only CAP_SYS_ADMIN of its own user namespace. Each command gets a process namespace with
a small init (pid 1) that mounts `/proc`, starts the command without any capability and under seccomp, and
reaps. When the command ends, or the init is killed, the kernel kills every descendant: double forks and
`setsid` do not escape. When the server's end of the socket closes, this process leaves and takes all along.

Messages are JSON objects, one per SOCK_SEQPACKET packet, with descriptors beside them.
"""

import contextlib
import os
import select
import signal
import socket

from . import channel, confined, init, kernel, usage
from .confined import Confined
from .namespaced import Namespaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .channel import Message


class Init:
    """Pid 1 of a command, seen from the zygote."""

    def __init__(self, pid: int, channel_: socket.socket) -> None:
        self.pid = pid
        self.channel = channel_


class Zygote:
    """Owns the socket to the server, the running commands, and one init kept ready for the next."""

    def __init__(self, server: socket.socket) -> None:
        self.server = server
        self.world: Namespaced | Confined | None = None
        self.mounts: list[str] = []
        self.spare: Init | None = None
        self.commands: dict[int, tuple[str, Init]] = {}  # descriptor of its channel → id, init
        self.ending: set[int] = set()  # inits that reported and are being torn down by the kernel
        self.bridges: dict[int, int] = {}  # port of the loopback → process that leads it out

    def serve(self) -> None:
        """Answer requests until the server's end closes."""
        poller = select.poll()
        poller.register(self.server, select.POLLIN)
        while True:
            for descriptor, _ in poller.poll():
                if descriptor != self.server.fileno():
                    poller.unregister(descriptor)
                    self.report_end(*self.commands.pop(descriptor))
                    continue
                message, fds = channel.receive(self.server)
                if message is None:
                    return
                started = self.handle(message, fds)
                if started is not None:
                    self.commands[started.channel.fileno()] = (message["id"], started)
                    poller.register(started.channel, select.POLLIN)
            if self.spare is None and self.world is not None:
                self.spare = self.prepare()
            self.reap()

    def send(self, message: "Message") -> None:
        """Send one answer; a server that went away is noticed by the next read."""
        with contextlib.suppress(OSError):
            channel.send(self.server, message)

    def handle(self, message: "Message", fds: "list[int]") -> "Init | None":
        """Do one request; return the init of a command just started."""
        operation, number = message["op"], message.get("n")
        try:
            if operation == "run":
                return self.run(message, fds)
            if operation == "signal":
                self.signal(message["id"], message["signal"])
            elif operation == "attach":
                self.attach(message["targets"], fds, stays=message["stays"])
                self.send({"op": "attached", "n": number})
            elif operation == "configure":
                self.configure(message, os.pread(fds[0], 1 << 16, 0))
                self.send({"op": "ready", "n": number})
            elif operation == "bridge":
                self.open_bridge(message["port"], message["socket"])
                self.send({"op": "bridged", "n": number})
            elif operation == "usage":
                self.send({"op": "usage", "n": number, **self.usage(**message["how"])})
        except OSError as error:
            command = message["id"] if operation == "run" else None
            told = {"id": command, "n": number, "errno": error.errno, "error": str(error)}
            self.send({"op": "failed", **told})
        finally:
            for descriptor in fds:
                os.close(descriptor)
        return None

    def open_bridge(self, port: int, name: str) -> None:
        """Start the relay from a port of the loopback to a socket, once."""
        if isinstance(self.world, Confined):
            raise OSError(95, "the loopback is the host's own")
        if port not in self.bridges:
            from . import bridge  # brings threads along, which most sandboxes never need

            self.bridges[port] = bridge.start(port, name)

    def attach(self, targets: "list[str]", fds: "list[int]", *, stays: bool) -> None:
        """Replace the branch's mounts by others, or add some for good; nothing may run meanwhile."""
        if self.spare is not None:  # it stands on the old mounts
            self.spare.channel.close()
            self.ending.add(self.spare.pid)
            self.spare = None
        for target in () if stays else reversed(self.mounts):
            kernel.umount(target)
        self.mounts = self.mounts if stays else []
        for target, descriptor in zip(targets, fds, strict=True):
            kernel.attach(descriptor, target)
            if not stays:
                self.mounts.append(target)

    def signal(self, command: str, number: int) -> None:
        """SIGKILL ends the command's whole tree; another signal goes to each process of it."""
        for name, started in self.commands.values():
            if name == command and self.world is not None:
                self.world.signal(started.pid, number)

    def configure(self, message: "Message", seccomp: bytes) -> None:
        """Choose how commands are separated; the message holds Landlock rules in the copy tier."""
        rules = message.get("rules")
        pids = message["pids"]
        self.world = Confined(pids, seccomp, **rules) if rules else Namespaced(pids, seccomp)

    def prepare(self) -> "Init":
        """Make an init ahead of time: its process namespace and /proc cost more than starting a command."""
        if self.world is None:
            raise OSError(22, "not configured")
        ours, theirs = channel.pair()
        pid = self.world.fork()
        if pid == 0:
            code = 127
            try:
                low, high = sorted((theirs.fileno(), self.server.fileno()))
                for first, end in ((3, low), (low + 1, high), (high + 1, 1 << 16)):
                    os.closerange(first, end)
                self.world.be_init(theirs, self.server)
                code = 0
            finally:
                os._exit(code)
        theirs.close()
        return Init(pid, ours)

    def run(self, message: "Message", fds: "list[int]") -> "Init":
        """Hand a command to the init kept ready."""
        ready, self.spare = self.spare or self.prepare(), None
        try:
            channel.send(ready.channel, message, fds)
        except OSError:  # it was killed while it waited, say for its memory
            ready.channel.close()
            self.ending.add(ready.pid)
            ready = self.prepare()
            channel.send(ready.channel, message, fds)
        return ready

    def report_end(self, command: str, ended_init: "Init") -> None:
        """Tell the server how a command ended whose init was killed before it could itself."""
        with ended_init.channel:
            reported, _ = channel.receive(ended_init.channel)
        if reported is not None:
            self.ending.add(ended_init.pid)
            return
        _, _, used = os.wait4(ended_init.pid, 0)
        if isinstance(self.world, Confined):
            self.world.sweep(self.inits())
        ended = {"signal": signal.SIGKILL, "stragglers": 0, **init.spent(used)}
        self.send({"op": "ended", "id": command, **ended})

    def reap(self) -> None:
        """Collect inits that are gone; the kernel's tear-down of a namespace takes milliseconds."""
        for pid in list(self.ending):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self.ending.discard(pid)

    def inits(self) -> "list[int]":
        """Return the process ids of all inits, the one kept ready and ending ones included."""
        found = [*self.ending, *(each.pid for _, each in self.commands.values())]
        return [*found, self.spare.pid] if self.spare is not None else found

    def usage(self, *, deep: bool, ask: bool, exact_above: int | None) -> "Message":
        """Memory and process count of all that commands run, and each one's processor time."""
        if self.world is None:
            return {"processes": 0, "memory_bytes": 0, "cpu_ms": {}}
        running = list(self.commands.values())
        below, *trees = confined.trees([os.getpid(), *(started.pid for _, started in running)])
        if isinstance(self.world, Namespaced):  # whatever is not this sandbox's own
            pids = self.world.command_pids(self.inits())
        else:  # /proc is the whole host's
            pids = sorted({*below} - {*self.inits()})
        spent = {
            name: usage.cpu_ms(started.pid, tree)
            for (name, started), tree in zip(running, trees, strict=True)
        }
        own_ipc = isinstance(self.world, Namespaced)
        pids = [pid for pid in pids if pid not in self.bridges.values()]
        found = usage.of_processes(pids, deep=deep, ask=ask, own_ipc=own_ipc, exact_above=exact_above)
        return {**found, "cpu_ms": spent}


def main(channel_fd: int, *, namespaces: bool = True) -> None:
    """Serve the socket `channel_fd` until the server is gone."""
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=channel_fd) as server:
        server.set_inheritable(False)
        if namespaces:
            # bubblewrap's mounts may belong to an outer user namespace; a copy of them is this one's own.
            # Private, so that what a command's init mounts reaches no other.
            kernel.unshare(kernel.CLONE_NEWNS)
            kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
        else:
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        Zygote(server).serve()
    if not namespaces:
        confined.kill_tree(os.getpid())
