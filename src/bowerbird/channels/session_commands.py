"""Commands about a chat's session: its turn, its mode, its model, what it knows (AS-15).

Here: `/start /new /stop /status /plan /model /compact /memory /skills`. Not here: changes and landing
(`review/review_commands.py`), the table itself (`commands.py`).
"""

from bowerbird.channels.accepting import QUESTION_FIRST, Desk
from bowerbird.channels.commands import Asked, Command, Commands
from bowerbird.channels.facts import Facts
from bowerbird.core.errors import NotFound, SessionError
from bowerbird.core.events import CUT_SHORT
from bowerbird.sessions.service import SessionService
from bowerbird.store.rows.sessions import SessionRow

MEMORY = "MEMORY.md"
MEMORY_BYTES = 64 * 1024
NOTHING_YET = "Nothing was said in this chat yet."
WELCOME = "Hello. Write to me, and I work on a branch of your files: nothing changes there until you land it."


class SessionCommands:
    """Those commands, for one channel."""

    def __init__(self, sessions: SessionService, desk: Desk, facts: Facts, tier: str = "") -> None:
        self._sessions = sessions
        self._desk = desk
        self._facts = facts
        self._tier = tier

    def add_to(self, commands: Commands) -> None:
        """Add them to a table."""

        async def start(_: Asked) -> str:
            return f"{WELCOME}\n\n{commands.help_text()}"

        commands.add(
            Command("start", "a welcome, and what there is", start, is_shown=False),
            Command("new", "begin a new conversation", self._new, in_order=True),
            Command("stop", "stop the turn; with TEXT, go on with that", self._stop, "[TEXT]"),
            Command("status", "model, mode, turn, queue, changes, cost", self._status),
            Command("plan", "switch plan mode on or off", self._plan, in_order=True, may_repeat=False),
            Command("model", "show the model, or choose a tier", self._model, "[TIER]", in_order=True),
            Command("compact", "summarise what was said", self._compact, in_order=True),
            Command("memory", "show MEMORY.md", self._memory),
            Command("skills", "the skills, and why some are hidden", self._skills),
        )

    async def _row(self, asked: Asked) -> SessionRow | None:
        known = await self._desk.known(asked.message.chat_id)
        return None if known is None else await self._sessions.find(known)

    async def _new(self, asked: Asked) -> str:
        await self._desk.reset(asked.message)
        return "This is a new conversation. What was said before is kept; a turn that runs ends there."

    async def _stop(self, asked: Asked) -> str | None:
        thread_id = await self._desk.known(asked.message.chat_id)
        if asked.argument:
            receipt = await self._desk.submit(
                asked.message, asked.argument, role=asked.role, kind="interrupt"
            )
            return None if receipt.open_request is None else QUESTION_FIRST
        if thread_id is None:
            return NOTHING_YET
        try:
            await self._sessions.cancel(thread_id)
        except SessionError:
            return "Nothing runs."
        return "Stopped. What was done is kept."

    async def _status(self, asked: Asked) -> str:
        row = await self._row(asked)
        lines = [f"Model: {self._facts.model(row) or 'none'}"]
        if row is None:
            return "\n".join([*lines, NOTHING_YET])
        info = await self._sessions.get(row.thread_id)
        lines.append(f"Mode: {'plan' if row.flags.get('enable_plan_mode') else 'normal'}")
        if self._tier:
            lines.append(f"Isolation: {self._tier}")
        waits = f", waits for {_WAITS.get(info.pending, info.pending)}" if info.pending else ""
        ended = f"stopped: {info.stop_reason}" if info.stop_reason in CUT_SHORT else info.status
        lines.append(f"Turn: {info.turns} ({ended if info.status == 'done' else info.status}{waits})")
        lines.append(f"Queue: {info.queued}")
        lines.append(f"Unlanded changes: {info.changed_files}")
        lines.append("Cost: not known" if info.cost is None else f"Cost: ${info.cost:.4f}")
        return "\n".join(lines)

    async def _plan(self, asked: Asked) -> str:
        thread_id = await self._desk.thread(asked.message)
        is_on = bool((await self._sessions.row(thread_id)).flags.get("enable_plan_mode"))
        await self._sessions.set_flags(thread_id, {"enable_plan_mode": not is_on})
        if is_on:
            return "Plan mode is off."
        return "Plan mode is on: I look and plan, and change nothing."

    async def _model(self, asked: Asked) -> str:
        tiers = self._facts.tiers()
        if not asked.argument:
            named = f"\nTiers: {', '.join(tiers)}" if tiers else ""
            return f"Model: {self._facts.model(await self._row(asked)) or 'none'}{named}"
        wanted = asked.argument.lower()
        if wanted not in tiers:
            known = ", ".join(tiers) or "none is set up (model_router)"
            return f"There is no such tier; there are: {known}"
        thread_id = await self._desk.thread(asked.message)
        await self._sessions.set_flags(thread_id, {"model": f"tier:{wanted}"})
        return f"This conversation runs on the tier {wanted} now."

    async def _compact(self, asked: Asked) -> str:
        thread_id = await self._desk.known(asked.message.chat_id)
        if thread_id is None:
            return NOTHING_YET
        await self._sessions.set_flags(thread_id, {"compact": asked.argument})
        return "What was said is summarised before the next answer."

    async def _memory(self, asked: Asked) -> str:
        thread_id = await self._desk.known(asked.message.chat_id)
        if thread_id is None:
            return NOTHING_YET
        branch = await self._sessions.branch(thread_id)
        try:
            content = await branch.read_bytes(MEMORY, length=MEMORY_BYTES)
        except NotFound:
            return f"There is no {MEMORY} yet."
        return content.decode("utf-8", "replace").strip() or f"{MEMORY} is empty."

    async def _skills(self, asked: Asked) -> str:
        found = await self._facts.skills(await self._row(asked))
        lines = [
            f"- {skill.name} – {f'hidden: {skill.hidden}' if skill.hidden else skill.about}"
            for skill in found
        ]
        return "\n".join(lines) or "There are no skills."


_WAITS = {
    "approval": "an approval",
    "plan": "a word about its plan",
    "effect": "a word about what happened",
    "budget": "a word about money",
    "user": "an answer",
}
