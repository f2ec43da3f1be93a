"""`bowerbird model fetch|check`.

Here: the progress bar and the copy of a file the user has; the table of a check, and settings put in place.
Not here: downloading, hashes (`models/local`), what is checked (`models/check.py`).
"""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bowerbird.cli.terminal.exits import CONFIG, DONE, FAILED, PARTLY, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.shell import run as run_async
from bowerbird.cli.terminal.terminal import Terminal, progress_bar
from bowerbird.cli.terminal.text import harmless, size, wrapped

if TYPE_CHECKING:
    from bowerbird.config import Loaded
    from bowerbird.models.check import Finding, Report
    from bowerbird.models.local.fetch import FetchProgress
    from bowerbird.models.local.weights import Weights

_REPORT_EVERY_S = 10.0
_BLOCK = 1 << 20


def fetch(shell: Shell, *, small: bool, source: str | None) -> int:
    """Fetch and verify the embedded model; what arrived before is not fetched again."""
    from bowerbird.app.choice import INSTALL, is_embedded_installed
    from bowerbird.app.own import make_data_dir
    from bowerbird.models.local.fetch import FetchFailed, fetch_weights

    if not is_embedded_installed():  # else 1.1 GB would arrive that nothing can run
        raise CliExit(CONFIG, f"nothing is fetched: the embedded model's engine is not installed ({INSTALL})")
    data_dir = make_data_dir(shell.load(Path.cwd()).settings.agent.data_dir)
    bar = Bar(shell.terminal)
    try:
        path = _from_file(Path(source), data_dir, bar) if source else fetch_weights(data_dir, small, bar.show)
    except FetchFailed as error:
        raise CliExit(FAILED, str(error)) from error
    finally:
        shell.terminal.clear_status()
    shell.terminal.line(f"{path} is complete and verified", "green")
    shell.terminal.note('use it with: bowerbird --model local:default "…"')
    return DONE


_STYLES = {"good": "green", "poor": "yellow", "bad": "red", "unknown": "dim"}
_MARKS = {"good": "✓", "poor": "!", "bad": "✗", "unknown": "·"}


def check(shell: Shell, *, name: str | None, whole: bool, write: bool, json: bool) -> int:
    """Try a model on its own endpoint; 0 fit for an agent, 3 with limits, 1 not fit."""
    from bowerbird.app.choice import choose_model
    from bowerbird.models.names import parse_model_name

    loaded = shell.load(Path.cwd())
    named = name or choose_model(loaded).name
    if not json:
        shell.terminal.line(f"{named}, as its endpoint serves it; some 25 requests, which may cost money:")
    report = run_async(lambda: _checked(shell, loaded, named, whole, quiet=json))
    settings = {f"models.{named}.{key}": value for key, value in report.settings.items()}
    if json:
        found = [msgspec.structs.asdict(finding) for finding in report.findings]
        shell.json({"model": named, "verdict": report.verdict, "settings": settings, "findings": found})
    else:
        shell.terminal.line(f"\n{named} is {report.verdict}.")
        for key, value in settings.items():
            shell.terminal.line(f"  {key}: {value}")
    if settings and write:
        file = run_async(lambda: _written(loaded, str(parse_model_name(named)), report))
        shell.terminal.note(f"written to {file}")
    elif settings and not json:
        shell.terminal.note("`--write` puts this into your settings file")
    worst = {finding.worth for finding in report.findings}
    return FAILED if "bad" in worst else PARTLY if "poor" in worst else DONE


async def _checked(shell: Shell, loaded: "Loaded", name: str, whole: bool, *, quiet: bool) -> "Report":
    from bowerbird.app.mapping import model_settings
    from bowerbird.models.check import Report
    from bowerbird.models.check import check as check_model
    from bowerbird.models.registry import open_model

    model = open_model(name, model_settings(loaded))
    report = Report()
    try:
        async for finding in check_model(model, report, whole_window=whole):
            if not quiet:
                _show(shell, finding)
    finally:
        await model.aclose()
    return report


def _show(shell: Shell, finding: "Finding") -> None:
    terminal = shell.terminal
    mark = terminal.styled(_MARKS[finding.worth], _STYLES[finding.worth], terminal.out)
    width = terminal.width - 2 if terminal.out.is_terminal else 100_000
    lines = wrapped(f"{finding.name}: {harmless(finding.told)}", width)
    terminal.write(f"{mark} " + "\n  ".join(lines) + "\n")


async def _written(loaded: "Loaded", name: str, report: "Report") -> Path:
    """Put the settings that follow into the settings file; returns it."""
    from bowerbird.app.settings.rules import target_file
    from bowerbird.config.editing import edited, put_beside, take_place
    from bowerbird.core.processes.alone import alone_in

    file = target_file(loaded)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with alone_in(file.parent):
        before = file.read_bytes() if file.exists() else b""
        values = {("models", name, key): value for key, value in report.settings.items()}
        take_place(put_beside(file, edited(before, values)), file)
    return file


class Bar:
    """Shows progress: a bar at a terminal, a line now and then elsewhere."""

    def __init__(self, terminal: Terminal, clock: Callable[[], float] = time.monotonic) -> None:
        self._terminal = terminal
        self._clock = clock
        self._step = ""
        self._began = 0.0
        self._first = 0
        self._reported = 0.0

    def show(self, progress: "FetchProgress") -> None:
        """Show how far a fetch is."""
        self.at(progress.step, progress.done, progress.total, progress.source)

    def at(self, step: str, done: int, total: int, source: str) -> None:
        """Show `done` of `total` bytes of a step."""
        now = self._clock()
        if step != self._step:
            self._step, self._began, self._first, self._reported = step, now, done, now
        if step == "done":
            return
        rate = (done - self._first) / (now - self._began) if now > self._began else 0.0
        what = {"download": f"from {source}", "join": "putting it together"}.get(step, step)
        unit = f"{size(done)} of {size(total)}, {size(rate)}/s, {what}"
        if self._terminal.err.cursor:
            self._terminal.status(
                progress_bar(done, total, width=self._terminal.width - 1, rate=rate, unit=unit)
            )
        elif now - self._reported >= _REPORT_EVERY_S:
            self._reported = now
            self._terminal.note(unit)


def _from_file(file: Path, data_dir: Path, bar: Bar) -> Path:
    """Take a weights file that is already on this machine, if it is one that is known."""
    from bowerbird.models.local.weights import KNOWN, hash_file, weights_path, write_stamp

    file = file.expanduser()
    if not file.is_file():
        raise CliExit(USAGE, f"{file} does not exist")
    length = file.stat().st_size
    weights = next((known for known in KNOWN if known.size == length), None)
    seen = 0

    def on_bytes(count: int) -> None:
        nonlocal seen
        seen += count
        bar.at("checking", seen, length, str(file))

    if weights is None or hash_file(file, on_bytes) != weights.sha256:
        raise CliExit(USAGE, f"{file} is not one of the known models; use it directly: --model local:{file}")
    target = weights_path(weights, data_dir)
    _copy(file, target, bar, weights)
    write_stamp(target, weights)
    return target


def _copy(file: Path, target: Path, bar: Bar, weights: "Weights") -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(target.parent).free
    if free < weights.size:
        raise CliExit(FAILED, f"{target.parent} has {size(free)} free, {size(weights.size)} are needed")
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with file.open("rb") as source, partial.open("wb") as out:
            done = 0
            while block := source.read(_BLOCK):
                out.write(block)
                done += len(block)
                bar.at("copying", done, weights.size, str(file))
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
