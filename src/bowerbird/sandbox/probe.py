"""Finding out what works by doing it: a whole sandbox on the data directory, taken down again (SB-4).

Here: the probe of the overlay tier. It reads no kernel knobs: it mounts, writes, deletes, reads back, tries
what must be refused, and kills. Not here: the choice that follows (`run/status`).
"""

import asyncio
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import SandboxUnavailable
from bowerbird.core.processes.host_programs import find_program, run
from bowerbird.core.threads import in_thread
from bowerbird.sandbox.run.command import check_command
from bowerbird.sandbox.run.profile import HOST_NAME, HostFacts, Places, Standing, bubblewrap, environment
from bowerbird.sandbox.run.shown_trees import is_below
from bowerbird.sandbox.run.status import OVERDUE
from bowerbird.sandbox.run.warden import PACKAGE, Overlay, Warden
from bowerbird.workspace.tree.temporary import probe_place

if TYPE_CHECKING:
    from bowerbird.sandbox.run.warm_sandbox import WarmSandbox

OLDEST_BUBBLEWRAP = (0, 8)
_STEP_S = 15.0  # a probe takes 0.1 s; on a machine with 30 processes to a core, above 5
_HOSTS = f"127.0.0.1 localhost {HOST_NAME}\n::1 localhost ip6-localhost ip6-loopback {HOST_NAME}\n"
# Names go through the proxy if at all: a question to a server is answered at once, by nobody.
_RESOLVER = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"
_SEEN = 13
# Each line does one thing that a command must, or must not, be able to do; the exit code names the first
# that goes wrong.
_TRIAL = """
read line < kept && [ "$line" = below ] || exit 11
echo new > made && rm gone && [ ! -e gone ] || exit 12
for file in {secrets}; do (exec 3< "$file") 2>/dev/null && exit 13; done
(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && exit 14
mount -t tmpfs none /tmp 2>/dev/null && exit 15
exit 0
"""
_MEANING = {
    11: "the branch cannot be read through the overlay",
    12: "the branch cannot be written through the overlay",
    14: "the host's network is reachable",
    15: "a command can mount",
}


class Bubblewrap(msgspec.Struct, frozen=True):
    """The bubblewrap program found, or why there is none that will do."""

    path: str | None
    reason: str | None


def find_bubblewrap() -> Bubblewrap:
    """Look for bubblewrap ≥ 0.8 on the PATH."""
    path = find_program("bwrap")
    if path is None:
        return Bubblewrap(None, "bubblewrap is not installed; install bubblewrap ≥ 0.8")
    try:
        ran = run([path, "--version"], timeout=_STEP_S, check=True)
    except subprocess.TimeoutExpired:
        return Bubblewrap(None, OVERDUE)
    except (OSError, subprocess.SubprocessError) as error:
        return Bubblewrap(None, f"bubblewrap does not run: {error}")
    said = ran.stdout.decode("ascii", "replace").strip()
    version = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    if version < OLDEST_BUBBLEWRAP:
        return Bubblewrap(None, f"{said} is too old; install bubblewrap ≥ 0.8")
    return Bubblewrap(path, None)


def write_accounts(directory: Path) -> None:
    """Write what commands find in `/etc`: this user, named `agent`, nobody else; hosts; no resolver."""
    uid, gid = os.getuid(), os.getgid()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    (directory / "passwd").write_text(f"agent:x:{uid}:{gid}:agent:/home/agent:/bin/bash\n")
    (directory / "group").write_text(f"agent:x:{gid}:\n")
    (directory / "hosts").write_text(_HOSTS)
    (directory / "resolv.conf").write_text(_RESOLVER)


async def probe_overlay(
    warden: Warden, facts: HostFacts, bwrap: Bubblewrap, data_dir: Path, closed: Sequence[str] = ()
) -> str | None:
    """Try the overlay tier on the data directory's file system.

    Args:
        closed: files that no command may read, beside those of the data directory.

    Returns:
        None when all of it works, else the failed step with the kernel's own words and a remedy.
    """
    if sys.platform != "linux":
        return "the overlay tier needs Linux"
    if bwrap.path is None:
        return bwrap.reason
    try:
        from bowerbird.sandbox.run.seccomp import filter_program

        program = filter_program()
        with probe_place(data_dir) as folder:
            async with asyncio.timeout(_STEP_S):
                return await _try_all(warden, facts, bwrap.path, program, folder, closed)
    except SandboxUnavailable as error:
        return f"{error}{_remedy(str(error))}"
    except TimeoutError:
        return OVERDUE
    except OSError as error:
        return f"the probe failed: {error}"


def _remedy(reason: str) -> str:
    if "user namespace" in reason or "EPERM" in reason or "ENOSPC" in reason:
        return (
            "; allow unprivileged user namespaces (sysctl user.max_user_namespaces, "
            "kernel.unprivileged_userns_clone or kernel.apparmor_restrict_unprivileged_userns)"
        )
    if "overlay" in reason:
        return "; the overlay tier needs kernel ≥ 6.5 and a data directory on ext4, xfs, btrfs or tmpfs"
    return ""


async def _try_all(
    warden: Warden, facts: HostFacts, bwrap: str, program: bytes, folder: Path, closed: Sequence[str]
) -> str | None:
    for name in ("branch", "upper", "work", "home", "out"):
        (folder / name).mkdir()
    (folder / "branch/kept").write_text("below\n")
    (folder / "branch/gone").write_text("x")
    (folder / "secret").write_text("not for commands\n")
    write_accounts(folder / "accounts")
    root = str(folder / "branch")
    inside = str(PACKAGE / "inside")
    places = Places(root, f"{folder}/home", f"{folder}/out", f"{folder}/accounts", inside)
    [mounted] = await in_thread(warden.mount, [Overlay((root,), f"{folder}/upper", f"{folder}/work")])
    try:
        from bowerbird.sandbox.run.warm_sandbox import WarmSandbox

        sandbox = await WarmSandbox.start(
            warden, bubblewrap(bwrap, facts, places), facts.interpreter, program
        )
        try:
            await sandbox.attach([root], [mounted])
            return await _try_inside(sandbox, facts, root, folder, closed)
        finally:
            sandbox.close()
    finally:
        mounted.close()


