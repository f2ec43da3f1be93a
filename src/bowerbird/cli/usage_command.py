"""`bowerbird usage`: tokens and money by day, model, user or conversation (UI-47, SV-32).

Here: the table. Not here: the sums (`store/rows/usage_report.py`).
"""

import json as json_text
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from bowerbird.cli.exits import DONE, USAGE, CliExit
from bowerbird.cli.review_commands import opened
from bowerbird.cli.shell import Shell
from bowerbird.cli.text import count, money, table

if TYPE_CHECKING:
    from bowerbird.app.application import Application


def usage(shell: Shell, *, by: str, since: str | None, until: str | None, json: bool) -> int:
    """Show what was used.

    Args:
        by: `day`, `model`, `user`, `conversation`.
        since, until: UTC days `2026-11-20`, both included.
    """
    from bowerbird.store.rows.usage_report import By, usage_rows

    if by not in get_args(By):
        raise CliExit(USAGE, f"--by is {by!r}; use {', '.join(get_args(By))}")
    start = None if since is None else _day("--from", since)
    end = None if until is None else _day("--to", until) + timedelta(days=1)

    async def work(application: "Application", _: Path) -> int:
        rows = await application.store.read(
            lambda c: usage_rows(c, by, since=_at(start), until=_at(end), owner=None)  # pyright: ignore[reportArgumentType] - checked above
        )
        if json:
            shell.terminal.write(json_text.dumps(rows, ensure_ascii=False, indent=2) + "\n")
        elif not rows:
            shell.terminal.note("nothing was used in that time")
        else:
            for line in _lines(by, rows, shell.terminal.width):
                shell.terminal.line(line)
        return DONE

    return opened(shell, None, work)


def _lines(by: str, rows: list[dict[str, Any]], width: int) -> list[str]:
    head = (by, "calls", "in", "out", "cached", "cost")
    lines = [
        (
            str(row["key"] or "-"),
            str(row["calls"]),
            count(int(row["input_tokens"] or 0)),
            count(int(row["output_tokens"] or 0)),
            count(int(row["cache_read_tokens"] or 0)),
            money(row["cost"]),
        )
        for row in rows
    ]
    return table([head, *lines], width=width)


def _day(option: str, text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise CliExit(USAGE, f"{option} is {text!r}; write a day as 2026-11-20") from None


def _at(day: datetime | None) -> str | None:
    from bowerbird.core.timestamps import to_iso

    return None if day is None else to_iso(day)
