"""`!command`: a person's command on the branch, and its output for the conversation (UI-74).

Here: running one while the prompt stays, what is typed meanwhile, what the next message takes along; `#fact`.
Not here: where it runs (`sessions/own_commands.py`).
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from bowerbird.cli.client.protocol import Client
from bowerbird.cli.run.prompt_screen import ChatScreen
from bowerbird.cli.terminal.exits import CliExit
from bowerbird.cli.terminal.text import cut, harmless, one_line, plural
from bowerbird.core.errors import BowerbirdError

if TYPE_CHECKING:
    from bowerbird.cli.run.chat import Chat

SHOWN_LINES = 100


class TypedCommands:
    """The commands of one terminal, one at a time.

    Args:
        screen: where output is printed.
    """

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._outputs: list[str] = []
        self._held: list[str] = []
        self._stop: asyncio.Event | None = None

    @property
    def running(self) -> bool:
        """Whether one runs."""
        return self._stop is not None

    def stop(self) -> None:
        """End the one that runs."""
        if self._stop is not None:
            self._stop.set()
            self._screen.doing("stopping")

    def hold(self, text: str) -> None:
        """Keep a message until the command has ended, whose output goes along."""
        self._held.append(text)
        self._screen.queued.append(one_line(text, 100))

    def held(self) -> list[str]:
        """Return the messages that were kept, which are the caller's now."""
        held, self._held = self._held, []
        del self._screen.queued[: len(held)]
        return held

    def attached(self, text: str) -> str:
        """Return a message with the outputs since the last one; `sent` tells that it has arrived."""
        return "\n\n".join([text, *self._outputs])

    def sent(self) -> None:
        """Begin again: what was attached is in the conversation."""
        self._outputs.clear()

    async def run(self, client: Client, thread_id: str, command: str) -> None:
        """Run a command of a session and print what it prints."""
        screen = self._screen
        self._stop = asyncio.Event()
        screen.mode = "running"
        screen.doing(f"! {one_line(command, 60)}")
        try:
            found = await client.run_command(thread_id, command, self._stop)
        finally:
            self._stop = None
            screen.mode = "idle"
            screen.doing("")
        output = str(found["output"])
        _print(output, screen.line)
        code = int(found["exit_code"])
        mark, style = ("✓", "dim") if code == 0 else ("✗", "red")
        ended = "stopped" if found["stopped"] else f"exit code {code}"
        screen.line(f"{mark} {ended}; the output goes along with your next message", style)
        name = command.replace('"', "&quot;")
        self._outputs.append(f'<attachment name="! {name}">\n{output}\n</attachment>')


async def run_typed(chat: "Chat", command: str) -> None:
    """Run `!command`; what was typed meanwhile is sent afterwards."""
    screen = chat.screen
    if screen.mode == "running":
        screen.line("a command has to wait for the end of what runs (Ctrl+C stops it)", "yellow")
        return
    try:
        await chat.commands.run(chat.client, (await chat.ensure_session())["id"], command)
        await chat.refresh()
        chat.say_changed()
    except (BowerbirdError, CliExit, OSError) as error:
        screen.line(harmless(str(error)), "red")  # what was typed meanwhile is sent all the same
    screen.redraw()
    for text in chat.commands.held():
        screen.line("")
        screen.echo("> ", text)
        await chat.send(text)


async def remember(chat: "Chat", fact: str) -> None:
    """Add `#fact` to the memory."""
    forgotten = await chat.client.remember(None if chat.session is None else chat.session["id"], fact)
    chat.screen.line("remembered, from the next turn on (`bowerbird memory log` lists it)", "dim")
    for line in forgotten:
        shown = cut(harmless(line), chat.screen.width - 40)
        chat.screen.line(f"forgotten, the memory is full: {shown}", "yellow")


def _print(output: str, line: Callable[[str], None]) -> None:
    lines = output.expandtabs(8).split("\n")
    for text in lines[:SHOWN_LINES]:
        line(text)
    if len(lines) > SHOWN_LINES:
        line(f"… {plural(len(lines) - SHOWN_LINES, 'more line')}")
