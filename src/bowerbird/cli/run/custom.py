"""Custom commands at the prompt (UI-76).

Here: which there are now, the message that one becomes. Not here: their files (`skills/commands.py`).
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bowerbird.cli.client.protocol import Row
from bowerbird.cli.run.slash_lines import COMMANDS, Slash
from bowerbird.cli.terminal.exits import CliExit
from bowerbird.core.errors import BowerbirdError
from bowerbird.skills.commands import filled

if TYPE_CHECKING:
    from bowerbird.cli.run.chat import Chat


class CustomCommands:
    """The commands of a terminal's person and directory; a built-in one of the same name wins."""

    def __init__(self, chat: "Chat") -> None:
        self._chat = chat
        self._rows: dict[str, Row] = {}
        self._models: dict[str, str] = {}
        self.known = asyncio.Event()
        """Set when they were read once: the prompt is on screen before that."""

    @property
    def menu(self) -> Mapping[str, str]:
        """What the menu offers, with what it does."""
        custom = {
            name: f"{row['arguments']} {row['description']}".strip() for name, row in self._rows.items()
        }
        return COMMANDS | custom

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    async def read(self) -> None:
        """Read them again; where a server cannot be asked, those of before stay."""
        session = self._chat.session
        try:
            rows = await self._chat.client.custom_commands(None if session is None else session["id"])
        except (BowerbirdError, OSError):
            return
        self._rows = {row["name"]: row for row in rows if row["name"] not in COMMANDS}
        self.known.set()

    async def send(self, command: Slash) -> None:
        """Send what a command says; for its turn, on the model that it names."""
        chat, row = self._chat, self._rows[command.name]
        if not row["body"]:
            chat.screen.line(f"/{command.name}: {row['description']}", "yellow")
            return
        text = filled(str(row["body"]), command.argument)
        if row["tools"]:
            text += f"\n\nUse only these tools: {', '.join(row['tools'])}."
        if row["model"] and chat.screen.mode == "running":
            chat.screen.line(
                f"/{command.name} changes the model; it has to wait for the end of the turn", "yellow"
            )
            return
        before = ""
        if row["model"]:
            session = await chat.ensure_session()
            before = str(session["model"] or chat.model)
            await chat.client.change(session["id"], {"model": row["model"]})
        try:
            turn_id = await chat.send(text, named_in=command.argument)
        except (BowerbirdError, CliExit, OSError):
            await self._give_back(before)
            raise
        self._models[turn_id] = before

    async def ended(self, turn_id: str) -> None:
        """Give the session its own model back after a command's turn."""
        await self._give_back(self._models.pop(turn_id, ""))

    async def _give_back(self, before: str) -> None:
        if before and self._chat.session is not None:
            await self._chat.client.change(self._chat.session["id"], {"model": before})
