"""What tools did, briefly and in detail (AS-20). Pure.

Here: one line per call or group of calls, the pages behind *Details*. Not here: the answer's text
(`progress.py`), buttons, sending.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from bowerbird.channels.telegram.formatting import clean
from bowerbird.channels.telegram.markup import Run
from bowerbird.channels.telegram.pieces import html_piece
from bowerbird.channels.telegram.splitting import split_runs
from bowerbird.core.events import AssistantStep, SubagentEnd, SubagentStart, ToolIntent, ToolOutcome
from bowerbird.core.messages import ThinkingBlock, text_of

FAILED_LINES = 8
LONGEST_LINE = 200
MAX_PAGES = 20

_FILES = ("path", "file_path", "file", "filename", "source")
_PATTERNS = ("pattern", "query", "glob", "regex")


@dataclass(frozen=True, slots=True)
class Group:
    """Successive calls of one tool: `running`, `ok` or `failed`; only good ones are counted together."""

    tool: str
    about: str
    state: str
    count: int = 1
    output: str = ""
    call: str = ""


@dataclass(slots=True)
class ToolLines:
    """Grows with the events of a turn; holds the last groups only."""

    groups: list[Group]
    hide: Callable[[str], str] = str  # before anything is cut: half a secret would not be known as one
    dropped: int = 0

    most = 30

    def add(self, event: object) -> bool:
        """Note an event; whether it changed anything."""
        if isinstance(event, ToolIntent):
            self._append(Group(event.tool, about(event.input, self.hide), "running", call=event.call))
        elif isinstance(event, ToolOutcome):
            self._ended(event)
        elif isinstance(event, SubagentStart):
            said = f"{event.agent_type}: {one_line(self.hide(event.task), 70)}"
            self._append(Group("subagent", said, "running", call=event.subagent_id))
        elif isinstance(event, SubagentEnd):
            is_good = event.status == "completed"
            said = f"{event.agent_type}: {one_line(self.hide(event.summary), 70)}"
            self._replace(event.subagent_id, Group("subagent", said, "ok" if is_good else "failed"))
        else:
            return False
        return True

    def runs(self, most: int) -> list[Run]:
        """Return the last groups as text, with a line that counts the earlier ones."""
        shown = self.groups[-most:]
        earlier = self.dropped + sum(group.count for group in self.groups[: len(self.groups) - len(shown)])
        runs = [Run(f"… {earlier} earlier\n", ("i",))] if earlier else []
        for group in shown:
            runs += _group_runs(group)
        return runs

    def _ended(self, event: ToolOutcome) -> None:
        known = next((group for group in reversed(self.groups) if group.call == event.call), None)
        said = "" if known is None else known.about
        if event.shown_status == "ok":
            self._replace(event.call, Group(event.tool, said, "ok"))
        else:
            output = shortened(self.hide(text_of(event.content)), FAILED_LINES, 800)
            self._replace(event.call, Group(event.tool, said, "failed", output=output))

    def _replace(self, call: str, group: Group) -> None:
        at = next((n for n in reversed(range(len(self.groups))) if self.groups[n].call == call), None)
        if at is None:
            self._append(group)
        else:
            self.groups[at] = group
        self._collapse()

    def _append(self, group: Group) -> None:
        self.groups.append(group)
        self._collapse()
        while len(self.groups) > self.most:
            self.dropped += self.groups.pop(0).count

    def _collapse(self) -> None:
        kept: list[Group] = []
        for group in self.groups:
            last = kept[-1] if kept else None
            is_same = last is not None and (last.tool, last.state) == (group.tool, group.state) == (
                group.tool,
                "ok",
            )
            if is_same and last is not None and group.tool != "subagent":
                kept[-1] = Group(group.tool, group.about, "ok", last.count + group.count)
            else:
                kept.append(group)
        self.groups = kept


def about(arguments: Mapping[str, Any], hide: Callable[[str], str] = str) -> str:
    """Return what a call is about: a file's name, 60 characters of a pattern, 70 of anything else.

    Example:
        >>> about({"path": "src/a.py", "text": "x"})
        'a.py'
    """
    for key, value in arguments.items():
        if isinstance(value, str) and key in _FILES:
            return one_line(hide(PurePosixPath(value).name or value), 70)
    for key, value in arguments.items():
        if isinstance(value, str) and key in _PATTERNS:
            return one_line(hide(value), 60)
    texts = (value for value in arguments.values() if isinstance(value, str) and value)
    return next((one_line(hide(text), 70) for text in texts), "")


def detail_pages(events: Iterable[object], hide: Callable[[str], str] = str) -> list[str]:
    """Return what *Details* opens: parts for `send`, at most twenty.

    Args:
        hide: takes secrets out, before anything is cut.
    """
    runs: list[Run] = []
    for event in events:
        if isinstance(event, AssistantStep):
            for block in event.message.content:
                if isinstance(block, ThinkingBlock) and block.thinking.strip():
                    text = shortened(hide(block.thinking.strip()), 15, 1_500)
                    runs += [Run("💭 Thinking\n", ("b",)), Run(text, ("blockquote",)), Run("\n\n")]
        elif isinstance(event, ToolIntent):
            runs += [
                Run(f"🔧 {event.tool}", ("b",)),
                Run("\n"),
                Run(_arguments(event.input, hide), ("pre",)),
                Run("\n\n"),
            ]
        elif isinstance(event, ToolOutcome):
            mark = "✓" if event.shown_status == "ok" else "✗"
            text = shortened(hide(text_of(event.content).strip()), 25, 2_500)
            runs += [Run(f"{mark} {event.tool}", ("b",)), Run("\n"), Run(text, ("pre",)), Run("\n\n")]
        elif isinstance(event, SubagentEnd):
            text = shortened(hide(event.summary.strip()), 25, 2_500)
            runs += [Run(f"↳ {event.agent_type}: {event.status}\n", ("b",)), Run(text), Run("\n\n")]
    shown = [Run(clean(text), tags) for text, tags in runs]
    return [html_piece(part) for part in split_runs(shown, MAX_PAGES)]


def shortened(text: str, lines: int, characters: int) -> str:
    """Return the beginning of a text and how much is left out."""
    cut = text[:characters]
    kept = cut.split("\n")
    kept = kept[:lines]
    shown = "\n".join(kept)
    return shown if len(shown) == len(text) else f"{shown}\n… {len(text) - len(shown):,} more characters"


def one_line(text: str, most: int) -> str:
    """Return the beginning of a text without line ends."""
    flat = " ".join(text[: most * 4].split())
    return flat if len(flat) <= most and len(text) <= most * 4 else f"{flat[: most - 1]}…"


def _arguments(arguments: Mapping[str, Any], hide: Callable[[str], str]) -> str:
    lines = [hide(f"{key}: {value}") for key, value in arguments.items()]
    return shortened("\n".join(line[:2_500] for line in lines), 25, 2_500) or "(no arguments)"


def _group_runs(group: Group) -> Sequence[Run]:
    mark = {"running": "⏳", "ok": "✓", "failed": "✗"}[group.state]
    count = f" ×{group.count}" if group.count > 1 else ""
    runs = [Run(f"{mark} "), Run(group.tool, ("b",)), Run(count)]
    if group.about:
        runs.append(Run(f" {group.about}"))
    runs.append(Run("\n"))
    if group.output:
        output = "\n".join(line[:LONGEST_LINE] for line in group.output.split("\n"))
        runs += [Run(output, ("pre",)), Run("\n")]
    return runs
