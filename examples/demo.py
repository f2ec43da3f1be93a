"""What `make demo` runs: the embedded model does three real jobs on a small project, runs the project's tests
on its branch, and one change lands once it is judged right; where it is not, three attempts compete.

Every step is a `bowerbird` command that is printed before it runs, so each can be tried by hand. Nothing is
scripted: the answers are the model's, and `jobs.py` checks each against the project's files.

    python examples/demo.py                                  # the embedded model; no key, no account
    python examples/demo.py --model anthropic:claude-sonnet-5
    python examples/demo.py --web                            # afterwards, serve the page with the session
"""

import argparse
import json
import os
import pty
import re
import selectors
import shlex
import shutil
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

from jobs import DELIVERY_CHECK, JOBS, PRICES, PROJECT, Job, wrong_patch

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".demo"
WORK = PLACE / "bakery"
DATA = PLACE / "data"
PAGES = ROOT / "src/bowerbird/ui/index.html"
TESTS = "Run the project's tests and say whether they pass."
TEST_COMMAND = "python3 -m unittest"
WINNER = re.compile(r"^winner: \S+ merged into the branch of session (\S+)$", re.MULTILINE)
# As a command's own output is shown: indented, which no words of the model are.
TESTS_PASSED = re.compile(
    r"^ +(?:Ran [1-9]\d* tests? in [\d.]+s\s+OK|[1-9]\d* passed in [\d.]+s)$", re.MULTILINE
)


def say(text: str = "") -> None:
    """Print a line of the demo's own at once."""
    print(text, flush=True)


def bowerbird(*words: str, show: bool = True, steps: bool = False, may_fail: bool = False) -> str:
    """Run one command in the copy of the project; return its standard output, shown as it comes.

    Args:
        steps: return what it tells of its steps, too (standard error).
        may_fail: go on when it exits with an error.
    """
    if show:
        say(f"\n$ bowerbird {shlex.join(words)}")
    command = [sys.executable, "-m", "bowerbird", "--data-dir", str(DATA), *words]
    errors, its_errors = error_ends()
    with subprocess.Popen(command, cwd=WORK, stdout=subprocess.PIPE, stderr=its_errors) as process:
        os.close(its_errors)
        assert process.stdout is not None
        said = copied(process.stdout.fileno(), errors, show=show, steps=steps)
    os.close(errors)
    if process.returncode not in (0, 5) and not may_fail:
        say(f"\nThat command ended with exit code {process.returncode}; the demo stops here.")
        sys.exit(1)
    return said


def error_ends() -> tuple[int, int]:
    """Where a command tells of its steps: a terminal if the demo has one, or it would draw no progress."""
    if not sys.stderr.isatty():
        return os.pipe()
    ours, its = pty.openpty()
    termios.tcsetwinsize(its, termios.tcgetwinsize(sys.stderr))
    return ours, its


def copied(output: int, errors: int, *, show: bool, steps: bool) -> str:
    """Show what a command says until it ends, an answer before what is said about it; return it as text."""
    said = b""
    with selectors.DefaultSelector() as both:
        for number in (output, errors):
            both.register(number, selectors.EVENT_READ)
        while both.get_map():
            for number in sorted((key.fd for key, _ in both.select()), key=lambda number: number == errors):
                try:
                    piece = os.read(number, 65_536)
                except OSError:  # a terminal that its program has left
                    piece = b""
                if not piece:
                    both.unregister(number)
                if number == output or steps:
                    said += piece.replace(b"\r\n", b"\n")
                if show or number == errors:
                    sys.stdout.buffer.write(piece)
                    sys.stdout.flush()
    return said.decode(errors="replace")


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
    say(f"\n─── tests: {TESTS}")
    started = time.monotonic()
    told = bowerbird("run", *model, "--no-memory", "--resume", "--", TESTS, steps=True)
    passed = TESTS_PASSED.search(told) is not None
    verdict = "passed" if passed else "did not pass"
    say(f"    [{time.monotonic() - started:.0f} s; the tests {verdict} on the branch]")
    return None if passed else "the tests did not pass on the branch"