async def _try_inside(
    sandbox: "WarmSandbox", facts: HostFacts, root: str, folder: Path, closed: Sequence[str]
) -> str | None:
    listener = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        script = _TRIAL.format(secrets=_words(folder, closed), port=port)
        code = await _run(sandbox, script, facts, root)
    if code:
        return _meaning(_MEANING, code, facts, folder)
    if not (folder / "upper/made").exists():
        return "a change did not reach the branch's layer"
    if (folder / "branch/made").exists() or not (folder / "branch/gone").exists():
        return "a change reached the workspace"
    command, ended = _launch(sandbox, "setsid sleep 1000 & sleep 1000", facts, root)
    sandbox.signal(command, 9)
    await ended
    used = await sandbox.usage()
    return "a killed command left processes behind" if used.processes else None


def _words(folder: Path, closed: Sequence[str]) -> str:
    files = [str(folder / "secret"), *(path for path in closed if Path(path).is_file())]
    return " ".join(map(shlex.quote, files))


def _meaning(meanings: Mapping[int, str], code: int, facts: HostFacts, folder: Path) -> str:
    if code != _SEEN:
        return meanings.get(code, f"the trial command ended with {code}")
    real = os.path.realpath(folder)
    trees = [t for t in (*facts.system, *facts.read_only) if is_below(real, os.path.realpath(t))]
    through = f" through {trees[0]}, which is shown to them" if trees else ""
    return (
        f"commands can read the data directory {folder.parent} or a settings file{through}; "
        "move the data directory (AGENT_DATA_DIR), or set sandbox.toolchains or sandbox.read_only"
    )


# What the copy tier promises without namespaces: files, sockets and signals by Landlock and seccomp.
_COPY_TRIAL = """
read line < kept && [ "$line" = below ] || exit 11
echo new > made && rm gone && [ ! -e gone ] || exit 12
for file in {secrets}; do (exec 3< "$file") 2>/dev/null && exit 13; done
(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && exit 14
kill -0 {pid} 2>/dev/null && exit 15
exit 0
"""
_COPY_MEANING = {
    **_MEANING,
    11: "the copy cannot be read",
    12: "the copy cannot be written",
    15: "signals get out",
}


async def probe_copy(facts: HostFacts, data_dir: Path, closed: Sequence[str] = ()) -> str | None:
    """Try the copy tier on the data directory's file system; see `probe_overlay` for the result."""
    from bowerbird.sandbox.inside import confined

    if sys.platform != "linux":
        return "the copy tier needs Linux"
    try:
        abi = confined.landlock_abi()
    except OSError as error:
        return f"no Landlock ({error.strerror}); the copy tier needs kernel ≥ 6.12 with Landlock on"
    if abi < confined.OLDEST_ABI:
        return (
            f"the kernel's Landlock has ABI {abi}; the copy tier needs {confined.OLDEST_ABI} (kernel ≥ 6.12)"
        )
    try:
        from bowerbird.sandbox.run.seccomp import filter_program

        program = filter_program(copy_tier=True)
        with probe_place(data_dir) as folder:
            async with asyncio.timeout(_STEP_S):
                return await _try_copy(facts, program, folder, closed)
    except SandboxUnavailable as error:
        return str(error)
    except TimeoutError:
        return OVERDUE
    except OSError as error:
        return f"the probe failed: {error}"


async def _try_copy(facts: HostFacts, program: bytes, folder: Path, closed: Sequence[str]) -> str | None:
    from bowerbird.sandbox.copy_projection import landlock_rules
    from bowerbird.sandbox.run.warm_sandbox import WarmSandbox

    (folder / "branch").mkdir()
    (folder / "branch/kept").write_text("below\n")
    (folder / "branch/gone").write_text("x")
    (folder / "secret").write_text("not for commands\n")
    root = str(folder / "branch")
    sandbox = await WarmSandbox.start_confined(program, landlock_rules(facts, write=[root], read=[]))
    listener = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
    try:
        port = listener.sockets[0].getsockname()[1]
        script = _COPY_TRIAL.format(secrets=_words(folder, closed), port=port, pid=os.getpid())
        code = await _run(sandbox, script, facts, root)
        if code:
            return _meaning(_COPY_MEANING, code, facts, folder)
        command, ended = _launch(sandbox, "setsid sleep 1000 & sleep 1000", facts, root)
        sandbox.signal(command, 9)
        await ended
        used = await sandbox.usage()
        return "a killed command left processes behind" if used.processes else None
    finally:
        listener.close()
        sandbox.close()


def _launch(
    sandbox: "WarmSandbox", script: str, facts: HostFacts, root: str
) -> tuple[str, "asyncio.Future[dict[str, object]]"]:
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    env: Mapping[str, str] = environment(facts, Standing(root), extra={})
    try:
        return sandbox.launch(
            check_command(script), cwd=root, env=env, rlimits={"CORE": 0}, streams=(null, null, null)
        )
    finally:
        os.close(null)


async def _run(sandbox: "WarmSandbox", script: str, facts: HostFacts, root: str) -> int:
    answer = await _launch(sandbox, script, facts, root)[1]
    code = answer.get("code")
    return code if isinstance(code, int) else 99
