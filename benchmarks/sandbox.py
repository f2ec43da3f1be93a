"""What the sandbox costs: each figure beside its reference, measured in the same run (issue 3, must show 4; acceptance 9).

    python benchmarks/sandbox.py [--tier overlay] [--files 10000] [--rounds 200]

Runs alternate between the sandbox and the plain process, so what else the machine does falls on both. Times are
of the whole call, `BranchSandbox.run` with capture against a plain subprocess with its output read; medians.
Exit code 1 when a figure misses its bar, which only an idle machine can tell: the load is printed too.
"""

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.trees import project

from bowerbird.sandbox.branch_sandbox import BranchSandbox
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Branch, Workspace

PACKAGES = Path(__import__("pytest").__file__).parents[1]
TESTS = "import pytest\n\n\n@pytest.mark.parametrize('n', range({n}))\ndef test_sum(n, tmp_path):\n" + (
    "    path = tmp_path / 'x'\n    path.write_text('y' * n)\n    assert len(path.read_text()) == n\n"
)
CHANGES = """
import os
for n in range(1300):
    if n % 100 == 0: os.makedirs(f"made{n // 100}", exist_ok=True)
    with open(f"made{n // 100}/{n}", "w") as f: f.write(f"new {n}" * 20)
for n in range(400):
    with open(f"old/{n}", "a") as f: f.write("more")
for n in range(400, 700): os.unlink(f"old/{n}")
"""


@dataclass
class Figure:
    """One row of the table, in milliseconds."""

    name: str
    here: list[float]
    plain: list[float]
    bar: str
    right: Callable[[float, float], bool]

    def row(self) -> tuple[str, bool]:
        """Return its line and whether it keeps to its bar."""
        here, plain = statistics.median(self.here), statistics.median(self.plain)
        ok = self.right(here, plain)
        line = f"{self.name:44} {here:9.2f} {plain:9.2f} {here - plain:+9.2f} {here / plain:6.2f}x  {self.bar:12}"
        return f"{line} {'' if ok else 'MISSED'}", ok


@dataclass
class Place:
    """A branch with its sandbox."""

    root: Path
    workspace: Workspace
    branch: Branch
    host: SandboxHost
    sandbox: BranchSandbox


@asynccontextmanager
async def place(directory: Path, tier: str) -> AsyncIterator[Place]:
    """Open a sandbox on `directory/ws`; the tests' packages are shown in it."""
    root = directory / "ws"
    root.mkdir(exist_ok=True)
    settings = SandboxSettings(tier=tier, read_only=(str(PACKAGES),))
    with Workspace(root, data_dir=directory / "data") as workspace:
        host = SandboxHost(directory / "data", settings)
        try:
            branch = workspace.branch()
            yield Place(root, workspace, branch, host, await host.sandbox(branch))
        finally:
            await host.close()


async def plain(words: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> None:
    """Run a process as a server would without any sandbox."""
    process = await asyncio.create_subprocess_exec(
        *words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, **(env or {})},
    )  # fmt: skip
    await process.communicate()


async def timed(work: Awaitable[Any]) -> float:
    """Return the milliseconds that `work` takes."""
    begun = time.perf_counter()
    await work
    return (time.perf_counter() - begun) * 1000


