"""Claude Code in a private chat of an owner: entering, talking, leaving (AS-58 … AS-62).

Here: `/cc`, its buttons, and what becomes of a message in the mode. Not here: how it looks
(`faces.py`), commands of the mode (`commands.py`), running it (`gateway/claude_code.py`).
"""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from bowerbird.channels.accepting import Desk
from bowerbird.channels.admission import Role
from bowerbird.channels.cards import Face, Outcome, Press, card_of
from bowerbird.channels.claude.commands import IN_MODE, ClaudeCommands
from bowerbird.channels.claude.faces import (
    PAGE,
    answer_text,
    compacted_text,
    entered,
    project_list,
    talk_list,
)
from bowerbird.channels.claude.states import ClaudeState, ClaudeStates
from bowerbird.channels.commands import Answer, Asked, Command, Commands, Reply
from bowerbird.channels.contract import IncomingMessage
from bowerbird.core.errors import StoreError, ToolError
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.gateway.claude_code import ClaudeAnswer, ClaudeCode, ClaudeRequest
from bowerbird.gateway.claude_projects import Project, by_prefix, has_talk, projects, talks
from bowerbird.sessions.delivery.messages import Parcel, ordered_ids
from bowerbird.sessions.service import SessionService
from bowerbird.store.rows.outbox import OutboxRow, insert_parcels

PRIVATE_ONLY = "Claude Code is for private chats with its owner."
LEFT = "You talk with me again."
GONE = "You left Claude Code meanwhile."
STOPPED = ClaudeAnswer("")  # whoever stopped it was told
NOT_REPEATED = (
    "Bowerbird was stopped while Claude Code worked on that, and does not repeat it by itself. "
    "The conversation is kept: send it again if it is still to be done."
)


@dataclass(frozen=True, slots=True)
class ClaudeRules:
    """What settings say, as it is now; `claude` is None where nothing can run it, and `why` says why.

    `warning` is said to whoever enters the mode.
    """

    claude: ClaudeCode | None
    projects_dir: Path
    permission_mode: str | None = None
    timeout_s: float = 1_800.0
    why: str = ""
    warning: str = ""


