"""The changes of a session as a chat shows them (AS-25, AS-26). Pure.

Here: lines and words of a summary, of conflicts and refusals. Not here: asking for a plan, buttons
(`review_cards.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bowerbird.workspace import LandingPlan

MOST_FILES = 20
_FORMATS = frozenset("\\`*_[]<>#~|")
_LETTERS = {"create": "A", "mkdir": "A", "delete": "D", "rmdir": "D"}


@dataclass(frozen=True, slots=True)
class Row:
    """One changed path.

    Attributes:
        letter: `A`, `M` or `D`. grade: `needs_accept`, `held` or `free`. why: of a flagged path.
        conflict: the user changed it, too, in a way that cannot be merged.
    """

    path: str
    letter: str
    added: int = 0
    removed: int = 0
    grade: str = "free"
    why: str = ""
    conflict: bool = False

    @property
    def line(self) -> str:
        """As it is shown."""
        mark = "" if self.grade == "free" else " ⚠"
        why = f" ({self.why})" if self.why else ""
        also = " – you changed it, too" if self.conflict else ""
        return f"- {self.letter}{mark} `{quoted(self.path)}` +{self.added} −{self.removed}{why}{also}"


@dataclass(frozen=True, slots=True)
class Summary:
    """What a landing of everything would do.

    Attributes:
        plan: names exactly what is shown. taint: where untrusted text came from. commits: there are some.
    """

    plan: str
    rows: tuple[Row, ...] = ()
    tainted: bool = False
    taint: tuple[str, ...] = ()
    commits: bool = False
    check: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing would land."""
        return not self.rows and not self.commits

    @property
    def flagged(self) -> tuple[str, ...]:
        """The paths that a person must name."""
        return tuple(row.path for row in self.rows if row.grade == "needs_accept")

    @property
    def conflicts(self) -> tuple[str, ...]:
        """The paths that both sides changed."""
        return tuple(row.path for row in self.rows if row.conflict)


def summary_of(plan: "LandingPlan", diff: Mapping[str, Any], check: Mapping[str, Any]) -> Summary:
    """Return a summary: flagged paths first, then by name.

    Args:
        diff: as `Review.diff` records it. check: as `Review.newest_check` does.
    """
    counts = {row["path"]: (int(row["added"]), int(row["removed"])) for row in diff.get("written", ())}
    rows: list[Row] = []
    sources: list[str] = []
    is_tainted = False
    for entry in plan.entries:
        if entry.ignored:
            continue
        added, removed = counts.get(entry.path, (0, 0))
        is_tainted = is_tainted or entry.tainted
        sources += [source for source in entry.taint if source not in sources]
        why = entry.reasons[0] if entry.grade != "free" and entry.reasons else ""
        rows.append(
            Row(
                path=entry.path.lstrip("/"),
                letter=_LETTERS.get(entry.op, "A" if entry.base is None else "M"),
                added=added,
                removed=removed,
                grade=entry.grade,
                why=why,
                conflict=entry.drift == "conflict",
            )
        )
    order = {"needs_accept": 0, "held": 1}
    rows.sort(key=lambda row: (order.get(row.grade, 2), row.path))
    return Summary(plan.id, tuple(rows), is_tainted, tuple(sources), plan.commits, _check(check, plan.id))


def text_of(summary: Summary) -> str:
    """Return a summary as Markdown."""
    rows = summary.rows
    added, removed = sum(row.added for row in rows), sum(row.removed for row in rows)
    lines = [f"**{plural(len(rows), 'file')} changed** (+{added} −{removed})"]
    lines += [row.line for row in rows[:MOST_FILES]]
    if len(rows) > MOST_FILES:
        lines.append(f"… and {len(rows) - MOST_FILES} more")
    if summary.commits:
        lines.append("Commits of the branch come along.")
    if summary.tainted:
        whence = f": {', '.join(map(quoted, summary.taint[:5]))}" if summary.taint else ""
        lines.append(f"⚠ Written after something from outside was read{whence}.")
    if summary.check:
        lines.append(summary.check)
    return "\n".join(lines)


def refusal(error: Exception, refused: Iterable[Mapping[str, str]]) -> str:
    """Return why nothing landed or came back, with the paths."""
    rows = list(refused)
    lines = [f"- `{quoted(str(row['path']).lstrip('/'))}`: {row['reason']}" for row in rows[:MOST_FILES]]
    if len(rows) > MOST_FILES:
        lines.append(f"… and {len(rows) - MOST_FILES} more")
    return "\n".join([f"**Nothing was changed.** {error}", *lines])


def merge_request(paths: Sequence[str]) -> str:
    """Return what the agent is asked when files cannot land because the user changed them, too."""
    names = "\n".join(f"- {path}" for path in paths)
    return (
        "I changed these files in my directory while you worked on them, and your changes cannot be merged "
        f"with mine:\n{names}\nRead them as they are now, and make your changes again so that mine stay."
    )


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    Example:
        >>> plural(1, "file"), plural(2, "file")
        ('1 file', '2 files')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def quoted(text: str) -> str:
    """Return a name that ends no quotation and no line."""
    return "".join("'" if char == "`" else char if char.isprintable() else "?" for char in text)[:200]


def plain(text: str) -> str:
    """Return what somebody else wrote, on one line, so that no sign of it formats anything.

    Example:
        >>> plain("[click](http://x)")
        '\\\\[click\\\\](http://x)'
    """
    return "".join(f"\\{char}" if char in _FORMATS else char for char in text if char.isprintable())[:400]


def _check(check: Mapping[str, Any], plan: str) -> str:
    if check.get("state") != "failed" or check.get("plan") != plan:
        return ""
    return f"⚠ The check failed: `{quoted(str(check.get('command', '')))}`"
