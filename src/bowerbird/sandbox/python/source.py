"""A snippet made to give the repr of its last expression, and positions mapped back.

Here: pure text work. The repr is made by the interpreter that owns the value: an object
that crossed over would be shown as a proxy, and a large one would cross whole.
Not here: running anything.
"""

import ast

import msgspec

from bowerbird.sandbox.python.record import RESULT_CHARS, Frame

# An f-string instead of repr(): the snippet may have used that name for something else.
_OPEN = b"(lambda _v: None if _v is None else f'{_v!r}'[:%d])((\n" % (RESULT_CHARS + 1)
_CLOSE = b"\n))"


class Snippet(msgspec.Struct, frozen=True):
    """Code to feed and how its positions relate to what the caller wrote.

    Attributes:
        code: what the interpreter gets.
        written: what the caller wrote, line ends made `\\n`.
        first, last: lines of the last expression as written; 0 when nothing was changed.
        column: characters before the expression on its first line.
        shows_repr: the fed code ends in the repr itself, not in the value.
    """

    code: str
    written: str
    first: int = 0
    last: int = 0
    column: int = 0
    shows_repr: bool = False

    def original(self, frame: Frame) -> Frame:
        """Return `frame` at the place where the caller wrote it."""
        line, column = self._place(frame.line, frame.column)
        end_line, end_column = self._place(frame.end_line, frame.end_column)
        lines = self.written.split("\n")
        source = lines[line - 1] if 0 < line <= len(lines) else frame.source
        return msgspec.structs.replace(
            frame, line=line, column=column, end_line=end_line, end_column=end_column, source=source
        )

    def _place(self, line: int, column: int) -> tuple[int, int]:
        if not self.shows_repr or line < self.first:
            return line, column
        if line == self.first:  # the part of the line before the expression, or our own prefix
            return line, min(column, self.column + 1)
        written = min(line - 1, self.last)
        return written, column + (self.column if written == self.first else 0)


def showing_result(code: str) -> Snippet:
    """Return `code` changed so that its value is the repr of its last expression.

    Code that this Python cannot parse is left as it is: the interpreter that runs it
    knows its own grammar, and says what is wrong with it.

    Example:
        >>> showing_result("x = 1").code
        'x = 1'
        >>> showing_result("x = 1\\nx").shows_repr
        True
    """
    text = code.replace("\r\n", "\n").replace("\r", "\n")
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Snippet(text, text)
    if not body or not isinstance(body[-1], ast.Expr):
        return Snippet(text, text)
    node = body[-1]  # the statement: its span holds parentheses that the expression's leaves out
    first, last = node.lineno, node.end_lineno or node.lineno
    data = text.encode("utf-8", "surrogatepass")
    lines = data.split(b"\n")
    begin = sum(len(line) + 1 for line in lines[: first - 1]) + node.col_offset
    end = sum(len(line) + 1 for line in lines[: last - 1]) + (node.end_col_offset or 0)
    fed = data[:begin] + _OPEN + data[begin:end] + _CLOSE + data[end:]
    column = len(lines[first - 1][: node.col_offset].decode("utf-8", "surrogatepass"))
    return Snippet(fed.decode("utf-8", "surrogatepass"), text, first, last, column, shows_repr=True)
