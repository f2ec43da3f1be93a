"""What an evaluation found: tries as values, kept in one file, summed up, and shown as one page.

Here: the values, their sums, both files. Not here: who runs tries, what a terminal shows.
"""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.core.errors import InvalidArgument
from bowerbird.core.forms import decode
from bowerbird.evals.suites import Suite

JUDGED = ("right", "wrong", "timeout")


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """One try of a task by a contender.

    Attributes:
        state: `right`, `wrong`; `timeout` and `failed`: of the turn; `unjudged`: the check did not run.
        reason, output: why it is not right, and the end of what the check printed.
        cost: USD, None = no price is known. tokens: of all kinds; None = nobody knows.
        calls: of the model. steps: these and calls of tools. session: see it with `bowerbird show`.
    """

    contender: str
    task: str
    number: int
    digest: str
    state: str
    reason: str = ""
    output: str = ""
    seconds: float = 0.0
    cost: float | None = None
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    calls: int | None = None
    steps: int | None = None
    session: str = ""


class Report(msgspec.Struct, kw_only=True):
    """All tries of a suite so far.

    Attributes:
        refused: tasks that were not tried, with the reason. verified: digests of tasks whose checks are red
            before, and green after their own solution.
    """

    suite: str
    made: str
    version: str
    refused: dict[str, str] = {}
    verified: dict[str, str] = {}
    tries: list[Try] = []

    def has(self, contender: str, task: str, digest: str, number: int) -> bool:
        """Whether a try was judged; one that failed by itself is worth another."""
        wanted = (contender, task, digest, number)
        return any(
            (t.contender, t.task, t.digest, t.number) == wanted and t.state in JUDGED for t in self.tries
        )

    def begin(self, suite: Suite) -> None:
        """Leave out what was found of tasks that are others by now."""
        digests = {name: task.digest for name, task in suite.tasks.items()}
        self.tries = [t for t in self.tries if digests.get(t.task, t.digest) == t.digest]
        kept = {name: why for name, why in self.refused.items() if name not in digests}
        self.refused = {**kept, **suite.refused}

    def add(self, found: Try) -> None:
        """Put a try in, in place of an earlier one of the same number."""
        key = (found.contender, found.task, found.number)
        self.tries = [t for t in self.tries if (t.contender, t.task, t.number) != key] + [found]
        self.tries.sort(key=lambda t: (t.contender, t.task, t.number))

    def summary(self) -> list[dict[str, Any]]:
        """Return the sums of each contender, and of each of its tasks."""
        names = dict.fromkeys(t.contender for t in self.tries)
        rows: list[dict[str, Any]] = []
        for name in names:
            mine = [t for t in self.tries if t.contender == name]
            tasks = dict.fromkeys(t.task for t in mine)
            by_task = [{"task": each} | _sums(t for t in mine if t.task == each) for each in tasks]
            rows.append({"contender": name, **_sums(mine), "tasks": by_task})
        return rows

    def record(self) -> dict[str, Any]:
        """Return plain data, the summary first."""
        plain = msgspec.to_builtins(self)
        return {"suite": plain.pop("suite"), "summary": self.summary(), **plain}


def _sums(tries: Iterable[Try]) -> dict[str, Any]:
    mine = list(tries)
    return {
        "right": sum(t.state == "right" for t in mine),
        "tries": len(mine),
        "seconds": round(sum(t.seconds for t in mine), 3),
        "cost": _sum([t.cost for t in mine]),
        "tokens": _sum([t.tokens for t in mine]),
        "steps": _sum([t.steps for t in mine]),
    }


