"""The menu of the prompt: slash commands, paths after those that take them, names after an @ (UI-52, 73, 74).

Here: which words are offered where. Not here: how names fit (`names.py`), keys (`prompt_screen.py`).
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from bowerbird.cli.run.mentions import mention_of, typed_mention
from bowerbird.cli.run.models import model_words
from bowerbird.cli.run.names import Names
from bowerbird.cli.terminal.text import harmless


class LineCompleter(Completer):
    """Completes a line.

    Args:
        commands: slash commands there are now, with what they do. paths: that the branch changes.
        names: of the branch's files. models: that can be chosen.
        known: set when `commands` has the custom ones too.
    """

    def __init__(
        self,
        commands: Callable[[], Mapping[str, str]],
        paths: Callable[[], Iterable[str]],
        names: Callable[[], Awaitable[Names]],
        models: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]],
        known: asyncio.Event,
    ) -> None:
        self._commands = commands
        self._paths = paths
        self._names = names
        self._models = models
        self._known = known

    @staticmethod
    def opens(document: Document) -> bool:
        """Whether the menu opens by itself while this is typed."""
        before = document.text_before_cursor
        return (_is_command(before) and " " not in before) or typed_mention(before) is not None

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return what needs no waiting: commands, and the paths of the branch's changes."""
        before = document.text_before_cursor
        if not _is_command(before):
            return
        name, space, argument = before[1:].partition(" ")
        if not space:
            for command, meaning in self._commands().items():
                if command.startswith(name):
                    yield Completion(command, start_position=-len(name), display_meta=harmless(meaning))
        elif name in ("diff", "land"):
            word = argument.rsplit(" ", 1)[-1]
            for path in self._paths():
                if path.startswith(word):
                    yield Completion(path, start_position=-len(word))

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Return those, or names after an @."""
        before = document.text_before_cursor
        typed = typed_mention(before)
        if before.startswith("/model "):
            word = before.removeprefix("/model ").lstrip()
            for row in await self._models():
                if word in row["name"]:
                    shown = model_words(row)
                    yield Completion(row["name"], start_position=-len(word), display_meta=shown)
            return
        if typed is None:
            is_known = self._known.is_set()
            offered = list(self.get_completions(document, complete_event))
            for completion in offered:
                yield completion
            if _is_command(before) and not is_known:  # typed before they were read
                await self._known.wait()
                for completion in self.get_completions(document, complete_event):
                    if completion not in offered:
                        yield completion
            return
        start = len(before) - before.rindex("@")
        found = [name for name in (await self._names()).find(typed) if "\n" not in name]
        ends = " " if len(found) == 1 and not found[0].endswith("/") else ""  # nothing is left to choose
        for name in found:
            yield Completion(mention_of(name) + ends, start_position=-start, display=name)


def _is_command(before: str) -> bool:
    return before.startswith("/") and "\n" not in before


def takes_choice(buffer: Buffer) -> bool:
    """Whether Enter takes the name that is chosen in the menu; a chosen command runs at once."""
    state = buffer.complete_state
    chosen = state.current_completion if state is not None else None
    if chosen is None or not chosen.text.startswith("@"):
        return False
    buffer.complete_state = None
    if chosen.text.endswith("/"):
        buffer.start_completion(select_first=False)  # what is in the directory
    elif not chosen.text.endswith(" "):
        buffer.insert_text(" ")
    return True
