"""`bowerbird usage`: tokens and money by day, model, user or conversation (UI-47, SV-32).

Here: the table. Not here: the sums (`store/rows/usage_report.py`).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bowerbird.cli.client.opening import with_client
from bowerbird.cli.client.protocol import Client
from bowerbird.cli.terminal.exits import DONE, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import count, money, table

KEYS = ("day", "model", "user", "conversation")


def usage(shell: Shell, *, by: str, since: str | None, until: str | None, json: bool) -> int:
    """Show what was used.

    Args:
        by: `day`, `model`, `user`, `conversation`.
        since, until: UTC days `2026-11-20`, both included.
    """
    if by not in KEYS:
        raise CliExit(USAGE, f"--by is {by!r}; use {', '.join(KEYS)}")
    for option, day in (("--from", since), ("--to", until)):
        _require_day(option, day)

    async def work(client: Client) -> int:
        found = await client.usage(by, since, until)
        if json:
            return shell.json(found)
        if not found["rows"]:
            shell.terminal.note("nothing was used in that time")
        else:
            for line in _lines(by, found["rows"], shell.terminal.width):
                shell.terminal.line(line)
        return DONE

    return with_client(shell, None, work)


def _lines(by: str, rows: list[dict[str, Any]], width: int) -> list[str]:
    head = (by, "calls", "in", "out", "cached", "cost")
    lines = [
        (
            str(row["key"] or "-"),
            str(row["calls"]),
            count(int(row["input_tokens"] or 0)),
            count(int(row["output_tokens"] or 0)),
            count(int(row["cache_read_tokens"] or 0)),
            cost_of(row),
        )
        for row in rows
    ]
    return table([head, *lines], width=width)


def cost_of(row: Mapping[str, Any]) -> str:
    """Return what a row's calls cost, as far as they have a price.

    Example:
        >>> cost_of({"cost": None, "known_cost": 0.5, "calls": 3, "unpriced_calls": 1})
        '$0.500 + 1 unpriced'
    """
    if row["cost"] is not None or row["unpriced_calls"] == row["calls"]:
        return money(row["cost"])
    return f"{money(row['known_cost'])} + {row['unpriced_calls']} unpriced"


def _require_day(option: str, text: str | None) -> None:
    try:
        if text is not None:
            datetime.strptime(text, "%Y-%m-%d")
    except ValueError:
        raise CliExit(USAGE, f"{option} is {text!r}; write a day as 2026-11-20") from None