class ClaudeMode:
    """The mode in one channel; handles the cards of kind `cc`.

    Args:
        rules: returns what settings say now.
    """

    kind = "cc"
    deciding: frozenset[str] = frozenset()

    def __init__(
        self, sessions: SessionService, channel: str, desk: Desk, states: ClaudeStates,
        rules: Callable[[], ClaudeRules],
    ) -> None:  # fmt: skip
        self._sessions = sessions
        self._channel = channel
        self._desk = desk
        self._states = states
        self._rules = rules
        self._running: dict[str, asyncio.Task[ClaudeAnswer]] = {}
        self._commands = ClaudeCommands(self)

    # ------------------------------------------------------------ for the channel

    async def start(self) -> None:
        """Go on where people were."""
        await self._states.start()

    def add_to(self, commands: Commands) -> None:
        """Add `/cc`; `/stop` ends what Claude Code does, for whoever is in the mode."""
        usual = commands.table["stop"]

        async def stop(asked: Asked) -> Answer:
            if self.takes(asked.message, asked.role):
                return self.stop_run(asked.message.user_id)
            return await usual.run(asked)

        is_on = self._rules().claude is not None
        commands.add(
            Command("cc", "talk with Claude Code", self._cc, "[exit]", act="cc", is_shown=is_on),
            Command("stop", usual.about, stop, usual.arguments),
        )

    def takes(self, message: IncomingMessage, role: Role) -> bool:
        """Whether what a person writes goes to Claude Code."""
        is_there = self._states.of(message.user_id) is not None
        return is_there and message.is_private and role == "owner" and self._rules().claude is not None

    def is_ordered(self, message: IncomingMessage) -> bool:
        """Whether a message keeps its place; commands of the mode are answered at once."""
        if self._states.of(message.user_id) is None or not message.is_private:
            return True
        return not message.text.lower().startswith(IN_MODE) or self._commands.is_run(message.text)

    async def said(self, message: IncomingMessage, text: str) -> Answer:
        """Take what a person in the mode wrote; returns what to say at once.

        Raises:
            BowerbirdError: it was not done.
        """
        if text.lower().startswith(IN_MODE):
            return await self._commands.run(message, text)
        if self.state(message.user_id).working_on == message.dedupe_key:
            # Under the key of its answer: if that is owed already, this is not.
            await self._owe(message, NOT_REPEATED)
            return None
        answer = await self.ask(message, text)
        await self._owe(message, answer_text(answer), answer.thread_id)
        return None

    # ------------------------------------------------------------ for its commands

    @property
    def rules(self) -> ClaudeRules:
        """What settings say now."""
        return self._rules()

    def state(self, user_id: str) -> ClaudeState:
        """Return where a person in the mode is."""
        state = self._states.of(user_id)
        if state is None:
            raise ToolError(GONE)
        return state

    async def change(self, user_id: str, **values: object) -> None:
        """Change where a person in the mode is; what is not named stays, whatever changes it meanwhile."""
        if await self._states.change(user_id, lambda state: replace(state, **values)) is None:
            raise ToolError(GONE)

    def is_running(self, user_id: str) -> bool:
        """Whether Claude Code works for a person."""
        return user_id in self._running

    def stop_run(self, user_id: str) -> str:
        """End what Claude Code does for a person; returns what to say."""
        task = self._running.get(user_id)
        if task is None:
            return "Nothing runs."
        task.cancel()
        return "Stopped. What Claude Code did is done; the conversation is kept."

    async def compact(self, message: IncomingMessage) -> None:
        """Have the conversation summarised."""
        answer = await self.ask(message, "/compact", whole=True)
        await self._owe(message, compacted_text(answer), answer.thread_id)

    async def ask(self, message: IncomingMessage, text: str, *, whole: bool = False) -> ClaudeAnswer:
        """Send a text to the conversation of a person, under an id that is stored first."""
        user, rules = message.user_id, self._rules()
        if rules.claude is None:
            raise ToolError(rules.why)
        state = self.state(user)
        session_id = state.active_session_id or str(uuid.uuid4())
        is_there = await self._has(rules, user, state, session_id)
        is_new = not (state.is_begun or is_there)
        place = (state.active_project_path, state.active_session_id)

        def begun(now: ClaudeState) -> ClaudeState:
            now = replace(now, working_on=message.dedupe_key or None)
            if (now.active_project_path, now.active_session_id) != place:
                return now  # the person went elsewhere: this is asked where it was said
            return replace(now, active_session_id=session_id, is_begun=True)

        state = await self._states.change(user, begun)
        if state is None:
            raise ToolError(GONE)
        request = ClaudeRequest(
            text, place[0], session_id, is_new, state.active_model, state.active_effort,
            rules.permission_mode, rules.timeout_s, whole, user,
        )  # fmt: skip
        answer = await self._run(user, rules.claude, request)
        if answer.is_unknown and not is_new:  # its first run died before it kept anything
            answer = await self._run(user, rules.claude, changed(request, is_new=True))
        await self._note(user, session_id, answer)
        return answer

    # ------------------------------------------------------------ running

    async def _run(self, user: str, claude: ClaudeCode, request: ClaudeRequest) -> ClaudeAnswer:
        task = asyncio.ensure_future(claude.run(request))
        self._running[user] = task
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()  # this process ends, and the run with it
            raise
        finally:
            self._running.pop(user, None)
        return STOPPED if task.cancelled() else task.result()

    async def _note(self, user: str, session_id: str, answer: ClaudeAnswer) -> None:
        """Keep what an answer cost, unless the person went elsewhere meanwhile."""
        told = answer.session_id if answer.session_id and not answer.is_error else session_id

        def noted(now: ClaudeState) -> ClaudeState:
            if now.active_session_id != session_id:
                return now
            return replace(now, active_session_id=told, cost_usd=now.cost_usd + answer.cost_usd)

        await self._states.change(user, noted)

    async def _owe(self, message: IncomingMessage, text: str, changed: str | None = None) -> None:
        """Give an answer to the outbox, which delivers it whatever dies.

        Args:
            changed: the session whose changes are shown below it, as they can be landed.
        """
        if not text:
            return
        thread_id = await self._desk.thread(message)
        contents = [dict(part) for part in self._sessions.outbox.parts(self._channel, text)]
        if changed is not None:
            contents[-1]["review"] = changed
        numbered = list(enumerate(zip(ordered_ids(len(contents)), contents, strict=True)))

        def owe(connection: Connection) -> None:
            rows = [
                OutboxRow(
                    id=row_id, thread_id=thread_id, turn_id=None, door=self._channel, address=message.chat_id,
                    part=number, body=_body(content), dedupe_key=f"cc:{message.dedupe_key}:{number}",
                )
                for number, (row_id, content) in numbered
            ]  # fmt: skip
            insert_parcels(connection, rows)

        await self._sessions.store.write(owe)
        self._sessions.outbox.look()

    # ------------------------------------------------------------ entering and leaving

    async def _cc(self, asked: Asked) -> Answer:
        message, rules = asked.message, self._rules()
        if not message.is_private:
            return PRIVATE_ONLY
        if asked.argument.lower() == "exit":
            return await self._leave(message.user_id)
        if rules.claude is None:
            return rules.why
        found = await to_thread(projects, rules.projects_dir)
        face = project_list(found, 0, message.user_id)
        return (
            Reply(face, card_of(self._channel, message.chat_id, "", self.kind, {}))
            if face.rows
            else face.text
        )

    async def _leave(self, user_id: str) -> str:
        if self._states.of(user_id) is None:
            return "You are not in Claude Code."
        await self._states.drop(user_id)
        return LEFT

    async def pressed(self, press: Press) -> Outcome:
        """See `CardKind`."""
        user, rules = press.message.user_id, self._rules()
        if press.role != "owner" or not press.message.is_private:
            return Outcome(PRIVATE_ONLY)
        if press.verb == "leave":
            said = await self._leave(user)
            return Outcome(said, Face(said), is_decided=True)
        if rules.claude is None:
            return Outcome(rules.why)
        try:
            return await self._chosen(press, rules, user)
        except StoreError:
            raise
        except ToolError as error:
            return Outcome(str(error))

    async def _chosen(self, press: Press, rules: ClaudeRules, user: str) -> Outcome:
        body = press.card.body
        match press.verb:
            case "page" | "projects":
                found = await to_thread(projects, rules.projects_dir)
                return Outcome(face=project_list(found, _number(press.argument), user))
            case "project":
                return await self._talks(rules, press.argument, 0, user)
            case "talks":
                return await self._talks(rules, str(body.get("project", "")), _number(press.argument), user)
            case _:
                project = await self.project(str(body.get("project", "")))
                talk = press.argument if press.verb == "talk" else None
                state = ClaudeState(
                    project.name, project.path, active_session_id=talk, is_begun=talk is not None
                )
                if talk is not None and not await self._has(rules, user, state, talk):
                    raise ToolError("That conversation is gone.")
                await self._states.put(user, state)
                said = ("" if rules.claude is None else rules.claude.where, rules.warning)
                return Outcome("", entered(state, "\n".join(filter(None, said)), user))

    async def _talks(self, rules: ClaudeRules, name: str, page: int, user: str) -> Outcome:
        project = await self.project(name)
        own = None if rules.claude is None else await rules.claude.talks(user, project.path)
        if own is None:
            found, total = await to_thread(talks, rules.projects_dir, name, page * PAGE, PAGE)
        else:
            found, total = list(own[page * PAGE : (page + 1) * PAGE]), len(own)
        return Outcome(face=talk_list(project, found, page, total, user), body={"project": name})

    async def beginning_so(self, user: str, prefix: str) -> list[str]:
        """Return the ids of a person's conversations about the project they are in that begin so."""
        state, rules = self.state(user), self._rules()
        own = None if rules.claude is None else await rules.claude.talks(user, state.active_project_path)
        if own is not None:
            return [one.session_id for one in own if prefix and one.session_id.startswith(prefix)]
        return await to_thread(by_prefix, rules.projects_dir, state.active_project, prefix)

    async def _has(self, rules: ClaudeRules, user: str, state: ClaudeState, session_id: str) -> bool:
        own = None if rules.claude is None else await rules.claude.talks(user, state.active_project_path)
        if own is not None:
            return any(one.session_id == session_id for one in own)
        return await to_thread(has_talk, rules.projects_dir, state.active_project, session_id)

    async def project(self, name: str) -> Project:
        """Return a project by its directory or by what people call it; raises ToolError."""
        found: Sequence[Project] = await to_thread(projects, self._rules().projects_dir)
        exact = [one for one in found if name in (one.name, one.path)]
        called = exact or [one for one in found if one.label.lower() == name.lower()]
        if len(called) != 1:
            what = "more than one project is called" if called else "there is no project"
            raise ToolError(f"{what} {name[:80]}; /cc lists them")
        return called[0]


def _body(content: dict[str, object]) -> str:
    return msgspec.json.encode(Parcel("answer", content, now_iso())).decode()


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 0
