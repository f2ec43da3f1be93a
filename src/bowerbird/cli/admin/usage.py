"""`bowerbird usage`: tokens and money by a key, and what became of changes (UI-47).

Here: the tables. Not here: the sums (`store/rows/usage_report.py`) and counts (`store/journal/outcomes.py`).
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
OUTCOME_KEYS = ("model", "preset", "agent")
OUTCOMES = {
    "landed": "landed",
    "part": "in part",
    "discarded": "discarded",
    "undone": "undone",
    "open": "open",
}


def usage(
    shell: Shell, *, by: str | None, outcomes: bool, since: str | None, until: str | None, json: bool
) -> int:
    """Show what was used, or what became of changes.

    Args:
        by: `day`, `model`, `user`, `conversation`; of outcomes `model`, `preset`, `agent`.
        since, until: UTC days `2026-11-20`, both included.
    """
    keys = OUTCOME_KEYS if outcomes else KEYS
    key = by or keys[0]
    if key not in keys:
        raise CliExit(USAGE, f"--by is {by!r}; use {', '.join(keys)}")
    for option, day in (("--from", since), ("--to", until)):
        _require_day(option, day)

    async def work(client: Client) -> int:
        found = await (client.outcomes if outcomes else client.usage)(key, since, until)
        if json:
            return shell.json(found)
        if not found["rows"]:
            nothing = "no agent changed files in that time" if outcomes else "nothing was used in that time"
            shell.terminal.note(nothing)
        else:
            for line in (_outcomes if outcomes else _lines)(key, found["rows"], shell.terminal.width):
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


def _outcomes(by: str, rows: list[dict[str, Any]], width: int) -> list[str]:
    head = (by, "changes", *OUTCOMES.values())
    lines = [(str(row["key"] or "-"), str(row["changes"]), *(str(row[s]) for s in OUTCOMES)) for row in rows]
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
