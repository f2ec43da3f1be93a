"""Sandboxes of both tiers, beside a host full of things that commands must not reach.

Here: a branch with its sandbox (`Desk`), a host with planted secrets (`Host`), a watch on the event loop.
"""

import asyncio
import gc
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.trees import read_tree, write_tree

from bowerbird.sandbox.branch_sandbox import BranchSandbox
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.probe import write_accounts
from bowerbird.sandbox.run.command import CommandResult
from bowerbird.sandbox.run.status import SandboxStatus
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Branch, Workspace

TIERS = ("overlay", "copy")
_statuses: dict[str, SandboxStatus] = {}  # probing once is enough for a test run on one machine


@dataclass
class Desk:
    """A branch with its sandbox, and where things are on the host."""

    tier: str
    place: Path
    workspace: Workspace
    branch: Branch
    host: SandboxHost
    sandbox: BranchSandbox

    @property
    def root(self) -> Path:
        """The workspace's directory."""
        return self.place / "ws"

    async def run(self, command: str | list[str], **options: Any) -> CommandResult:
        """Run a command on the branch."""
        return await self.sandbox.run(command, **options)

    async def python(self, program: str, *arguments: object, **options: Any) -> CommandResult:
        """Run a Python program that is shown to the command, not in its branch."""
        with self.sandbox.shown_file(f"{secrets.token_hex(4)}.py", program) as path:
            return await self.run(["python3", path, *map(str, arguments)], **options)

    async def assert_usable(self) -> None:
        """The next command and the file tools work, and see each other."""
        token = secrets.token_hex(8)
        result = await self.run(f"echo {token} > usable; cat usable")
        assert (result.exit_code, result.output) == (0, f"{token}\n"), result
        assert (await self.branch.read_file("usable"))["content"] == f"{token}\n"
        await self.branch.write_file("usable", f"{token[::-1]}\n")
        assert (await self.run("cat usable")).output == f"{token[::-1]}\n"
        await self.branch.delete("usable")


@asynccontextmanager
async def desk_of(
    place: Path,
    tier: str,
    files: Mapping[str, str | bytes] | None = None,
    *,
    data: str = "data",
    workspace: Mapping[str, Any] | None = None,
    probe: bool = False,
    **settings: Any,
) -> AsyncGenerator[Desk]:
    """Give a branch of `place/ws` with a sandbox of this tier.

    Args:
        data: the data directory, below `place`.
        workspace: options of `Workspace`.
        probe: probe anew, not once for all tests.
        settings: of `SandboxSettings`.
    """
    root = write_tree(place / "ws", files or {})
    with Workspace(root, data_dir=place / data, **(workspace or {})) as opened:
        known = None if probe else _statuses.get(tier)
        host = SandboxHost(place / data, SandboxSettings(tier=tier, **settings), status=known)
        write_accounts(host.accounts)
        if known is None:
            _statuses[tier] = await host.status()
        branch = opened.branch()
        try:
            yield Desk(tier, place, opened, branch, host, await host.sandbox(branch))
        finally:
            await host.close()


# ---------------------------------------------------------------- a host with secrets


@dataclass
class Host:
    """What stands on the host beside the branch; every secret is one word found nowhere else.

    Attributes:
        key: a private key in somebody's home.
        neighbour: a process of the same user with the secret in its environment, memory and an open file.
        socket: a path at which a server tells the secret to who connects. abstract: the same without a path.
        inherited: a descriptor that this process would hand on.
    """

    secret: str
    key: Path
    neighbour: subprocess.Popen[bytes]
    socket: Path
    abstract: str
    inherited: int
    asked: list[str] = field(default_factory=list[str])

    def names(self) -> dict[str, str]:
        """What programs of tests are told of this host."""
        return {
            "KEY": str(self.key), "HOST_HOME": str(self.key.parents[1]), "NEIGHBOUR": str(self.neighbour.pid),
            "SOCKET": str(self.socket), "ABSTRACT": self.abstract, "SERVER": str(os.getpid()),
        }  # fmt: skip


_NEIGHBOUR = """
import sys
kept = open(sys.argv[1]).read()
held = open(sys.argv[1])
print("up", flush=True)
sys.stdin.read()
"""


