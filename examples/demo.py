"""What `make demo` runs: the embedded model does three real jobs on a small project, runs the project's tests
on its branch, and one change lands.

Every step is a `bowerbird` command that is printed before it runs, so each can be tried by hand. Nothing is
scripted: the answers are the model's, and `jobs.py` checks each against the project's files.

    python examples/demo.py                                  # the embedded model; no key, no account
    python examples/demo.py --model anthropic:claude-sonnet-4-5
"""

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from jobs import JOBS, PRICES, PROJECT, Job

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".demo"
WORK = PLACE / "bakery"
DATA = PLACE / "data"
TESTS = "Run the tests with `python3 -m unittest` and say whether they pass."
# As a command's own output is shown: indented, which no words of the model are.
TESTS_PASSED = re.compile(r"^ +Ran [1-9]\d* tests? in [\d.]+s\s+OK$", re.MULTILINE)


def say(text: str = "") -> None:
    """Print a line of the demo's own at once."""
    print(text, flush=True)


def bowerbird(*words: str, show: bool = True, steps: bool = False) -> str:
    """Run one command in the copy of the project; return its standard output, shown as it comes.

    Args:
        steps: return what it tells of its steps, too (standard error).
    """
    if show:
        say(f"\n$ bowerbird {shlex.join(words)}")
    command = [sys.executable, "-m", "bowerbird", "--data-dir", str(DATA), *words]
    lines: list[str] = []
    errors = subprocess.STDOUT if steps else None
    with subprocess.Popen(
        command, cwd=WORK, stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if show:
                print(line, end="", flush=True)
    if process.returncode not in (0, 5) and words[0] != "doctor":
        say(f"\nThat command ended with exit code {process.returncode}; the demo stops here.")
        sys.exit(1)
    return "".join(lines)


def do_job(job: Job, model: list[str]) -> str | None:
    """Let the agent do one job; return what is wrong with the result, None when it is right."""
    say(f"\n─── {job.kind}: {job.prompt}")
    started = time.monotonic()
    answer = bowerbird("run", *model, "--no-memory", job.prompt)
    wrong = None if job.kind == "change" else job.check(PROJECT, WORK, answer)
    verdict = f"wrong: {wrong}" if wrong else f"expected {job.expected(PROJECT)}"
    say(f"    [{time.monotonic() - started:.0f} s; {verdict}]")
    return wrong


def run_tests(model: list[str]) -> str | None:
    """Let the agent run the project's own tests on the branch, before anything lands."""
    sandbox = next(
        c for c in json.loads(bowerbird("doctor", "--json", show=False))["checks"] if c["name"] == "sandbox"
    )
    if sandbox["found"].startswith("tier none"):
        say(f"\n─── tests: left out, no process may run on this host ({sandbox['found']})")
        return None
    say(f"\n─── tests: {TESTS}")
    started = time.monotonic()
    told = bowerbird("run", *model, "--no-memory", "--resume", "--", TESTS, steps=True)
    passed = TESTS_PASSED.search(told) is not None
    verdict = "passed" if passed else "did not pass"
    say(f"    [{time.monotonic() - started:.0f} s; the tests {verdict} on the branch]")
    return None if passed else "the tests did not pass on the branch"


def review_and_land(job: Job) -> str | None:
    """Show the change, land it, look at the real file, take it back; return what went wrong."""
    before = (WORK / PRICES).read_bytes()
    say("\n─── The agent worked on a branch; the project itself is unchanged. What the branch changes:")
    bowerbird("diff")
    if (WORK / PRICES).read_bytes() != before:
        return "the project changed before the landing"
    changed = json.loads(bowerbird("diff", "--json", show=False))
    if not changed.get("written"):
        return "the agent changed nothing"
    bowerbird("land", "--yes")
    wrong = job.check(PROJECT, WORK, "")
    say(f"    [{PRICES} in the project: {f'wrong: {wrong}' if wrong else 'changed as asked'}]")
    bowerbird("undo")
    if (WORK / PRICES).read_bytes() != before:
        return "after undo the file is not what it was"
    say(f"    [{PRICES} is back, byte for byte]")
    return wrong


def main() -> int:
    """Run the demo; exit code 1 when the model got something wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", help="provider:model; needs that provider's key in the environment")
    chosen = parser.parse_args().model
    started = time.monotonic()
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.copytree(PROJECT, WORK)
    model = ["--model", chosen or "local:default"]
    if chosen is None:
        bowerbird("model", "fetch")
    wrong = [do_job(job, model) for job in JOBS]
    wrong.append(run_tests(model))
    wrong.append(review_and_land(JOBS[-1]))
    failures = [text for text in wrong if text]
    say(f"\nDone in {time.monotonic() - started:.0f} s; {WORK.relative_to(ROOT)} is yours to play with:")
    say(f"  cd {WORK.relative_to(ROOT)} && ../../.venv/bin/bowerbird --data-dir ../data")
    if failures:
        say(f"\nThe model got {len(failures)} of {len(wrong)} steps wrong: " + "; ".join(failures))
        return 1
    say("\nAll steps came out right.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
