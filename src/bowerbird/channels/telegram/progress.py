"""A turn as one message shows it while it runs (AS-18, AS-20). Pure but for what it has seen.

Here: events in, HTML of at most one message out. Not here: when it is shown (`streaming.py`).

Only the end of a long text is shown: it is what is new, and its cost does not grow with the answer.
"""

from collections.abc import Callable

from bowerbird.channels.telegram.formatting import clean, markdown_runs
from bowerbird.channels.telegram.markup import Run, to_html, units
from bowerbird.channels.telegram.splitting import LIMIT, split_runs
from bowerbird.channels.telegram.tool_lines import ToolLines
from bowerbird.core.events import AssistantStep, MessageRestart, TextLive, ThinkingLive

SHOWN = 2_500  # characters of the answer's end
MOST_GROUPS = 8
EMPTY = "…"

Hide = Callable[[str], str]
"""Returns a text without secrets."""


class Progress:
    """What is known of one turn.

    Args:
        hide: takes secrets out of whatever is shown.
        show_tools: whether tools are named.
    """

    def __init__(self, hide: Hide, *, show_tools: bool = True) -> None:
        self._hide = hide
        self._show_tools = show_tools
        self._tools = ToolLines([], hide)
        self._message = ""
        self._text = ""
        self._base = 0  # characters of the message before `_text`
        self._is_thinking = False

    def add(self, event: object) -> bool:
        """Note an event; whether what is shown may have changed."""
        if isinstance(event, TextLive):
            self._is_thinking = False
            self._write(event.message_id, event.offset, event.content)
        elif isinstance(event, MessageRestart):
            if event.message_id == self._message:
                self._text, self._base = "", 0
        elif isinstance(event, AssistantStep):
            self._is_thinking = False
            self._text, self._base = event.message.text, 0
        elif isinstance(event, ThinkingLive):
            changed, self._is_thinking = not self._is_thinking, True
            return changed
        elif self._show_tools:
            return self._tools.add(event)
        else:
            return False
        return True

    @property
    def has_something(self) -> bool:
        """Whether there is more to show than that the turn runs."""
        return bool(self._text.strip() or self._tools.groups or self._is_thinking)

    def html(self) -> str:
        """Return the message as it is now: closed HTML within the limit."""
        above = self._above()
        room = LIMIT - units(to_html(above)) - 2
        parts = split_runs(markdown_runs(self._hide(self._end())), 1_000, room)
        runs = to_html(above)
        text = parts[-1] if parts else ""
        shown = f"{runs}\n{text}" if runs and text else runs or text
        return shown if shown.strip() else EMPTY

    def _above(self) -> list[Run]:
        runs = [Run(clean(self._hide(run.text)), run.tags) for run in self._tools.runs(MOST_GROUPS)]
        if self._is_thinking:
            runs.append(Run("💭 thinking\n", ("i",)))
        parts = split_runs(runs, 1_000, LIMIT // 2)
        # What does not fit is the oldest.
        return runs if len(parts) <= 1 else [Run("…\n"), *_last(runs)]

    def _write(self, message: str, offset: int, content: str) -> None:
        if message != self._message:
            self._message, self._text, self._base = message, "", offset
        at = offset - self._base
        if at < 0 or at > len(self._text):  # pieces were missed
            self._text, self._base, at = "", offset, 0
        self._text = self._text[:at] + content

    def _end(self) -> str:
        if len(self._text) <= SHOWN:
            return self._text
        at = self._text.find("\n", len(self._text) - SHOWN)
        begin = at + 1 if 0 <= at < len(self._text) - SHOWN // 2 else len(self._text) - SHOWN
        is_code = sum(line.startswith("```") for line in self._text[:begin].split("\n")) % 2
        return ("…\n```\n" if is_code else "…\n") + self._text[begin:]


def _last(runs: list[Run]) -> list[Run]:
    kept: list[Run] = []
    length = 0
    for run in reversed(runs):
        length += units(to_html([run]))
        if length > LIMIT // 2 - 10:
            break
        kept.insert(0, run)
    return kept
