"""The models that a session can run on, as the terminal lists them (UI-75).

Here: the list of one terminal, asked for once, and its lines. Not here: which models there are
(`models/offered.py`), changing a session's.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from bowerbird.cli.client.protocol import Client, Row
from bowerbird.cli.terminal.text import cut, cut_path, harmless

SHOWN = 20
SHORTEST_NAME = 16


class ChoosableModels:
    """The list, which is asked for when it is first needed.

    Args:
        client: returns whom to ask.
    """

    def __init__(self, client: Callable[[], Awaitable[Client]]) -> None:
        self._client = client
        self._rows: list[Row] | None = None

    async def get(self) -> list[Row]:
        """Return the rows of REST, those that settings name first."""
        if self._rows is None:
            self._rows = await (await self._client()).models()
        return self._rows


def model_words(row: Mapping[str, Any]) -> str:
    """Return price and window of a model.

    Example:
        >>> model_words({"input_usd": 3.0, "output_usd": 15.0, "window": 200_000})
        '$3 in, $15 out per 1M · 200k window'
    """
    given, made = row["input_usd"], row["output_usd"]
    if given is None or made is None:
        price = "price unknown"
    elif not given and not made:
        price = "free"
    else:
        price = f"${given:g} in, ${made:g} out per 1M"
    return f"{price} · {int(row['window']) // 1000}k window"


def few_words(row: Mapping[str, Any]) -> str:
    """Return the same where there is little room: a million tokens in, a million out, the window.

    Example:
        >>> few_words({"input_usd": 3.0, "output_usd": 15.0, "window": 200_000})
        '$3/$15 200k'
    """
    given, made = row["input_usd"], row["output_usd"]
    price = "$?" if given is None or made is None else f"${given:g}/${made:g}" if given or made else "free"
    return f"{price} {int(row['window']) // 1000}k"


def model_lines(rows: Sequence[Mapping[str, Any]], current: str, width: int) -> list[str]:
    """Return the list: the current one marked, what settings name first, at most `SHOWN` of the others."""
    others = [row for row in rows if not row["configured"]]
    shown = [row for row in rows if row["configured"] or row["name"] == current]
    shown += [row for row in others if row not in shown][:SHOWN]
    is_listed = not current or any(row["name"] == current for row in shown)
    lines = [] if is_listed else [f"* {harmless(current)}"]
    words = [model_words(row) for row in shown]
    room = width - 4 - max(map(len, words), default=0)
    longest = max((len(str(row["name"])) for row in shown), default=0)
    if longest > room:
        words = [few_words(row) for row in shown]
        room = width - 4 - max(map(len, words), default=0)
    for row, said in zip(shown, words, strict=True):
        mark = "*" if row["name"] == current else " "
        name = cut_path(harmless(str(row["name"])), max(room, SHORTEST_NAME))
        lines.append(cut(f"{mark} {name:{min(longest, room)}}  {said}", width))
    left = len(rows) - len(shown)
    more = f"{left} more; " if left > 0 else ""
    lines.append(f"{more}change with /model NAME; Tab completes")
    return lines
