"""The small init of one command: starts it, waits, reaps, reports. Used by both kinds of confinement.

Here: what every init does. Not here: how it is separated from the rest (`namespaced`, `confined`).
"""

import contextlib
import errno
import os
import resource
import signal
import socket

from . import channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .channel import Message


def serve_one(
    zygote: socket.socket,
    server: socket.socket,
    start: "Callable[[Message, list[int]], int]",
    finish: "Callable[[], Message]",
) -> None:
    """Wait for a command, run it, report how it ended: to the server itself, who waits for it.

    Args:
        start: starts it and returns its process id; OSError = it cannot be run.
        finish: kills and reaps all that the command left behind; returns what is told of it.
    """
    message, fds = channel.receive(zygote)
    if message is None:
        return
    ended = _run(message, fds, start, finish)
    with contextlib.suppress(OSError):  # the server is gone
        channel.send(server, {"op": "ended", "id": message["id"], **ended})
    channel.send(zygote, {"reported": True})


def _run(
    message: "Message",
    fds: "list[int]",
    start: "Callable[[Message, list[int]], int]",
    finish: "Callable[[], Message]",
) -> "Message":
    try:
        child = start(message, fds)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        refused = isinstance(error, Refused)
        what = reason if refused else f"cannot run {message['argv'][0]}: {reason}"
        with contextlib.suppress(OSError):
            os.write(fds[2], f"bowerbird: {what}\n".encode(errors="replace"))
        code = 127 if isinstance(error, FileNotFoundError) and not refused else 126
        for descriptor in fds:
            os.close(descriptor)
        escaped = {"escaped": True} if isinstance(error, Escaped) else {}
        return {"code": code, "cpu_ms": 0, "peak_bytes": 0, "stragglers": 0, **escaped}
    for descriptor in fds:
        os.close(descriptor)
    pid, status = 0, 0
    while pid != child:
        pid, status = os.waitpid(-1, 0)
    how = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"code": os.WEXITSTATUS(status)}
    told = finish()
    return {**how, **told, **spent(resource.getrusage(resource.RUSAGE_CHILDREN))}


def spent(used: resource.struct_rusage) -> "Message":
    """Return the figures of a resource usage that a record shows."""
    cpu_ms = round((used.ru_utime + used.ru_stime) * 1000)
    return {"cpu_ms": cpu_ms, "peak_bytes": used.ru_maxrss * 1024, "written_bytes": used.ru_oublock * 512}


class Refused(OSError):
    """The command cannot start where it should."""


class Escaped(Refused):
    """A link leads the command's directory out of the branch."""


def prepare(message: "Message") -> str:
    """Go to the command's directory, set its limits, and return the program's path."""
    try:
        os.chdir(message["cwd"])
    except OSError as error:
        raise Refused(error.errno, f"cwd {message['cwd']}: {error.strerror}") from error
    root = message.get("root")
    if root and not (os.getcwd() + "/").startswith(os.path.realpath(root) + "/"):
        raise Escaped(errno.EXDEV, f"cwd {message['cwd']} leads out of the workspace")
    os.umask(message["umask"])
    program = _find(message["argv"][0], message["env"].get("PATH", ""))
    for name, value in message.get("rlimits", {}).items():
        kind = getattr(resource, f"RLIMIT_{name}")
        most = resource.getrlimit(kind)[1]  # a limit of the host's may be lower; it cannot be raised
        limit = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (limit, limit))
    return program


def spawn(program: str, message: "Message", fds: "list[int]") -> int:
    """Start the program in a session of its own, with its three descriptors and no others."""
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, target) for target, descriptor in enumerate(fds[:3])]
    defaults = [signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGXFSZ]
    return os.posix_spawn(
        program, message["argv"], message["env"], file_actions=actions, setsigdef=defaults, setsid=True
    )


def _find(program: str, path: str) -> str:
    if "/" in program:
        return program
    for directory in path.split(":"):
        candidate = f"{directory}/{program}"
        if directory and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    raise FileNotFoundError(2, "command not found")