def _sum(values: "Sequence[float | None]") -> float | None:
    """Return a sum, None where a part is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def read_report(path: Path) -> Report | None:
    """Return the report that stands in a file, None where there is none.

    Raises:
        InvalidArgument: something else stands there.
    """
    try:
        return decode(path.read_bytes(), Report)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidArgument(f"{path} is no report of an evaluation ({error}); name another file") from error


def write_report(path: Path, report: Report) -> None:
    """Write a report: JSON at `path`, the page beside it; whoever reads finds the old or the new.

    Raises:
        InvalidArgument: it cannot be written there.
    """
    try:
        replace_file(path, msgspec.json.format(msgspec.json.encode(report.record()), indent=2) + b"\n")
        replace_file(page_of(path), page(report).encode("utf-8", "replace"))
    except OSError as error:
        raise InvalidArgument(
            f"the report {path} and its page cannot be written: {error.strerror}"
        ) from error


def page_of(path: Path) -> Path:
    """Return where the page of a report stands."""
    return path.with_suffix(".html")


# ---------------------------------------------------------------- the page

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif;
  color-scheme: light dark; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; min-width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0;
  border-bottom: 1px solid #8884; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.task { overflow-wrap: anywhere; min-width: 12rem; }
.right { color: light-dark(#17663a, #6fd39b); } .wrong { color: light-dark(#a3271c, #ff9d92); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .25rem 0;
  font: 13px/1.4 ui-monospace, monospace; }
summary { cursor: pointer; }
"""
_HEAD = ("right", "cost", "time", "tokens", "steps")


def page(report: Report) -> str:
    """Return a report as one page that needs nothing else and runs nothing. Pure."""
    title = f"Evaluation of {Path(report.suite).name}"
    made = report.made[:16].replace("T", " ")
    about = f"{report.suite} · {made} UTC · Bowerbird {report.version}"
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n"
        f"<p>{escape(about)}</p>\n"
    ]
    rows = report.summary()
    parts.append(_table("contender", [(row["contender"], row) for row in rows]))
    for row in rows:
        name = str(row["contender"])
        parts.append(f"<h2>{escape(name)}</h2>\n")
        parts.append(_table("task", [(task["task"], task) for task in row["tasks"]]))
        parts += [_not_right(t) for t in report.tries if t.contender == name and t.state != "right"]
    if report.refused:
        parts.append("<h2>Not tried</h2>\n<ul>\n")
        parts += [
            f"<li><b>{escape(name)}</b>: {escape(why)}</li>\n" for name, why in sorted(report.refused.items())
        ]
        parts.append("</ul>\n")
    return "".join(parts) + "</body></html>\n"


def _table(first: str, rows: Sequence[tuple[str, dict[str, Any]]]) -> str:
    head = "".join(f'<th class="n">{name}</th>' for name in _HEAD)
    lines = [f'<div class="wide"><table><thead><tr><th>{first}</th>{head}</tr></thead><tbody>\n']
    for name, sums in rows:
        kind = "right" if sums["right"] == sums["tries"] else "wrong" if not sums["right"] else "some"
        cells = "".join(f'<td class="n">{escape(cell)}</td>' for cell in cells_of(sums)[1:])
        lines.append(
            f'<tr><td class="task">{escape(name)}</td>'
            f'<td class="n {kind}">{escape(cells_of(sums)[0])}</td>{cells}</tr>\n'
        )
    return "".join(lines) + "</tbody></table></div>\n"


def cells_of(sums: dict[str, Any]) -> list[str]:
    """Return the figures of a row as text: right, cost, time, tokens, steps.

    >>> cells_of({"right": 1, "tries": 3, "cost": None, "seconds": 61.25, "tokens": 1200, "steps": 7})
    ['1 of 3', '–', '61.2 s', '1,200', '7']
    """
    cost, tokens, steps = sums["cost"], sums["tokens"], sums["steps"]
    return [
        f"{sums['right']} of {sums['tries']}",
        "–" if cost is None else f"${cost:.4f}",
        f"{sums['seconds']:.1f} s",
        "–" if tokens is None else f"{tokens:,}",
        "–" if steps is None else f"{steps:,}",
    ]


def _not_right(found: Try) -> str:
    title = f"{found.task} {found.number}: {found.state}"
    said = f"{title}, {found.reason}" if found.reason else title
    where = f"<p>bowerbird show {escape(found.session)}</p>" if found.session else ""
    return (
        f"<details><summary>{escape(said)}</summary>{where}"
        f"<pre>{escape(found.output) or 'it printed nothing'}</pre></details>\n"
    )