async def in_turns(
    rounds: int, here: Callable[[], Awaitable[Any]], there: Callable[[], Awaitable[Any]]
) -> tuple[list[float], list[float]]:
    """Time both, taking turns, after one unmeasured run of each."""
    await here()
    await there()
    pairs = [(await timed(here()), await timed(there())) for _ in range(rounds)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def below(limit_ms: float) -> Callable[[float, float], bool]:
    """Return the bar: no more than this beyond the reference."""
    return lambda here, there: here - there <= limit_ms


def within(limit_ms: float) -> Callable[[float, float], bool]:
    """Return the bar: no more than this in all."""
    return lambda here, _: here <= limit_ms


def times(factor: float) -> Callable[[float, float], bool]:
    """Return the bar: no more than so many times the reference."""
    return lambda here, there: here <= factor * there


async def starts(directory: Path, tier: str, rounds: int) -> list[Figure]:
    """Measure warm commands, commands after an edit with its mark, and cold starts."""
    async with place(directory, tier) as there:
        words = ["/bin/bash", "-c", "true"]

        async def bare() -> None:
            await plain(words, there.root)

        async def edited() -> None:
            await there.branch.write_file("edited", f"{time.time_ns()}")
            there.branch.mark()
            await there.sandbox.run("true")

        async def cold() -> None:
            branch = there.workspace.branch()
            nonlocal last
            last = branch
            await (await there.host.sandbox(branch)).run("true")

        last = there.branch
        warm = await in_turns(rounds, lambda: there.sandbox.run("true"), bare)
        after = await in_turns(max(20, rounds // 5), edited, bare)
        begun: tuple[list[float], list[float]] = ([], [])
        for _ in range(max(10, rounds // 10)):
            begun[0].append(await timed(cold()))
            begun[1].append(await timed(bare()))
            await there.host.release(last.id)
        return [
            Figure("warm command", *warm, "<= +3 ms", below(3)),
            Figure("edit, mark, command", *after, "<= 25 ms", within(25)),
            Figure("cold start: first command of a branch", *begun, "<= 50 ms", within(50)),
        ]


async def capture(directory: Path, tier: str, rounds: int) -> Figure:
    """Measure the capture of 2,000 changes.

    Beside it what cannot be done without: a look at every changed file, and a copy of each that was there before.
    """
    here: list[float] = []
    there: list[float] = []
    (directory / "ws/old").mkdir(parents=True)
    for n in range(700):
        (directory / f"ws/old/{n}").write_text(f"old {n}" * 20)
    async with place(directory, tier) as opened:
        for _ in range(rounds):
            branch = opened.workspace.branch()
            sandbox = await opened.host.sandbox(branch)
            await sandbox.run("true")
            projection = sandbox._projection
            taken: list[float] = []
            original = projection.capture

            def timed_capture(
                *words: Any, original: Any = original, taken: Any = taken, **options: Any
            ) -> Any:
                begun = time.perf_counter()
                found = original(*words, **options)
                taken.append((time.perf_counter() - begun) * 1000)
                return found

            projection.capture = timed_capture
            result = await sandbox.run(["python3", "-S", "-c", CHANGES])
            assert len(result.written) - 13 + len(result.deleted) == 2000, (
                len(result.written),
                len(result.deleted),
            )
            here.append(taken[0])
            upper = (
                Path(opened.host.data_dir)
                / "branches"
                / branch.id
                / ("open" if tier == "overlay" else "copy/tree")
            )
            begun = time.perf_counter()
            for folder, _, files in os.walk(upper):
                for name in files:
                    os.lstat(f"{folder}/{name}")
            (directory / f"kept{branch.id}").mkdir()
            for n in range(700):
                shutil.copyfile(directory / f"ws/old/{n}", directory / f"kept{branch.id}/{n}")
            there.append((time.perf_counter() - begun) * 1000)
            await opened.host.release(branch.id)
    return Figure("capture of 2,000 changes (walk, 700 copies)", here, there, "<= 50 ms", within(50))


async def suites(directory: Path, tier: str, rounds: int) -> Figure:
    """Measure pytest with 200 tests."""
    (directory / "ws/tests").mkdir(parents=True)
    for n in range(10):
        (directory / f"ws/tests/test_{n}.py").write_text(TESTS.format(n=20))
    env = {"PYTHONPATH": str(PACKAGES), "PYTHONDONTWRITEBYTECODE": "1"}
    async with place(directory, tier) as opened:
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
        interpreter = opened.host.facts.interpreter
        one = await opened.sandbox.run([interpreter, *words], env=env)
        assert "200 passed" in one.output, one.output[-2000:]
        found = await in_turns(
            rounds,
            lambda: opened.sandbox.run([interpreter, *words], env=env),
            lambda: plain([interpreter, *words], opened.root, env),
        )
        return Figure("pytest of 200 tests", *found, "<= 1.2x", times(1.2))


async def large_tree(directory: Path, tier: str, files: int, rounds: int) -> list[Figure]:
    """Measure commands that look at every file of a large project."""
    root = project(directory / "ws", files=files)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x.test", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], cwd=root, check=True)
    found: list[Figure] = []
    async with place(directory, tier) as opened:
        for words in (["git", "status", "--porcelain"], ["grep", "-rc", "window_nowhere", "."]):
            taken = await in_turns(
                rounds,
                lambda words=words: opened.sandbox.run(words),
                lambda words=words: plain(words, opened.root),
            )
            found.append(Figure(f"{' '.join(words[:2])} on {files} files", *taken, "<= 2x", times(2)))
    return found


async def measure(directory: Path, options: argparse.Namespace) -> list[Figure]:
    """Measure everything, each in a directory of its own."""
    rounds, tier = options.rounds, options.tier
    small = max(5, rounds // 20)
    found = await starts(directory / "starts", tier, rounds)
    found.append(await capture(directory / "capture", tier, small))
    found.append(await suites(directory / "suites", tier, small))
    return [*found, *await large_tree(directory / "large", tier, options.files, small)]


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tier", choices=("overlay", "copy"), default="overlay")
    parser.add_argument("--files", type=int, default=10_000, help="of the large project")
    parser.add_argument("--rounds", type=int, default=200, help="of the warm command; others in proportion")
    parser.add_argument("--dir", type=Path, default=None, help="where to work; on a real file system")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bowerbird-bench-", dir=options.dir) as folder:
        directory = Path(folder)
        for name in ("starts", "capture", "suites", "large"):
            (directory / name).mkdir()
        found = asyncio.run(measure(directory, options))
        shutil.rmtree(directory / "large", ignore_errors=True)
    rows = [figure.row() for figure in found]
    print(f"tier {options.tier}, load {load:.2f} before, {os.getloadavg()[0]:.2f} after; medians in ms")
    print(f"{'':44} {'sandbox':>9} {'plain':>9} {'more':>9} {'':>7}  bar")
    print("\n".join(line for line, _ in rows))
    return 0 if all(ok for _, ok in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
