"""The commands of a chat: which there are, who may use them, how a line is read (AS-15).

Here: that table and the answer to what it does not have. Not here: what a command does
(`session_commands.py`, `review/review_commands.py`, and whoever adds one), when a command is carried out
(`router.py`).
"""

import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from bowerbird.channels.admission import Role, may
from bowerbird.channels.cards import Face
from bowerbird.channels.contract import IncomingMessage
from bowerbird.store.channels.cards import CardRow

OWNER_ONLY = "Only an owner of this assistant may do that."


@dataclass(frozen=True, slots=True)
class Asked:
    """A command of an admitted person.

    Attributes:
        argument: what follows its name. is_again: a process died while it was carried out before.
    """

    message: IncomingMessage
    role: Role
    name: str
    argument: str
    is_again: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What is said to a command: Markdown, perhaps as a card."""

    face: Face
    card: CardRow | None = None


Answer = Reply | str | None
Run = Callable[[Asked], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        about: what `/help` says. act: what a role must be allowed to do (`admission.may`), "" = anything.
        in_order: waits for what was sent before it, and what is sent after it waits.
        may_repeat: nothing bad comes of carrying it out twice, as after a crash.
        is_shown: `/help` and the service's menu name it.
    """

    name: str
    about: str
    run: Run
    arguments: str = ""
    act: str = ""
    in_order: bool = False
    may_repeat: bool = True
    is_shown: bool = True


class Commands:
    """The commands of one channel."""

    def __init__(self, commands: Iterable[Command] = ()) -> None:
        self._commands: dict[str, Command] = {}
        self.add(*commands)
        self.add(Command("help", "what there is", self._help))

    def add(self, *commands: Command) -> None:
        """Add commands; one of a name that is there takes its place."""
        self._commands |= {command.name: command for command in commands}

    @property
    def table(self) -> Mapping[str, Command]:
        """All commands by name."""
        return self._commands

    def is_ordered(self, text: str) -> bool:
        """Whether a command keeps its place among messages."""
        command = self._commands.get(parsed(text)[0])
        return command is not None and command.in_order

    async def run(self, message: IncomingMessage, role: Role, *, is_again: bool = False) -> Answer:
        """Carry a command out and return what to say.

        Raises:
            BowerbirdError: it was not done; the text says why.
        """
        name, argument = parsed(message.text)
        command = self._commands.get(name)
        if command is None:
            return self._unknown(name)
        if command.act and not may(role, command.act):
            return OWNER_ONLY
        if is_again and not command.may_repeat:
            return (
                f"Bowerbird was stopped while it carried out /{name}, and does not repeat that by itself. "
                "See /status and /diff, and send it again if it is still to be done."
            )
        return await command.run(Asked(message, role, name, argument, is_again))

    async def _help(self, asked: Asked) -> str:
        return self.help_text()

    def help_text(self) -> str:
        """Return the commands, one a line."""
        shown = [command for command in self._commands.values() if command.is_shown]
        lines = [f"/{c.name}{f' {c.arguments}' if c.arguments else ''} – {c.about}" for c in shown]
        return "\n".join(lines)

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._commands, n=1)
        meant = f" Did you mean /{near[0]}?" if near else ""
        return f"There is no command /{name[:32]}.{meant} /help lists them."


def parsed(text: str) -> tuple[str, str]:
    """Return a command's name in lower case and its argument. Pure.

    Example:
        >>> parsed("/Stop@bower_bot  and do this")
        ('stop', 'and do this')
    """
    words = text.strip().split(maxsplit=1)
    head = words[0] if words else ""
    name = head.removeprefix("/").partition("@")[0].lower()
    plain = "".join(char for char in name if char.isalnum() or char in "_:-")
    return plain, words[1].strip() if len(words) > 1 else ""
