"""The prompt of the interactive session: one line that stays while a turn runs (UI-52 … UI-55).

Here: keys, the lines above the input, completion, printing above the prompt. Not here: what
typed lines mean (`chat.py`), what events become (`turn/painter.py`).
"""

import asyncio
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app, in_terminal, run_in_terminal
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout

from bowerbird.cli.run.completer import LineCompleter
from bowerbird.cli.run.keyboard import (
    ELSEWHERE,
    ESC_S,
    ESCAPED_S,
    FOCUSED,
    TABS,
    WRITING,
    Keyboard,
    as_given,
    bind_lines,
    bind_stopping,
    bind_suspending,
    end_search,
    kept_lines,
)
from bowerbird.cli.run.pictures import Pictures
from bowerbird.cli.run.prompt_words import HINTS, PROMPTS, Mode
from bowerbird.cli.terminal.notifying import How, Notifier
from bowerbird.cli.terminal.terminal import Spinner, Terminal
from bowerbird.cli.terminal.text import above_and_before, cut, echoed, harmless, wrapped

PENDING_LINES = 4
CALL_LINES = 5
ECHO_LINES = 20
TWICE_S = 1.0


class Leave(Exception):
    """The person leaves."""


class ChatScreen:
    """Reads lines and draws above them; also a `Sink` for the painter.

    Args:
        terminal: streams and colours.
        history_file: typed lines are kept here, 0600; None = only in memory.
        on_stop: called for Ctrl+C while a turn runs.
        completer: of what is typed. notify: what tells a person who looks elsewhere.

    Attributes:
        shown: set once the first prompt is on the screen.
    """

    def __init__(
        self,
        terminal: Terminal,
        *,
        history_file: Path | None,
        vi_mode: bool,
        on_stop: Callable[[], None],
        completer: LineCompleter,
        notify: How = "auto",
    ) -> None:
        self.notifier = Notifier(self._raw, notify, os.environ)
        self.mode: Mode = "idle"
        self.question = ""
        self.queued: list[str] = []
        self.status: Callable[[], str] = str
        self.shown = asyncio.Event()
        self._terminal, self._on_stop = terminal, on_stop
        self._work: asyncio.Future[None] | None = None
        self._pressed, self._interrupted_at, self._is_left = 0, 0.0, False
        self._spinner: Spinner | None = None
        self._workers: dict[str, Spinner] = {}
        self._calls: dict[str, tuple[Spinner, str]] = {}
        self._pending = self._step = self._aside = self._begun = ""
        self._unprinted: list[str] = []
        self._printing: asyncio.Task[None] | None = None
        self._lent = asyncio.Lock()
        self._given: list[Any] | None = None
        self.pictures = Pictures(self.line)
        self._prompt: PromptSession[str] = PromptSession(
            input=Keyboard(sys.stdin) if sys.stdin.isatty() else None,
            message=self._message,
            multiline=True,
            history=kept_lines(history_file),
            vi_mode=vi_mode,
            completer=completer,
            complete_while_typing=False,
            key_bindings=self._keys(),
            input_processors=[TABS],
            bottom_toolbar=self._toolbar,
            placeholder=lambda: ANSI(Terminal.styled(HINTS.get(self.mode, ""), "dim", terminal.out)),
            refresh_interval=0.1,
            prompt_continuation=lambda width, _line, _wrapped: " " * max(width - 2, 0) + "… ",
            enable_history_search=True,
            erase_when_done=True,  # what was typed is printed by `echo`, without what stood above it
        )
        buffer = self._prompt.default_buffer
        # Of its own, because the searching of the history turns the session's off.
        buffer.complete_while_typing = Condition(
            lambda: self.mode != "asking" and completer.opens(buffer.document)
        )
        self._prompt.app.timeoutlen, self._prompt.app.ttimeoutlen = ESC_S, ESCAPED_S
        # A terminal that cannot report its cursor works all the same; a warning would only be in the way.
        self._prompt.app.renderer.cpr_not_supported_callback = None

    async def read(self) -> str:
        """Return the next line; raises Leave for Ctrl+D, or Ctrl+C twice."""
        async with self._lent:  # a pager that the last line began has the keys and the screen
            await self.drained()
        if self._is_left:
            raise Leave
        self._pressed = 0
        with patch_stdout(raw=True):
            try:  # a signal is ours to take: the prompt's own way loses one that comes while it ends
                return await self._prompt.prompt_async(pre_run=self._begins, handle_sigint=False)
            except (EOFError, KeyboardInterrupt):
                raise Leave from None

    def _begins(self) -> None:
        self.give_back()
        asyncio.get_running_loop().call_soon(self.shown.set)  # it is drawn in this step

    async def carried_out(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do what a line asks for; return whether Ctrl+C came since it was typed, which is for what it began.

        Raises:
            Leave: it came twice.
        """
        self._work = asyncio.ensure_future(work)
        try:
            await self._work
            await asyncio.sleep(0)  # what it began begins
        except asyncio.CancelledError:
            if self._pressed > 1:
                raise Leave from None
            self._work.cancel()
            raise
        finally:
            self._work = None
        return self._pressed > 0

    def _signalled(self) -> None:
        """Take Ctrl+C as a signal: where no prompt takes the key it is for the line that was typed last."""
        prompt = self._prompt.app
        if self._work is None and self.mode in ("running", "asking"):
            self._on_stop()
        elif self._work is None and prompt.is_running and not prompt.is_done:
            self._interrupt()
        else:
            self._pressed += 1
            if self._pressed > 1 and self._work is not None:
                self._work.cancel()

    @contextmanager
    def held(self) -> Generator[None]:
        """Keep what is typed between two prompts as it was typed: not echoed, not edited by the terminal.

        Else Enter would arrive as another character and Ctrl+D not at all. Ctrl+C is a signal, and taken.
        """
        try:
            before = self._given = termios.tcgetattr(sys.stdin)
        except (termios.error, ValueError, OSError):
            yield
            return
        now = list(before)
        now[0] &= ~termios.ICRNL
        now[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(sys.stdin, termios.TCSANOW, now)
        loop, handler = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
        takes_signals = threading.current_thread() is threading.main_thread()
        if takes_signals:
            loop.add_signal_handler(signal.SIGINT, self._signalled)
        self.notifier.watch(True)
        try:
            yield
        finally:
            self.notifier.watch(False)
            if takes_signals:
                loop.remove_signal_handler(signal.SIGINT)
                signal.signal(signal.SIGINT, handler)
            with suppress(termios.error):
                termios.tcsetattr(sys.stdin, termios.TCSANOW, before)

    async def lend(self, show: Callable[[], None]) -> None:
        """Take the prompt away while `show` uses the terminal, as a pager does."""

        def shown() -> None:
            self.notifier.watch(False)
            with as_given(self._given):
                show()
            self.notifier.watch(True)

        async with self._lent:
            await run_in_terminal(shown, in_executor=True)

    def set_aside(self) -> None:
        """Keep what is being typed for after a question: it is no answer to it."""
        buffer = self._prompt.default_buffer
        end_search(self._prompt.app)
        if self._prompt.app.is_running and buffer.text:
            self._aside = buffer.text
            buffer.reset()

    def begin_line(self, text: str) -> None:
        """Begin the line that is typed next with `text`."""
        if self._prompt.app.is_running and not self._prompt.app.is_done:
            self._prompt.default_buffer.insert_text(text)
        else:
            self._begun = text

    def give_back(self) -> None:
        """Put back what was set aside, once no question is asked and nothing else is typed."""
        if self._begun:
            begun, self._begun = self._begun, ""
            self._prompt.default_buffer.insert_text(begun)
        if self._aside and self.mode != "asking" and not self._prompt.default_buffer.text:
            self._prompt.default_buffer.insert_text(self._aside)
            self._aside = ""

    # ------------------------------------------------------------ sink

    @property
    def width(self) -> int:
        """Columns now."""
        return self._terminal.width

    @property
    def prompt(self) -> str:
        """What stands before the typed text now."""
        return self.question or PROMPTS[self.mode]

    def echo(self, prompt: str, text: str) -> None:
        """Print what was typed at `prompt`, as it stays on the screen."""
        if not self._terminal.out.cursor:
            return  # what was typed could not be erased
        lines, left_out = echoed(prompt, text, width=self.width, most=ECHO_LINES)
        for line in lines:
            self.line(line, "bold")
        if left_out:
            self.line(left_out, "dim")

    def answer(self, text: str) -> None:
        """Print a drawn block above the prompt."""
        self._pending = ""
        self._print(text)

    def line(self, text: str, style: str = "") -> None:
        """Print a line above the prompt, broken between words where it is longer than the screen is wide."""
        for piece in wrapped(harmless(text), self.width):
            self._print(Terminal.styled(piece, style, self._terminal.out) + "\n")

    def warn(self, text: str) -> None:
        """Print a line above the prompt."""
        self.line(text, "yellow")

    def doing(self, action: str) -> None:
        """Set what the spinner says."""
        if not action:
            self._spinner = None
            self._workers.clear()
            self._calls.clear()
        elif self._spinner is None or self._spinner.action != action:
            self._spinner = Spinner.of(action)
        self.redraw()

    def pending(self, text: str) -> None:
        """Show the beginning of an unfinished block above the prompt."""
        self._pending = text

    def running(self, call: str, what: str, last: str = "") -> None:
        """Show a call that runs, with the last line of its output, until it has ended."""
        if what:
            began = self._calls[call][0] if call in self._calls else Spinner.of(what)
            self._calls[call] = (began, last)
        else:
            self._calls.pop(call, None)
        self.redraw()

    def worker(self, handle: str, doing: str) -> None:
        """Keep one line for a subagent, updated in place, until it has ended."""
        if doing:
            self._workers[handle] = Spinner.of(doing)
        else:
            self._workers.pop(handle, None)
        self.redraw()

    def show_step(self, bar: str) -> None:
        """Show how far a long work is, in place of the status; "" when it is done. Of any thread."""
        self._step = bar

    def redraw(self) -> None:
        """Draw the prompt anew, if it is on the screen."""
        if self._prompt.app.is_running:
            self._prompt.app.invalidate()

    def leave(self) -> None:
        """End the reading of lines, also where the next prompt has not begun."""
        self._is_left = True
        if self._prompt.app.is_running and not self._prompt.app.is_done:
            self._prompt.app.exit(exception=EOFError)

    def _print(self, text: str) -> None:
        self._unprinted.append(text)
        if self._printing is None or self._printing.done():
            self._printing = asyncio.get_running_loop().create_task(self._print_above())

    async def _print_above(self) -> None:
        """Print what has come, above the prompt if there is one: in the loop, so that order is kept."""
        while self._unprinted:
            async with in_terminal():
                text = "".join(self._unprinted)
                self._unprinted.clear()
                self._terminal.write(text)

    async def drained(self) -> None:
        """Wait until everything is printed."""
        if self._printing is not None:
            await self._printing

    # ------------------------------------------------------------ what stands above the input

    def _message(self) -> ANSI:
        # An idle prompt that is drawn ten times a second takes three times as much of a core.
        self._prompt.app.refresh_interval = 0.1 if self.mode == "running" or self._step else 1.0
        width = max(self.width - 1, 10)
        asked, prompt = above_and_before(self.prompt, width)
        lines, dim = list[str](), self._terminal.out
        if self.mode == "running" and dim.cursor:  # else it would stay there, and be read out
            tail = [line for line in harmless(self._pending).expandtabs(4).split("\n") if line.strip()]
            lines += [Terminal.styled(cut(line, width), "dim", dim) for line in tail[-PENDING_LINES:]]
            lines += [cut(f"    {worker.frame()}", width) for worker in self._workers.values()]
            for spinner, last in list(self._calls.values())[:CALL_LINES]:
                lines.append(Terminal.styled(spinner.frame(width=width), "cyan", dim))
                lines += [Terminal.styled(cut(f"    {last}", width), "dim", dim)] if last else []
            if self._spinner is not None and not self._calls:
                lines.append(Terminal.styled(cut(self._spinner.frame(), width), "cyan", dim))
            lines += [Terminal.styled(cut(f"queued: {text}", width), "dim", dim) for text in self.queued[-3:]]
        return ANSI("\n".join([*lines, *(Terminal.styled(line, "bold", dim) for line in (*asked, prompt))]))

    def _toolbar(self) -> ANSI:
        stop = " Ctrl+C stops ·" if self.mode == "running" else ""
        return ANSI(cut(self._step or stop + self.status(), max(self.width - 1, 10)))

    # ------------------------------------------------------------ keys

    def _keys(self) -> KeyBindings:
        bind_lines(keys := KeyBindings())

        @keys.add("c-c", filter=WRITING, eager=True)  # at a dumb terminal the prompt has one that leaves
        def interrupt(_event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - registered
            self._interrupt()

        @keys.add(FOCUSED, save_before=lambda _: False)
        @keys.add(ELSEWHERE, save_before=lambda _: False)
        def focus(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - registered
            self.notifier.is_focused = event.key_sequence[0].key == FOCUSED

        self.pictures.bind(keys)
        bind_suspending(keys, self.lend)
        bind_stopping(keys, lambda: self.mode in ("running", "asking"), self._on_stop)
        return keys

    def _raw(self, text: str) -> None:
        output = self._prompt.app.output
        output.write_raw(text)
        output.flush()

    def _interrupt(self) -> None:
        """Take Ctrl+C at the prompt."""
        now, prompt = time.monotonic(), self._prompt
        if self.mode in ("running", "asking"):
            now = 0.0  # it stops the turn; leaving takes two more at the prompt
            self._on_stop()
        elif prompt.default_buffer.text:
            prompt.default_buffer.reset()
        elif now - self._interrupted_at <= TWICE_S:
            get_app().exit(exception=KeyboardInterrupt)
        else:
            self.line("Ctrl+C again leaves; so does Ctrl+D.", "dim")
        self._interrupted_at = now
