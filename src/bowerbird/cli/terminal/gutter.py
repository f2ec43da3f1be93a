"""Output of a command on a terminal, beside a bar: nothing in it can pass for a line of ours (UI-53).

Here: text in, text to write out. Not here: running the command.
"""

import codecs
import re

from bowerbird.cli.terminal.text import cut, harmless, width_of

BAR = "│ "
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
_UNFINISHED = re.compile(r"(?:\r|\x1b(?:\[[0-9;:]{0,40})?)\Z")
_LINE_END = re.compile(r"\r\n?|\n")


class Gutter:
    r"""Makes what a command wrote fit to be shown, piece by piece: escapes written out, colours left away.

    Lines are broken here and not by the terminal, so that each begins with the bar.

    Example:
        >>> gutter = Gutter(20)
        >>> gutter.feed(b"a\x1b[31mb\x1b]0;x\x07") + gutter.close()
        '│ ab\\x1b]0;x\\x07\n'
    """

    def __init__(self, width: int) -> None:
        self._room = max(8, width - width_of(BAR))
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._column = 0
        self._has_begun = False

    def feed(self, chunk: bytes, *, final: bool = False) -> str:
        """Return what is to be written for a chunk of output."""
        text = self._pending + self._decoder.decode(chunk, final)
        rest = None if final else _UNFINISHED.search(text)
        self._pending = rest[0] if rest else ""
        text = _COLOURS.sub("", text[: len(text) - len(self._pending)])
        lines = [harmless(line) for line in _LINE_END.split(text)]
        out = [self._placed(lines[0])]
        for line in lines[1:]:
            out.append(self._ended())
            out.append(self._placed(line))
        return "".join(out)

    def close(self) -> str:
        """Return the rest, and the end of a line that has none."""
        rest = self.feed(b"", final=True)
        return rest + (self._ended() if self._has_begun else "")

    def _placed(self, line: str) -> str:
        out: list[str] = []
        while line:
            if not self._has_begun:
                out.append(BAR)
                self._has_begun = True
            room = self._room - self._column
            piece = line if width_of(line) <= room else cut(line, room + 1)[:-1]
            if not piece:
                out.append(self._ended())
                continue
            out.append(piece)
            self._column += width_of(piece)
            line = line[len(piece) :]
        return "".join(out)

    def _ended(self) -> str:
        bar = "" if self._has_begun else BAR.rstrip()
        self._column, self._has_begun = 0, False
        return bar + "\n"
