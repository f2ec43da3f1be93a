"""Names of files and directories, found by a part of them while a person types (UI-73). Pure.

Here: which names fit and in which order. Not here: where names come from, what is typed around them.

A key must not be felt in a tree of 100,000 files: all names are one text, in the order in which they are
offered, so that each search is one pass of a search in C, which ends as soon as it has enough.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

MOST_SHOWN = 20
IN_ORDER_CHARS = 2_000_000  # of the nearest names: about 40,000 of them; parts are found in all


class _Lines:
    """Lines of one text, found by what they hold.

    Args:
        lines: without line breaks.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._text = "\n" + "\n".join(lines) + "\n"
        # Each line begins with the break before it.
        self._starts = list(accumulate((len(line) + 1 for line in lines), initial=0))

    def holding(self, part: str) -> Iterator[int]:
        """Yield the lines that hold `part`; those that begin with it, where it starts with a line break."""
        at = self._text.find(part)
        while at >= 0:
            index = bisect_right(self._starts, at) - 1
            if index == len(self._starts) - 1:
                return
            yield index
            at = self._text.find(part, self._starts[index + 1])

    def in_order(self, letters: str) -> Iterator[int]:
        """Yield the lines that hold the letters in their order, of the first `IN_ORDER_CHARS`."""
        steps = "".join(f"[^{re.escape(letter)}\n]*+{re.escape(letter)}" for letter in letters)
        # Possessive: no line is looked at twice, however it fails.
        pattern = re.compile(f"(?:\n(?!{steps})[^\n]*+)*+\n(?={steps})")
        at = 0
        while (found := pattern.match(self._text, at, IN_ORDER_CHARS)) is not None:
            index = bisect_right(self._starts, found.end() - 1) - 1
            yield index
            at = self._starts[index + 1]


class Names:
    """What a branch holds; directories end with a slash.

    Args:
        files: paths without a leading slash.
    """

    def __init__(self, files: Sequence[str]) -> None:
        directories: set[str] = set()
        for path in files:
            above = path.rpartition("/")[0]
            while above and above not in directories:
                directories.add(above)
                above = above.rpartition("/")[0]
        known = [*files, *(f"{path}/" for path in directories)]
        known.sort(key=lambda path: (path.rstrip("/").count("/"), len(path), path))
        self._known = known
        self._paths = _Lines([path.lower() for path in known])
        self._last = _Lines([path.rstrip("/").rpartition("/")[2].lower() for path in known])

    def __len__(self) -> int:
        return len(self._known)

    def find(self, typed: str, most: int = MOST_SHOWN) -> list[str]:
        """Return the names that fit best: the last part begins so, holds it, the path does, letters in order.

        Example:
            >>> Names(["src/app.py", "docs/wrap.md", "lib/a/p_p.py"]).find("app")
            ['src/app.py', 'lib/a/p_p.py']
        """
        wanted = typed.lower()
        found: dict[int, None] = {}
        for fitting in self._searches(wanted):
            for index in fitting:
                found[index] = None
                if len(found) >= most:
                    break
            if len(found) >= most:
                break
        return [self._known[index] for index in found]

    def inside(self, directory: str) -> list[str]:
        """Return the files below a directory."""
        return [path for path in self._known if path.startswith(f"{directory}/") and not path.endswith("/")]

    def _searches(self, wanted: str) -> Iterator[Iterator[int]]:
        if not wanted:
            yield iter(range(len(self._known)))
            return
        if "/" not in wanted:
            yield self._last.holding("\n" + wanted)
            yield self._last.holding(wanted)
        yield self._paths.holding("\n" + wanted)
        yield self._paths.holding(wanted)
        yield self._paths.in_order(wanted)
