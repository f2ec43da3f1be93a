"""Lines as every tool for files counts them: they end at `\\n` and nowhere else (WS-26).

Here: splitting text. `str.splitlines` also splits at form feeds, carriage returns, U+2028 and others, so that
what a stranger wrote into a file could pass for lines of ours.
"""


def lines_of(text: str) -> list[str]:
    r"""Return the lines of a text without their ends; a last empty one is left out.

    >>> lines_of("a\x0cb\n\nc")
    ['a\x0cb', '', 'c']
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def whole_lines(text: str) -> list[str]:
    r"""Return the lines of a text with their ends.

    >>> whole_lines("a\u2028b\nc")
    ['a\u2028b\n', 'c']
    """
    *whole, last = text.split("\n")
    lines = [line + "\n" for line in whole]
    return [*lines, last] if last else lines
