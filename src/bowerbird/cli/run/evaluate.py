"""`bowerbird eval`: a suite tried by models and agents, in parallel, with a report.

Here: who tries what, how it goes on after a kill, what the terminal shows. Not here: one try, reading suites,
the report's files (`bowerbird.evals`).
"""

import asyncio
import fcntl
from collections.abc import Coroutine, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.cli.terminal.exits import DONE, PARTLY, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.shell import run as run_async
from bowerbird.cli.terminal.text import harmless, harmless_path, one_line, plural, table
from bowerbird.core.errors import BowerbirdError
from bowerbird.core.timestamps import now_iso

if TYPE_CHECKING:
    from bowerbird.config import Loaded
    from bowerbird.evals.report import Report
    from bowerbird.evals.suites import Suite, Task
    from bowerbird.evals.tries import Contender, Tries

MOST_TRIES, MOST_JOBS, USUAL_JOBS = 100, 32, 4


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for on the command line."""

    suite: str
    model: Sequence[str]
    agent: Sequence[str]
    task: Sequence[str]
    tries: int
    jobs: int | None
    report: str | None
    again: bool
    json: bool


def evaluate(shell: Shell, **options: Any) -> int:
    """Try every task of a suite; exits with 3 when some were refused or could not be judged.

    Args:
        options: see `Wanted`.
    """
    wanted = Wanted(**options)
    for option, value, most in (("--n", wanted.tries, MOST_TRIES), ("--jobs", wanted.jobs, MOST_JOBS)):
        if value is not None and not 1 <= value <= most:
            raise CliExit(USAGE, f"{option} is {value}; use 1 to {most}")
    from bowerbird.evals.report import JUDGED, page_of
    from bowerbird.evals.suites import read_suite

    suite = _chosen(read_suite(Path(wanted.suite).expanduser().resolve()), wanted.task)
    path = Path(wanted.report or f"eval-{suite.path.stem}.json").expanduser().resolve()
    if path == suite.path or path.suffix == ".html":
        raise CliExit(
            USAGE, f"--report is {path}; name a file that ends in .json, beside which the page is written"
        )
    if not path.parent.is_dir():
        raise CliExit(USAGE, f"there is no directory {path.parent} for the report")
    loaded = shell.load()
    with _alone(path):
        made = run_async(lambda: _evaluated(shell, loaded, suite, wanted, path))
    if wanted.json:
        shell.json(made.record())
    else:
        _show(shell, made, path, page_of(path))
    return DONE if not made.refused and all(t.state in JUDGED for t in made.tries) else PARTLY


def _chosen(suite: "Suite", names: Sequence[str]) -> "Suite":
    if not names:
        return suite
    unknown = [name for name in names if name not in suite.tasks and name not in suite.refused]
    if unknown:
        known = ", ".join(sorted([*suite.tasks, *suite.refused])[:40])
        raise CliExit(USAGE, f"the suite has no task {unknown[0]!r}; it has {known}")
    kept = {name: task for name, task in suite.tasks.items() if name in names}
    refused = {name: why for name, why in suite.refused.items() if name in names}
    return msgspec.structs.replace(suite, tasks=kept, refused=refused)


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Hold a report while it is made: a second evaluation would overwrite the first one's tries."""
    place = path.with_name(f".{path.name}.lock")
    with ExitStack() as held:
        try:
            lock = held.enter_context(place.open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CliExit(USAGE, f"another evaluation writes {path}; give --report another file") from None
        except OSError as error:
            raise CliExit(USAGE, f"the report {path} cannot be written: {error.strerror}") from None
        try:
            yield
        finally:
            place.unlink(missing_ok=True)


async def _evaluated(shell: Shell, loaded: "Loaded", suite: "Suite", wanted: Wanted, path: Path) -> "Report":
    from bowerbird import __version__
    from bowerbird.app import choose_model, open_application
    from bowerbird.evals.report import Report, read_report, write_report
    from bowerbird.evals.tries import Contender, Tries
    from bowerbird.sessions.provider_agents.attempts import Attempts
    from bowerbird.sessions.provider_agents.part import ProviderAgents

    report = read_report(path)
    if report is None or wanted.again:
        report = Report(suite=str(suite.path), made=now_iso(), version=__version__)
    elif report.suite != str(suite.path):
        raise CliExit(
            USAGE, f"{path} is the report of {report.suite}; give --report another file, or --again"
        )
    chosen = [choose_model(loaded, name) for name in (wanted.model or ([] if wanted.agent else [None]))]
    for each in chosen:
        if each.note:
            shell.terminal.note(each.note, "yellow")
    # No command of an agent sees the suite, or what comes later in its repositories, whatever settings show.
    repositories = [task.repo for task in suite.tasks.values() if task.repo is not None]
    apart = msgspec.structs.replace(loaded, files=(*loaded.files, suite.path, *repositories))
    async with open_application(apart, model=chosen[0].name if chosen else "") as application:
        (await application.sandboxes.status()).require()
        able = Attempts(application.sessions.part(ProviderAgents))
        for name in wanted.agent:
            if why := await able.lacking(name):
                raise CliExit(USAGE, why)
        who = [Contender(each.name) for each in chosen] + [Contender(name, True) for name in wanted.agent]
        usual = 1 if any(each.name.startswith("local:") for each in who) else USUAL_JOBS
        work = _Work(shell, Tries(application, loaded), report, path, wanted.jobs or usual)
        report.begin(suite)
        write_report(path, report)  # before anything is spent
        await work.verify(suite)
        able_here = [task for name, task in suite.tasks.items() if name not in report.refused]
        await work.run(list(dict.fromkeys(who)), able_here, wanted.tries)
    write_report(path, report)
    return report


class _Work:
    """The tries of one command, each kept as soon as it is judged."""

    def __init__(self, shell: Shell, tries: "Tries", report: "Report", path: Path, jobs: int) -> None:
        self._shell = shell
        self._tries = tries
        self._report = report
        self._path = path
        self._room = asyncio.Semaphore(jobs)

    async def verify(self, suite: "Suite") -> None:
        """Refuse the tasks whose checks are not red before, and green after their own solution."""

        async def one(task: "Task") -> None:
            async with self._room:
                try:
                    await self._tries.verify(task)
                    self._report.verified[task.name] = task.digest
                except (BowerbirdError, OSError) as error:
                    self._report.refused[task.name] = str(error)

        new = [task for task in suite.tasks.values() if self._report.verified.get(task.name) != task.digest]
        if new:
            named = plural(len(new), "check")
            self._shell.terminal.note(f"looking at {named}: red before, green after its solution?")
        await _all(one(task) for task in new)
        for name, why in sorted(self._report.refused.items()):
            self._shell.terminal.note(f"not tried: {one_line(name)}: {one_line(why, 400)}", "yellow")

    async def run(self, who: "Sequence[Contender]", tasks: "Sequence[Task]", tries: int) -> None:
        """Make the tries that the report does not have."""
        from bowerbird.evals.report import write_report

        wanted = [(each, task, n) for n in range(1, tries + 1) for task in tasks for each in who]
        left = [(c, t, n) for c, t, n in wanted if not self._report.has(c.name, t.name, t.digest, n)]
        if kept := len(wanted) - len(left):
            self._shell.terminal.note(
                f"{kept} of {len(wanted)} tries are in {harmless_path(str(self._path))} already"
            )
        done = kept

        async def one(each: "Contender", task: "Task", number: int) -> None:
            nonlocal done
            async with self._room:
                found = await self._tries.run(each, task, number)
            self._report.add(found)
            write_report(self._path, self._report)
            done += 1
            tail = f": {one_line(found.reason, 200)}" if found.reason else ""
            what = (
                f"{done}/{len(wanted)} {found.state} {one_line(task.name)} {number} ({one_line(each.name)})"
            )
            self._shell.terminal.note(
                f"{what} {found.seconds:.1f} s{tail}", "" if found.state == "right" else "yellow"
            )

        await _all(one(each, task, number) for each, task, number in left)


async def _all(jobs: "Iterable[Coroutine[None, None, None]]") -> None:
    """Run jobs beside each other; what ends one ends all, and is said as it is."""
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _show(shell: Shell, report: "Report", path: Path, page: Path) -> None:
    from bowerbird.evals.report import cells_of

    head = ["", "right", "cost", "time", "tokens", "steps"]
    for row in report.summary():
        rows = [[harmless(each["task"]), *cells_of(each)] for each in row["tasks"]]
        shell.terminal.line(harmless(row["contender"]), "bold")
        for line in table([head, *rows, ["total", *cells_of(row)]], width=shell.terminal.width):
            shell.terminal.line(line)
    if report.refused:
        shell.terminal.line(f"not tried: {plural(len(report.refused), 'task')}")
    shell.terminal.note(f"report: {harmless_path(str(path))}, {harmless_path(str(page))}")
