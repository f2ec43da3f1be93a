"""A running sandbox: bubblewrap with the zygote inside, commands sent to it (SB-9, SB-19).

Here: start, attach mounts, run, signal, usage, end. Not here: what is mounted (`projection`),
limits over time (`watch`), capture of changes.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bowerbird.core.errors import SandboxUnavailable
from bowerbird.core.ids import new_id
from bowerbird.core.processes.creation_mask import creation_mask
from bowerbird.core.processes.host_programs import HostProcess, popen
from bowerbird.core.threads import in_thread
from bowerbird.sandbox.inside import channel
from bowerbird.sandbox.run.warden import PACKAGE, Mounted, Warden

_START_S = 10.0
_LOAD = "import sys; sys.path.insert(0, '/run/bowerbird/lib'); from inside.zygote import main; main(3)"
Answer = dict[str, Any]
_FIGURES = (
    "processes", "memory_bytes", "shared_bytes", "nameless_bytes", "in_flight", "holders", "socket_bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Usage:
    """What runs in a sandbox takes.

    Attributes:
        cpu_ms: processor time of each command's tree, by its id.
        shared_bytes: what of the memory is shared or in memory files.
        nameless_bytes: files on disk without a name that are held open.
        in_flight: descriptors that lie in sockets' queues, so nobody's list has them.
        holders: sockets and pipes, which hold memory of the kernel's.
        socket_bytes: what sockets themselves say that they hold, if asked. These five only of a deep look.
    """

    processes: int
    memory_bytes: int
    cpu_ms: Mapping[str, int]
    shared_bytes: int = 0
    nameless_bytes: int = 0
    in_flight: int = 0
    holders: int = 0
    socket_bytes: int = 0


class WarmSandbox:
    """One bubblewrap with a zygote; belongs to one event loop.

    Use `start`, then `attach`, then any number of `run`s; `close` kills everything inside at once.
    """

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._answers: dict[int, asyncio.Future[Answer | None]] = {}
        self._asked = 0
        self._running: dict[str, asyncio.Future[Answer]] = {}
        self._process: HostProcess | None = None
        self.alive = True
        self._bridged: set[int] = set()
        server.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(server.fileno(), self._read)

    @classmethod
    async def start(
        cls, warden: Warden, bubblewrap: Sequence[str], interpreter: str, seccomp: bytes, pids: int = 4096
    ) -> "WarmSandbox":
        """Start bubblewrap with its arguments up to `--`; raises SandboxUnavailable with its own words."""
        ours, theirs, words, said = _ends()
        with theirs:
            argv = [*bubblewrap, "--", interpreter, "-I", "-S", "-c", _LOAD]
            try:  # off the loop: on a busy machine another process's answer takes its time
                await in_thread(warden.start, argv, [theirs.fileno()], said)
            except BaseException:
                ours.close()
                os.close(words)
                raise
            finally:
                os.close(said)
        return await cls._configured(ours, words, seccomp, {"pids": pids})

    @classmethod
    async def start_confined(
        cls, seccomp: bytes, rules: Mapping[str, Sequence[str]], pids: int = 4096
    ) -> "WarmSandbox":
        """Start without namespaces, each command under Landlock `rules` (`write`, `read`, `devices`)."""
        ours, theirs, words, said = _ends()
        load = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); from inside.zygote import main"
        argv = [
            sys.executable, "-I", "-S", "-c", f"{load}; main({theirs.fileno()}, namespaces=False)"
        ]  # fmt: skip
        started: list[HostProcess] = []

        def launch() -> None:
            started.append(
                popen(
                    argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
                    pass_fds=[theirs.fileno()], env={"PATH": "/usr/bin:/bin"}, start_new_session=True,
                )
            )  # fmt: skip

        message = {"pids": pids, "rules": {name: list(paths) for name, paths in rules.items()}}
        try:
            with theirs:
                try:
                    await in_thread(launch)
                except BaseException:
                    ours.close()
                    os.close(words)
                    raise
                finally:
                    os.close(said)
            sandbox = await cls._configured(ours, words, seccomp, message)
        except BaseException:
            for process in started:
                process.kill()
                await in_thread(process.wait)
            raise
        sandbox._process = started[0]
        return sandbox

    @classmethod
    async def _configured(
        cls, ours: socket.socket, words: int, seccomp: bytes, message: Answer
    ) -> "WarmSandbox":
        sandbox = cls(ours)
        try:
            with tempfile.TemporaryFile() as file:
                file.write(seccomp)
                file.flush()
                async with asyncio.timeout(_START_S):
                    await sandbox._ask({"op": "configure", **message}, [file.fileno()])
        except (SandboxUnavailable, TimeoutError, OSError) as error:
            sandbox.close()
            os.set_blocking(words, False)
            reason = ""
            with contextlib.suppress(BlockingIOError):
                reason = os.read(words, 2000).decode(errors="replace").strip()
            raise SandboxUnavailable(
                f"the sandbox did not start: {reason or error or 'no answer'}"
            ) from error
        except BaseException:  # whoever waited was cancelled
            sandbox.close()
            raise
        finally:
            os.close(words)
        return sandbox

    async def attach(self, targets: Sequence[str], mounts: Sequence[Mounted], *, stays: bool = False) -> None:
        """Put `mounts` at `targets`, in place of what was attached before; no command may run.

        Args:
            stays: they are there for good, beside what others are attached.
        """
        message = {"op": "attach", "targets": list(targets), "stays": stays}
        await self._ask(message, [m.attach for m in mounts])

    def launch(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], rlimits: Mapping[str, int],
        streams: tuple[int, int, int], root: str | None = None,
    ) -> tuple[str, asyncio.Future[Answer]]:  # fmt: skip
        """Start a command; return its id and the future of its end.

        Args:
            streams: descriptors for stdin, stdout, stderr; the caller keeps and closes its own copies.
            root: a directory that `cwd` must not lead out of; None = it may be any.
        """
        command = new_id("c")
        message = {
            "op": "run", "id": command, "argv": list(argv), "cwd": cwd, "env": dict(env),
            "rlimits": dict(rlimits), "root": root, "umask": creation_mask(),
        }  # fmt: skip
        ended: asyncio.Future[Answer] = self._loop.create_future()
        self._running[command] = ended
        try:
            channel.send(self._server, message, list(streams))
        except OSError as error:
            del self._running[command]
            raise SandboxUnavailable(f"the sandbox does not answer: {error}") from error
        return command, ended

    def signal(self, command: str, number: int) -> None:
        """Send a signal to a command's whole tree; SIGKILL ends it at once. Unknown ids are ignored."""
        with contextlib.suppress(OSError):
            channel.send(self._server, {"op": "signal", "id": command, "signal": number})

    async def open_bridge(self, port: int, name: str) -> None:
        """Lead a port of the sandbox's loopback to a socket of that name; raises SandboxUnavailable."""
        if port not in self._bridged:
            await self._ask({"op": "bridge", "port": port, "socket": name})
            self._bridged.add(port)

    async def usage(self, *, deep: bool = False, ask: bool = False, exact_above: int | None = None) -> Usage:
        """Return what runs inside takes; arguments as of `inside/usage.py: of_processes`."""
        how = {"deep": deep, "ask": ask, "exact_above": exact_above}
        answer = await self._ask({"op": "usage", "how": how})
        found = {name: int(answer.get(name, 0)) for name in _FIGURES}
        return Usage(cpu_ms=answer["cpu_ms"], **found)

    @property
    def busy(self) -> bool:
        """Whether a command runs."""
        return bool(self._running)

    def close(self) -> None:
        """Kill everything inside; what ran ends as killed by SIGKILL."""
        if self.alive:
            self.alive = False
            self._loop.remove_reader(self._server.fileno())
            self._server.close()
            for answered in self._answers.values():
                if not answered.done():
                    answered.set_result(None)
            for ended in self._running.values():
                if not ended.done():
                    ended.set_result({"op": "ended", "signal": 9, "cpu_ms": 0, "peak_bytes": 0, "lost": True})
            self._running.clear()
            if self._process is not None:
                # It leaves by itself when the channel closes, after killing what runs.
                self._loop.run_in_executor(None, self._process.wait)

    async def _ask(self, message: Answer, fds: list[int] | None = None) -> Answer:
        # By number: whoever asked may have been cancelled before the answer came.
        self._asked += 1
        number = self._asked
        answered = self._answers[number] = self._loop.create_future()
        try:
            channel.send(self._server, {**message, "n": number}, fds)
            answer = await answered
        except OSError as error:
            raise SandboxUnavailable(f"the sandbox does not answer: {error}") from error
        finally:
            del self._answers[number]
        if answer is None:
            raise SandboxUnavailable("the sandbox ended")
        if answer["op"] == "failed":
            raise SandboxUnavailable(f"the sandbox refused: {answer['error']}")
        return answer

    def _read(self) -> None:
        try:
            message, _ = channel.receive(self._server)
        except BlockingIOError:
            return
        except OSError:
            message = None
        if message is None:
            self.close()
        elif message.get("id") in self._running:
            ended = self._running.pop(message["id"])
            if not ended.done():
                ended.set_result(message)
        else:  # perhaps nobody waits any more; an init that is killed after its report is reported again
            answered = self._answers.get(message.get("n") or 0)
            if answered is not None and not answered.done():
                answered.set_result(message)


def _ends() -> tuple[socket.socket, socket.socket, int, int]:
    """Return both ends of a channel and of a pipe for what is said on the way."""
    ours, theirs = channel.pair()
    try:
        return ours, theirs, *os.pipe()
    except OSError:
        ours.close()
        theirs.close()
        raise
