"""The embedded agent on twenty changes and twenty questions: a smoke figure, printed as it is.

Prints for each job whether it came out right, its seconds and tokens, and what was told of it; at the end the
counts, and how often a change was told as made that is wrong. The jobs lie in `embedded.toml`; nothing is tuned
to them.

    python benchmarks/embedded_model.py --weights model.gguf [--edits 20] [--questions 20] [--threads 2]
"""

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bowerbird.api import Agent
from bowerbird.models.local import open_local
from bowerbird.models.settings import LocalSettings

JOBS = Path(__file__).with_name("embedded.toml")
CONTEXT = 16_384


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
    """How one job went."""

    job: Job
    wrong: str
    said: str
    seconds: float
    tokens: tuple[int, int, int]

    @property
    def claimed(self) -> bool:
        """Whether a wrong change was told as made."""
        return self.job.kind == "edit" and bool(self.wrong) and self.said.startswith(("In ", "I wrote "))


def jobs(kind: str, most: int) -> list[Job]:
    """Return the first jobs of a kind."""
    found: list[Job] = []
    for name, given in tomllib.loads(JOBS.read_text(encoding="utf-8")).items():
        for n, row in enumerate(given[f"{kind}s"], 1):
            found.append(Job(kind, name, n, row["task"], given["files"], row))
    return found[:most]


def names(root: Path) -> list[str]:
    """Return the files of `root`."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


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


async def measured(model: Any, job: Job) -> Outcome:
    """Do one job on a fresh copy and judge it; a change is looked at on its branch."""
    with tempfile.TemporaryDirectory(prefix="embedded-") as name:
        root, seen = Path(name) / job.project, Path(name) / "seen"
        for path, text in job.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        begun = time.monotonic()
        agent: Agent[Any] = Agent(workdir=root, data_dir=":memory:", language_model=model, max_iterations=20)
        with agent:
            result = await agent.run(job.task)
            agent.branch.export(seen, "dir")
        seconds = time.monotonic() - begun
        wrong = wrong_edit(job, seen) if job.kind == "edit" else wrong_answer(job, result.text)
    usage = result.usage
    tokens = usage.input_tokens, usage.cache_read_tokens, usage.output_tokens
    return Outcome(job, wrong, result.text, seconds, tokens)


async def run(chosen: argparse.Namespace) -> list[Outcome]:
    """Do the jobs one after another on one engine."""
    model = open_local(str(chosen.weights), LocalSettings(None, CONTEXT, threads=chosen.threads))
    outcomes: list[Outcome] = []
    try:
        for job in (*jobs("edit", chosen.edits), *jobs("question", chosen.questions)):
            outcomes.append(await measured(model, job))
            told(outcomes[-1])
    finally:
        await model.aclose()
    return outcomes


def told(outcome: Outcome) -> None:
    """Print one outcome."""
    evaluated, reused, written = outcome.tokens
    wrong = f"WRONG {outcome.wrong}\n    [{outcome.job.task}]" if outcome.wrong else "right"
    print(
        f"{outcome.job.name:13} {outcome.seconds:5.1f} s  {evaluated:5} evaluated {reused:6} reused {written:4} written  "
        f"{wrong}\n    {' '.join(outcome.said.split())[:240]}",
        flush=True,
    )


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weights", type=Path, default=os.environ.get("BOWERBIRD_WEIGHTS"))
    parser.add_argument("--edits", type=int, default=20)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--threads", type=int)
    chosen = parser.parse_args()
    if chosen.weights is None:
        parser.error("name the weights: --weights or BOWERBIRD_WEIGHTS")
    outcomes = asyncio.run(run(chosen))
    for kind in ("edit", "question"):
        some = [one for one in outcomes if one.job.kind == kind]
        if some:
            right, middle = sum(not one.wrong for one in some), statistics.median(one.seconds for one in some)
            print(f"{kind}s: {right} of {len(some)} right, median {middle:.1f} s")
    print(f"wrong changes told as made: {sum(one.claimed for one in outcomes)}")


if __name__ == "__main__":
    main()