def sandbox_tier() -> str:
    """Return what keeps processes in on this host, as `bowerbird doctor` tells it."""
    say("\nLooking at what this host offers for running commands …")
    checks = json.loads(bowerbird("doctor", "--json", show=False, may_fail=True))["checks"]
    return next(check["found"] for check in checks if check["name"] == "sandbox")


def judged(job: Job, model: list[str]) -> tuple[list[str], str | None]:
    """Judge the change on its branch; where it is wrong, let three attempts compete.

    Returns:
        The session to land, as words of a command line (none: the newest), and what is wrong with it.
    """
    tier = sandbox_tier()
    say("\n─── The agent worked on a branch; the project itself is unchanged. What the branch changes:")
    wrong = wrong_patch(bowerbird("diff"))
    if tier.startswith("tier none"):
        say(f"\n─── tests: left out, no process may run on this host ({tier})")
        return [], wrong
    wrong = wrong or run_tests(model)
    if wrong is None:
        return [], None
    say(f"    [not good enough to land: {wrong}]")
    say("\n─── Three attempts compete; the project's tests and one look at the price decide:")
    checks = ["--check", TEST_COMMAND, "--check", DELIVERY_CHECK]
    told = bowerbird("attempt", *model, *checks, "--merge", job.prompt, may_fail=True)
    winner = WINNER.search(told)
    if winner is None:
        return [], "no attempt passed the checks"
    return [winner[1]], wrong_patch(bowerbird("diff", winner[1]))


def land_and_undo(job: Job, session: list[str]) -> str | None:
    """Land the judged change, look at the real file, take it back; return what went wrong."""
    before = (WORK / PRICES).read_bytes()
    if before != (PROJECT / PRICES).read_bytes():
        return "the project changed before the landing"
    bowerbird("land", "--yes", *session)
    wrong = job.check(PROJECT, WORK, "")
    say(f"    [{PRICES} in the project: {f'wrong: {wrong}' if wrong else 'changed as asked'}]")
    bowerbird("undo")
    if (WORK / PRICES).read_bytes() != before:
        return "after undo the file is not what it was"
    say(f"    [{PRICES} is back, byte for byte]")
    return wrong


def next_commands(embedded: bool) -> None:
    """Say how to go on; each works as it stands, with the model that the demo had."""
    place = f"--data-dir {DATA.relative_to(ROOT)}"
    work = WORK.relative_to(ROOT)
    program = f"{ROOT}/.venv/bin/bowerbird{f' --data-dir {DATA}' if embedded else ''}"
    pages = "" if PAGES.is_file() else "make web && "
    say("\nGo on with one of these:")
    say(f"  .venv/bin/bowerbird {place} run -w {work}     # talk to the agent about the bakery")
    say(f"  {pages}.venv/bin/bowerbird {place} serve -w {work}   # the same sessions in the browser")
    say(f"  cd ~/my-project && {program}     # your own project")


def serve() -> None:
    """Serve the page with the sessions; a checkout has to build it first."""
    if not PAGES.is_file():
        say("\nBuilding the pages, once (make web) …")
        if subprocess.run(["make", "--no-print-directory", "web"], cwd=ROOT, check=False).returncode:
            say("The pages could not be built; the lines above say why.")
            return
    with suppress(KeyboardInterrupt):
        bowerbird("serve", may_fail=True)


def main() -> int:
    """Run the demo; exit code 1 when the model got something wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", help="provider:model; needs that provider's key in the environment")
    parser.add_argument("--web", action="store_true", help="afterwards, serve the page with the session")
    options = parser.parse_args()
    chosen = options.model
    started = time.monotonic()
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.copytree(PROJECT, WORK)
    model = ["--model", chosen or "local:default"]
    if chosen is None:
        bowerbird("model", "fetch")
    wrong = [do_job(job, model) for job in JOBS]
    session, unfit = judged(JOBS[-1], model)
    if unfit:
        say(f"\nNothing landed: {unfit}.")
    wrong.append(unfit or land_and_undo(JOBS[-1], session))
    failures = [text for text in wrong if text]
    say(f"\nDone in {time.monotonic() - started:.0f} s.")
    if failures:
        say(f"The model got {len(failures)} of {len(wrong)} steps wrong: " + "; ".join(failures))
    else:
        say("All steps came out right.")
    next_commands(embedded=chosen is None)
    if options.web:
        serve()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
