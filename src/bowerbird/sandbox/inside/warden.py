"""The process that owns the server's user namespace: it mounts overlays and starts sandboxes.

A server cannot enter a user namespace itself (it has threads and other duties), so this one does, once.
It answers two requests: `mount`, which returns detached overlay mounts as descriptors, and `start`,
which runs bubblewrap with the descriptors it is given. It is the parent of every sandbox: when the server
dies, its socket closes, this process leaves, and `--die-with-parent` takes all sandboxes along.

Runs as `python -I -S -c "…; from inside.warden import main; main(FD)"`.
"""

import contextlib
import os
import signal
import socket

from . import channel, kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .channel import Message


def _overlay(wanted: "Message") -> int:
    lower, ground, scratch = wanted["lower"], wanted["ground"], wanted["scratch"]
    if not ground:
        return kernel.overlay_mount(lower, wanted["upper"], wanted["work"])
    # The layers lie inside of what they are laid over, which the kernel refuses. A read-only mount makes the
    # ground another file system; it takes two directories, so one is empty. To be named in the next mount,
    # each must stand somewhere for an instant.
    kernel.mount("none", scratch, "tmpfs", 0)
    try:
        below = kernel.overlay_mount([scratch, ground], "", "")
    finally:
        kernel.umount(scratch)
    try:
        kernel.attach(below, scratch)
    finally:
        os.close(below)
    try:
        return kernel.overlay_mount([*lower, scratch], wanted["upper"], wanted["work"])
    finally:
        kernel.umount(scratch)


def _mount(message: "Message") -> "list[int]":
    """Return, for each overlay asked for, the mount and a copy of it: one to attach, one to look through."""
    fds: list[int] = []
    try:
        for overlay in message["overlays"]:
            mounted = _overlay(overlay)
            fds.append(mounted)
            fds.append(kernel.copy_of_mount(mounted))
    except OSError:
        for descriptor in fds:
            os.close(descriptor)
        raise
    return fds


def _start(message: "Message", fds: "list[int]") -> int:
    """Start a program; the first of `fds` is its stderr, the others are its descriptors 3, 4, …"""
    stderr, *fds = fds
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    # Two steps, because a target number may be the number of a source still needed.
    high = 100 + len(fds)
    actions: list[tuple[int, ...]] = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
    actions.append((os.POSIX_SPAWN_DUP2, stderr, 2))
    actions += [(os.POSIX_SPAWN_DUP2, fd, high + n) for n, fd in enumerate(fds)]
    actions += [(os.POSIX_SPAWN_DUP2, high + n, 3 + n) for n in range(len(fds))]
    actions += [(os.POSIX_SPAWN_CLOSE, high + n) for n in range(len(fds))]
    try:
        argv = message["argv"]
        defaults = [signal.SIGCHLD, signal.SIGINT]  # what this process ignores, its children must not
        return os.posix_spawn(
            argv[0], argv, {"PATH": "/usr/bin:/bin"}, file_actions=actions, setsigdef=defaults
        )
    finally:
        os.close(null)


def main(channel_fd: int) -> None:
    """Enter a user namespace with this user mapped one to one, then serve until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended sandboxes need no reaping
    with socket.socket(fileno=channel_fd) as server:
        server.set_inheritable(False)
        uid, gid = os.getuid(), os.getgid()
        try:
            kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
            kernel.map_own_ids(uid, gid)
        except OSError as error:
            channel.send(server, {"op": "failed", "errno": error.errno, "error": str(error)})
            return
        channel.send(server, {"op": "ready"})
        while True:
            message, fds = channel.receive(server)
            if message is None:
                return
            _answer(server, message, fds)


def _answer(server: socket.socket, message: "Message", fds: "list[int]") -> None:
    made: list[int] = []
    try:
        if message["op"] == "mount":
            made = _mount(message)
            channel.send(server, {"op": "mounted"}, made)
        else:
            channel.send(server, {"op": "started", "pid": _start(message, fds)})
    except OSError as error:
        with contextlib.suppress(OSError):
            channel.send(server, {"op": "failed", "errno": error.errno, "error": str(error)})
    finally:
        for descriptor in (*made, *fds):
            os.close(descriptor)
