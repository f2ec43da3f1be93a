"""The embedded agent beside the bare recipe: the same weights, the same jobs by turns, in one run.

Prints for changes and questions how many came out right, the median seconds, tokens evaluated and reused,
and how much slower the product is than the recipe; beside it the load of the machine. The sets lie in
`embedded/`: fifteen little projects with six changes and six questions each; and three times 28 changes and 60
questions in all, in six projects (16 to 21), in ten (22 to 27) and in ten more (28 to 33). Those last ten are unseen:
whoever wrote them did not know the agent; two small rules alone ("open until", a file whose name is all ending) came
after two of them had failed, so `--unseen` tells what a user will meet.
(The others were unseen until a rule was written by what failed there. A set that has been looked at is seen: mark it
so, and let somebody else write new ones.) Beside each judge of a job that is or was unseen stand results that are
`right` and `wrong` to it; the tests try them.

    python benchmarks/embedded_model.py --weights model.gguf [--unseen] [--edits 8] [--questions 8] [--skip 0]
                                        [--only product|recipe] [--threads 2] [--out results.jsonl]

A run of 28 changes and 60 questions takes 30 minutes on two idle cores. It is repeatable in parts: `--skip` leaves out the jobs that an
earlier run did, `--out` adds a line for each job, and `--sum results.jsonl` prints the table of all of them.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from embedded_bare import Bare, names

from bowerbird.api import Agent
from bowerbird.models.local import open_local
from bowerbird.models.local.engine import Engine, EngineOptions
from bowerbird.models.local.generation import Counts
from bowerbird.models.settings import LocalSettings

SETS = Path(__file__).parent / "embedded"
BARS = {"edit": (25, 28), "question": (48, 60)}
SLOWER = 1.3
CONTEXT = 16_384
TOKENS = ("evaluated", "reused", "generated")
EVALUATED_PER_S, GENERATED_PER_S = 99, 35


@dataclass(frozen=True)
class Job:
    """One change or question of a project."""

    kind: str
    project: str
    number: int
    task: str
    files: dict[str, str]
    judge: dict[str, Any]

    @property
    def name(self) -> str:
        """What it is called in the output."""
        return f"{self.project} {self.kind[0]}{self.number}"


@dataclass(frozen=True)
class Outcome:
    """How one job went, one way."""

    way: str
    kind: str
    job: str
    wrong: str
    seconds: float
    evaluated: int
    reused: int
    generated: int
    load: float

    @property
    def work(self) -> float:
        """Seconds that its tokens take on the idle machine of the measured facts: no load is in this figure."""
        return self.evaluated / EVALUATED_PER_S + self.generated / GENERATED_PER_S


Way = Callable[[Path, Job], Coroutine[Any, Any, tuple[Path, str, Counts]]]


def jobs(kind: str, unseen: bool) -> list[Job]:
    """Return the jobs of a kind: the first of each project, then the second, so that any sample is mixed."""
    rows: list[tuple[int, Job]] = []
    for path in sorted(SETS.glob("*.toml")):
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        if given["unseen"] is unseen:
            for n, row in enumerate(given.get(f"{kind}s", ()), 1):
                rows.append((n, Job(kind, path.stem, n, row["task"], given["files"], row)))
    return [job for _, job in sorted(rows, key=lambda pair: pair[0])]


def wrong_edit(job: Job, root: Path) -> str:
    """Say what is wrong with a changed project, "" when nothing is.

    A change that names `path` and `to` must give exactly that project (of several `to`, any of them); one with a `check`
    may differ from the original in `path` alone, and the command must succeed.
    """
    found = {name: (root / name).read_text(encoding="utf-8", errors="replace") for name in names(root)}
    judge, expected = job.judge, dict(job.files)
    found = {name: text for name, text in found.items() if "__pycache__" not in name}
    if "check" in judge:
        for name in {*found, *expected}:
            if name not in judge["path"].split() and tidy(found.get(name)) != tidy(expected.get(name)):
                return f"{name} changed too" if name in expected else f"{name} is there too"
        own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        done = subprocess.run(  # a `make` around us would have the one in there tell of directories
            ["bash", "-c", judge["check"]], cwd=root, env=own, capture_output=True, timeout=60, check=False
        )
        return (
            ""
            if done.returncode == 0
            else f"the check fails: {(done.stderr or done.stdout)[-100:].decode()!r}"
        )
    old = job.files[judge["path"]]
    for new in judge["to"]:
        assert judge["from"] in old, f"{job.name}: nothing to replace"
        expected[judge["path"]] = old.replace(judge["from"], new)
        if {n: tidy(text) for n, text in found.items()} == {n: tidy(text) for n, text in expected.items()}:
            return ""
    changed = [name for name in {*found, *expected} if tidy(found.get(name)) != tidy(job.files.get(name))]
    return f"not as asked: {', '.join(sorted(changed)) or 'nothing'} changed"


def tidy(text: str | None) -> list[str] | None:
    """Return what counts of a text: its lines without trailing space, empty ones left out."""
    return None if text is None else [line.rstrip() for line in text.split("\n") if line.strip()]


def wrong_answer(job: Job, said: str) -> str:
    """Say what an answer lacks: of each group of `words`, one alternative must stand in it, and of `never` none."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", said)

    def holds(group: str) -> bool:
        return re.search(rf"(?<![\w.])(?:{group})(?!\w|\.\d*[1-9])", plain, re.I) is not None

    for group in job.judge["words"]:
        if not holds(group):
            return f"lacks {group!r}: {said[:110]!r}"
    for group in job.judge.get("never", ()):
        if holds(group):
            return f"has {group!r}: {said[:110]!r}"
    return ""


