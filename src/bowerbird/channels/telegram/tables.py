"""A table as lines of equal columns for a font of fixed width (AS-16). Pure.

Here: widths, alignment, the lines. Not here: reading Markdown (`formatting.py`).
"""

from collections.abc import Sequence
from typing import Literal

from rich.cells import cell_len

Align = Literal["left", "center", "right"]

WIDEST = 40  # a longer cell does not widen the others: the text would grow with rows times width


def table_lines(rows: Sequence[Sequence[str]], aligns: Sequence[Align]) -> str:
    """Return the lines of a table; the first row is its head.

    Example:
        >>> print(table_lines([["a", "n"], ["日本", "10"]], ["left", "right"]))
        a    |  n
        -----+---
        日本 | 10
    """
    widths = [0] * len(aligns)
    for row in rows:
        for column, cell in enumerate(row[: len(aligns)]):
            widths[column] = max(widths[column], min(cell_len(cell), WIDEST))
    lines = [_line(row, widths, aligns) for row in rows]
    rule = "-+-".join("-" * max(width, 1) for width in widths)
    return "\n".join([lines[0], rule, *lines[1:]]) if lines else ""


def _line(row: Sequence[str], widths: Sequence[int], aligns: Sequence[Align]) -> str:
    cells = [_padded(cell, width, align) for cell, width, align in zip(row, widths, aligns, strict=False)]
    return " | ".join(cells).rstrip()


def _padded(cell: str, width: int, align: Align) -> str:
    missing = max(0, width - cell_len(cell))
    left = {"left": 0, "center": missing // 2, "right": missing}[align]
    return " " * left + cell + " " * (missing - left)
