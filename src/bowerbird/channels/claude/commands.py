"""The commands inside of Claude Code's mode: `cc:model`, `cc:clear` and the like (AS-60).

Here: reading and carrying them out. Not here: the mode itself (`mode.py`), its words
(`faces.py`).
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from bowerbird.channels.claude.faces import HELP, MODELS, status_text
from bowerbird.channels.commands import Answer
from bowerbird.channels.contract import IncomingMessage
from bowerbird.core.errors import ToolError
from bowerbird.core.threads import to_thread
from bowerbird.gateway.claude_code import EFFORTS
from bowerbird.gateway.claude_projects import MEMORY, memory_of

if TYPE_CHECKING:
    from bowerbird.channels.claude.mode import ClaudeMode

IN_MODE = "cc:"
MODEL_CHARS = 100
MEMORY_CHARS = 12_000

Run = Callable[[IncomingMessage, str], Awaitable[Answer]]


class ClaudeCommands:
    """Those commands, for one channel."""

    def __init__(self, mode: "ClaudeMode") -> None:
        self._mode = mode
        self._table: dict[str, Run] = {
            "help": self._help, "model": self._model, "effort": self._effort, "compact": self._compact,
            "clear": self._clear, "resume": self._resume, "memory": self._memory, "project": self._project,
            "status": self._status, "cost": self._cost, "doctor": self._doctor,
        }  # fmt: skip

    @staticmethod
    def is_run(text: str) -> bool:
        """Whether a command asks Claude Code, and so waits for what was sent before it."""
        return _parsed(text)[0] == "compact"

    async def run(self, message: IncomingMessage, text: str) -> Answer:
        """Carry a command out; raises BowerbirdError where it cannot."""
        name, argument = _parsed(text)
        command = self._table.get(name)
        if command is None:
            names = ", ".join(f"`cc:{known}`" for known in self._table)
            return f"There is no such command; there are {names}."
        return await command(message, argument)

    async def _help(self, message: IncomingMessage, argument: str) -> Answer:
        del message, argument
        return HELP

    async def _model(self, message: IncomingMessage, argument: str) -> Answer:
        state = self._mode.state(message.user_id)
        if not argument:
            return f"Model: {state.active_model or 'its own'}. Choose: {', '.join(MODELS)}, or an id."
        wanted = argument.lower() if argument.lower() in MODELS else argument
        if len(wanted) > MODEL_CHARS or not all(char.isalnum() or char in "-._:[]/@" for char in wanted):
            return "That is no name of a model."
        if wanted.startswith("-"):
            return "That is no name of a model."
        await self._mode.change(message.user_id, active_model=wanted)
        return f"Claude Code runs on {wanted} now."

    async def _effort(self, message: IncomingMessage, argument: str) -> Answer:
        state, wanted = self._mode.state(message.user_id), argument.lower()
        if not wanted:
            return f"Effort: {state.active_effort or 'its own'}. Choose: {', '.join(EFFORTS)}."
        if wanted not in EFFORTS:
            return f"There is no such effort; there are {', '.join(EFFORTS)}."
        await self._mode.change(message.user_id, active_effort=wanted)
        return f"Claude Code works with effort {wanted} now."

    async def _compact(self, message: IncomingMessage, argument: str) -> Answer:
        del argument
        if not self._mode.state(message.user_id).is_begun:
            return "There is nothing to compact yet."
        await self._mode.compact(message)
        return None

    async def _clear(self, message: IncomingMessage, argument: str) -> Answer:
        del argument
        await self._mode.change(message.user_id, active_session_id=None, is_begun=False, cost_usd=0.0)
        return "Your next message begins a new conversation. The one before is kept: cc:resume."

    async def _resume(self, message: IncomingMessage, argument: str) -> Answer:
        if not argument:
            return "Say how its id begins: cc:resume PREFIX. /cc lists them."
        found = await self._mode.beginning_so(message.user_id, argument)
        if len(found) != 1:
            return "More than one conversation begins so." if found else "No conversation begins so."
        await self._mode.change(message.user_id, active_session_id=found[0], is_begun=True, cost_usd=0.0)
        return f"You go on with {found[0]}."

    async def _memory(self, message: IncomingMessage, argument: str) -> Answer:
        del argument
        text = await to_thread(memory_of, self._mode.state(message.user_id).active_project_path)
        return text[:MEMORY_CHARS] or f"No {MEMORY} can be read in this project from here."

    async def _project(self, message: IncomingMessage, argument: str) -> Answer:
        if not argument:
            return "Say which one: cc:project NAME. /cc lists them."
        project = await self._mode.project(argument)
        await self._mode.change(
            message.user_id, active_project=project.name, active_project_path=project.path,
            active_session_id=None, is_begun=False, cost_usd=0.0,
        )  # fmt: skip
        return f"You are in `{project.path}` now; your next message begins a conversation."

    async def _status(self, message: IncomingMessage, argument: str) -> Answer:
        del argument
        user = message.user_id
        return status_text(self._mode.state(user), self._mode.is_running(user))

    async def _cost(self, message: IncomingMessage, argument: str) -> Answer:
        del argument
        return f"This conversation cost ${self._mode.state(message.user_id).cost_usd:.4f} from here."

    async def _doctor(self, message: IncomingMessage, argument: str) -> Answer:
        del argument
        state, rules = self._mode.state(message.user_id), self._mode.rules
        if rules.claude is None:
            raise ToolError(rules.why)
        there = await to_thread((rules.projects_dir / state.active_project).is_dir)
        lines = [*await rules.claude.doctor()]
        lines.append(
            f"{'✓' if there else '✗'} conversations in `{rules.projects_dir / state.active_project}`"
        )
        lines.append(f"Permission mode: {rules.permission_mode or 'its own'}")
        return "\n".join(lines)


def _parsed(text: str) -> tuple[str, str]:
    words = text.strip()[len(IN_MODE) :].split(maxsplit=1)
    return (words[0].lower() if words else "help", words[1].strip() if len(words) > 1 else "")