@contextmanager
def host_of(place: Path) -> Generator[Host]:
    """Plant secrets below `place`, which is no part of any branch."""
    secret = f"secret-{secrets.token_hex(12)}"
    key = place / "home/.ssh/id_rsa"
    key.parent.mkdir(parents=True)
    key.write_text(f"{secret}\n")
    inherited = os.open(key, os.O_RDONLY)
    os.set_inheritable(inherited, True)
    neighbour = subprocess.Popen(
        [sys.executable, "-c", _NEIGHBOUR, str(key)],
        env={**os.environ, "SECRET": secret},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert neighbour.stdout is not None and neighbour.stdout.readline() == b"up\n"
    path, abstract = place / "run.sock", f"bowerbird-test-{secrets.token_hex(4)}"
    host = Host(secret, key, neighbour, path, abstract, inherited)
    listeners = [_listen(str(path), host), _listen(f"\0{abstract}", host)]
    try:
        yield host
    finally:
        for listener in listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        os.close(inherited)
        neighbour.kill()
        neighbour.communicate()


def _listen(name: str, host: Host) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen()

    def serve() -> None:
        while True:
            try:
                asking, _ = listener.accept()
            except OSError:
                return
            host.asked.append(name)
            with asking:
                asking.sendall(host.secret.encode())

    threading.Thread(target=serve, daemon=True).start()
    return listener


# ---------------------------------------------------------------- is the server responsive?

_METRONOME = """
import sys, time
while True:
    begun = time.monotonic()
    time.sleep(0.005)
    late = time.monotonic() - begun - 0.005
    if late > 0.003:
        print(begun, late, flush=True)
"""
_BEAT_S = 0.005


@dataclass
class Pulse:
    """The longest that the event loop ran nothing else.

    Attributes:
        worst_s: by work of its own: processor time of its thread, as on a machine of known speed.
        blocked_s: by waiting for something, beyond what the machine itself was late.
    """

    worst_s: float = 0.0
    blocked_s: float = 0.0


_KNOWN_WORK_S = 0.004  # what `_slowness` does took at most on the machine that the limits are from


def _slowness() -> float:
    """Return how many times slower this machine is at plain Python in this second."""
    began = time.thread_time()
    for _ in range(100_000):
        pass
    return max(1.0, (time.thread_time() - began) / _KNOWN_WORK_S)


class _Queued:
    """How long this process's threads stood ready to run while the machine ran others (`schedstat`)."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}

    def since_last_s(self) -> float:
        """Return the seconds since the last call, of all threads together: one may hold up another."""
        now: dict[str, int] = {}
        for task in os.listdir("/proc/self/task"):
            try:
                with Path(f"/proc/self/task/{task}/schedstat").open("rb") as file:
                    now[task] = int(file.read().split()[1])
            except OSError:
                continue  # that thread has ended
        waited = sum(ns - self._before.get(task, 0) for task, ns in now.items())
        self._before = now
        return waited / 1e9


@asynccontextmanager
async def pulse(*, most_s: float = 0.1) -> AsyncGenerator[Pulse]:
    """Fail when the server makes its event loop stand still for longer than `most_s`.

    What its thread works is processor time, which no load changes; a slow machine is told by work of known
    size. What it waits for on the loop is seen only in time that passes: a machine that is busy with other
    things lets every process wait. How long it let this one wait the kernel tells, and a second process that
    only sleeps tells of the machine as a whole; the longer of the two is taken off, and what remains may be
    five times as long, for whatever it waited for was let wait, too. Garbage of the tests that ran before in
    this process is not its work either.
    """
    found = Pulse()
    metronome = subprocess.Popen([sys.executable, "-S", "-c", _METRONOME], stdout=subprocess.PIPE)
    beats: list[tuple[float, float, float, float]] = []
    slowness = _slowness()

    async def beat() -> None:
        queued = _Queued()
        queued.since_last_s()
        while True:
            begun, worked = time.monotonic(), time.thread_time()
            await asyncio.sleep(_BEAT_S)
            late = time.monotonic() - begun - _BEAT_S
            waited = queued.since_last_s()
            if late > most_s:
                beats.append((begun, late, waited, time.thread_time() - worked))

    gc.freeze()
    beating = asyncio.create_task(beat())
    try:
        yield found
    finally:
        gc.unfreeze()
        beating.cancel()
        metronome.kill()
        told = metronome.communicate()[0].decode().split("\n")
    slowness = max(slowness, _slowness())
    waits = [(float(a), float(b)) for a, b in (line.split() for line in told if line.count(" ") == 1)]
    for begun, late, waited, worked in beats:
        machine = sum(wait for at, wait in waits if at < begun + late + 0.01 and at + wait > begun - 0.01)
        found.worst_s = max(found.worst_s, worked / slowness)
        found.blocked_s = max(found.blocked_s, late - worked - max(machine, waited))
    assert found.worst_s <= most_s, f"the event loop worked for {found.worst_s * 1000:.0f} ms at once"
    assert found.blocked_s <= 5 * most_s, f"the event loop waited for {found.blocked_s * 1000:.0f} ms"


def tree_of(root: Path) -> dict[str, Any]:
    """Return everything below a directory of the host, with modes, owners and times."""
    found: dict[str, Any] = {}
    for path, what in read_tree(root).items():
        seen = os.lstat(f"{root}{path}")
        found[path] = (what, seen.st_mtime_ns, seen.st_uid, seen.st_mode)
    return found


def pids_with(text: str) -> list[int]:
    """Return the processes of this machine whose command line holds `text`."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                command = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in command.replace(b"\0", b" "):
                found.append(int(name))
    return found


def patience(seconds: float) -> float:
    """Return how long something may take that takes `seconds` on an idle machine: more where many wait to run."""
    return seconds * (1.2 + os.getloadavg()[0])


def mounts_of(place: Path) -> list[str]:
    """Mounts that name `place` in any process's mount table but this one's own."""
    found: list[str] = []
    for table in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            found += [line for line in table.read_text().splitlines() if str(place) in line]
        except OSError:
            continue
    return found
