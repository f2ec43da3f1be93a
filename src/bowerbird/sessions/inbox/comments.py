"""Review comments on a session's changes: one message that quotes what each is about (SV-28, UI-29, UI-45).

Here: the form of a comment and of the message. Not here: sending it, doors' wire forms.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from bowerbird.core.errors import NotFound, WorkspaceError
from bowerbird.core.lines import lines_of
from bowerbird.core.threads import to_thread
from bowerbird.workspace.tree.paths import lexical

if TYPE_CHECKING:
    from bowerbird.workspace import Branch, Diff

QUOTED_LINES = 20
QUOTED_CHARS = 2000


class Remark(Protocol):
    """A comment on lines of a changed file: `side` is the version before (`old`) or after (`new`)."""

    @property
    def path(self) -> str: ...

    @property
    def side(self) -> Literal["old", "new"]: ...

    @property
    def line(self) -> int: ...

    @property
    def end_line(self) -> int | None: ...

    @property
    def text(self) -> str: ...


async def comment_text(branch: "Branch", comments: Sequence[Remark]) -> str:
    """Return one message that says review comments, each with path, lines and a quote.

    Raises:
        NotFound: the branch neither has nor deletes what a comment is about.
    """
    deleted = set((await to_thread(branch.changes)).deleted)
    for path in dict.fromkeys(comment.path for comment in comments):
        if await branch.stat(path, follow=False) is None and lexical(path, branch.root) not in deleted:
            raise NotFound(f"there is no {path} to comment on", path)
    parts = ["Review comments on your changes:"]
    for comment in comments:
        last = max(comment.line, comment.end_line or comment.line)
        lines = f"line {comment.line}" if last == comment.line else f"lines {comment.line}-{last}"
        side = "" if comment.side == "new" else " (before the change)"
        quoted = await _quote(branch, comment.path, comment.side, comment.line, last)
        quote = "".join(f"> {line}\n" for line in quoted)
        parts.append(f"{comment.path} {lines}{side}:\n{quote}{comment.text}")
    return "\n\n".join(parts)


async def _quote(branch: "Branch", path: str, side: str, first: int, last: int) -> list[str]:
    """Return the lines that a comment is about, none where they cannot be shown."""
    last = min(last, first + QUOTED_LINES - 1)
    try:
        if side == "new":
            record = await branch.read_file(path, offset=first, limit=last - first + 1)
            lines = lines_of(str(record["content"]))
        else:
            lines = _old_lines(await to_thread(branch.diff, [path]), first, last)
    except WorkspaceError as error:
        if isinstance(error, NotFound):
            return []  # deleted, or never there: the comment itself says enough
        raise
    return [line[:QUOTED_CHARS] for line in lines[: last - first + 1]]


def _old_lines(diff: "Diff", first: int, last: int) -> list[str]:
    found: list[str] = []
    for row in diff.written:
        for hunk in row.hunks or ():
            number = hunk.old_start
            for line in lines_of(hunk.text):
                if line.startswith(("@@", "+", "\\")):
                    continue
                if first <= number <= last:
                    found.append(line[1:])
                number += 1
    return found