async def measured(way: str, act: Way, job: Job) -> Outcome:
    """Do one job on a fresh copy and judge it."""
    with tempfile.TemporaryDirectory(prefix="embedded-") as name:
        root = Path(name) / job.project
        for path, text in job.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        begun = time.monotonic()
        result, said, counts = await act(root, job)
        seconds = time.monotonic() - begun
        wrong = wrong_edit(job, result) if job.kind == "edit" else wrong_answer(job, said)
    tokens = counts.evaluated, counts.reused, counts.generated
    return Outcome(way, job.kind, job.name, wrong, seconds, *tokens, os.getloadavg()[0])


def product(model: Any) -> Way:
    """Return the product's way: the library's agent on a branch."""

    async def act(root: Path, job: Job) -> tuple[Path, str, Counts]:
        agent: Agent[Any] = Agent(workdir=root, data_dir=":memory:", language_model=model, max_iterations=20)
        with agent:
            result = await agent.run(job.task)
            seen, usage = root.parent / "seen", result.usage
            agent.branch.export(seen, "dir")
        return seen, result.text, Counts(usage.input_tokens, usage.cache_read_tokens, usage.output_tokens)

    return act


def recipe(engine: Engine) -> Way:
    """Return the bare recipe's way."""

    async def act(root: Path, job: Job) -> tuple[Path, str, Counts]:
        bare = Bare(engine)
        said = await (bare.edit if job.kind == "edit" else bare.ask)(root, job.task)
        return root, said, bare.counts

    return act


async def run(chosen: argparse.Namespace) -> list[Outcome]:
    """Run the jobs by turns, each way on an engine of its own."""
    kept = LocalSettings(chosen.beginnings, CONTEXT, threads=chosen.threads)
    model = open_local(str(chosen.weights), kept)
    engine = Engine(chosen.weights, EngineOptions(CONTEXT, chosen.threads))
    ways = {"product": product(model), "recipe": recipe(engine)}
    outcomes: list[Outcome] = []
    try:
        for kind, most in (("edit", chosen.edits), ("question", chosen.questions)):
            wanted = jobs(kind, chosen.unseen)[chosen.skip : chosen.skip + most]
            wanted = [job for job in wanted if not chosen.jobs or job.name in chosen.jobs]
            for n, job in enumerate(wanted):
                for way in ("product", "recipe") if n % 2 else ("recipe", "product"):
                    if chosen.only in (None, way):
                        outcomes.append(await measured(way, ways[way], job))
                        told(outcomes[-1], job, chosen.out)
    finally:
        await model.aclose()
        await engine.close()
    return outcomes


def told(outcome: Outcome, job: Job, out: Path | None) -> None:
    """Print one outcome, and add it to the file."""
    print(
        f"{outcome.way:8} {outcome.job:14} {outcome.seconds:5.1f} s  {outcome.evaluated:5} evaluated "
        f"{outcome.reused:6} reused {outcome.generated:4} written  load {outcome.load:.1f}  {outcome.wrong or 'right'}"
        + (f"   [{job.task}]" if outcome.wrong else ""),
        flush=True,
    )
    if out is not None:
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


def table(outcomes: list[Outcome]) -> None:
    """Print what came of it: medians, without the first of each way and kind, which loads and evaluates."""
    print(f"\n{'':19}right      seconds    work s   first s   evaluated   reused   written")
    for kind, (least, of) in BARS.items():
        seconds, work = dict[str, float](), dict[str, float]()
        for way in ("product", "recipe"):
            some = [o for o in outcomes if o.way == way and o.kind == kind]
            rest = some[1:] or some
            if not rest:
                continue
            seconds[way] = statistics.median(o.seconds for o in rest)
            work[way] = statistics.median(o.work for o in rest)
            tokens = [statistics.median(getattr(o, name) for o in rest) for name in TOKENS]
            print(
                f"{kind:9} {way:8} {sum(not o.wrong for o in some):3} of {len(some):<3} {seconds[way]:9.1f} {work[way]:9.1f} "
                f"{some[0].seconds:9.1f} {tokens[0]:11.0f} {tokens[1]:8.0f} {tokens[2]:9.0f}"
            )
        if len(seconds) == 2:
            ratios = [row["product"] / row["recipe"] for row in (seconds, work)]
            print(
                f"{'':9} product / recipe {ratios[0]:9.2f} {ratios[1]:9.2f}   (bar {SLOWER}; right: {least} of {of})"
            )
    loads = [o.load for o in outcomes]
    print(
        f"load {min(loads):.1f} to {max(loads):.1f} on {os.cpu_count()} processors; work = the same tokens idle, "
        f"at {EVALUATED_PER_S} evaluated and {GENERATED_PER_S} written a second"
    )


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weights", type=Path, default=os.environ.get("BOWERBIRD_WEIGHTS"))
    parser.add_argument("--unseen", action="store_true", help="the sets that nothing is tuned on")
    parser.add_argument("--edits", type=int, default=28)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--skip", type=int, default=0, help="jobs of each kind to leave out at the beginning")
    parser.add_argument("--jobs", nargs="*", help='only those, as "01-shop e4"')
    parser.add_argument("--only", choices=("product", "recipe"))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--beginnings", type=Path, help="a data directory that keeps evaluated beginnings")
    parser.add_argument("--out", type=Path, help="a file that gets a line for each job")
    parser.add_argument("--sum", type=Path, help="print the table of such a file and run nothing")
    chosen = parser.parse_args()
    if chosen.sum is not None:
        rows = chosen.sum.read_text(encoding="utf-8").splitlines()
        table([Outcome(**json.loads(row)) for row in rows])
        return
    if chosen.weights is None:
        parser.error("name the weights: --weights or BOWERBIRD_WEIGHTS")
    chosen.weights = Path(chosen.weights)
    table(asyncio.run(run(chosen)))


if __name__ == "__main__":
    main()
