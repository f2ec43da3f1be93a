"""The client of this machine's own records: an application in this process (R1).

Here: sessions, turns and review through the session service, in the form of REST. Not here: subagents,
memory, usage and tools (`local_rest.py`), what commands do with it.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.cli.client.agent_sessions import AGENT_SESSION, branch_of_agent
from bowerbird.cli.client.local_rest import LocalRest
from bowerbird.cli.client.preferences import Preferences
from bowerbird.cli.client.protocol import Fix, News, Row
from bowerbird.cli.terminal.exits import USAGE, CliExit
from bowerbird.cli.terminal.picking import branch_paths
from bowerbird.cli.turn.answer import Answer
from bowerbird.core.errors import ConfigError, InvalidWorkspace, NoModel, TurnRunning
from bowerbird.core.forms import decode
from bowerbird.core.threads import to_thread
from bowerbird.sessions import shown
from bowerbird.sessions.live.hub import Published, TurnMark
from bowerbird.sessions.values import NewSession
from bowerbird.sessions.wishes import NO_CHECK, CommitWish, ToLand

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.cli.terminal.run_options import RunOptions
    from bowerbird.cli.turn.wire_events import WireEvents
    from bowerbird.server.socket.files import BranchFiles
    from bowerbird.sessions.inbox.comments import Remark
    from bowerbird.sessions.live.landing_watch import Told
    from bowerbird.sessions.values import Receipt
    from bowerbird.workspace import Branch, Landing

DOOR = "cli"


class LocalClient(LocalRest):
    """Works with the sessions of one application.

    Args:
        application: open. directory: the command's. model: what new sessions run on.
    """

    is_server = False

    def __init__(self, application: "Application", directory: Path, model: str = "") -> None:
        super().__init__(application, directory)
        self.where = str(directory)
        self.model = model
        self.preferences = Preferences.of(application.loaded.settings, application.data_dir)
        self._review = self._sessions.review

    # ------------------------------------------------------------ which session

    async def find(self, given: str | None) -> str:
        """See `Client`."""
        if given and given.startswith(AGENT_SESSION):
            return branch_of_agent(given, await self.agent_conversation(given))
        if given:
            return (await self._sessions.get(given)).thread_id
        found = await self._sessions.list(workspace=self.where, limit=1)
        if not found:
            raise CliExit(
                USAGE,
                f'no session works on {self.where}; start one: bowerbird "what to do" '
                "(`bowerbird sessions --all` lists those of other directories)",
            )
        return found[0].thread_id

    def is_path(self, word: str) -> bool:
        """See `Client`."""
        return "/" in word or (self._directory / word).exists()

    def paths(self, words: Sequence[str]) -> list[str]:
        """See `Client`; relative ones start in the current directory."""
        return branch_paths(words, self._directory)

    async def session_for(self, options: "RunOptions") -> str:
        """See `Client`."""
        settings = self._application.loaded.settings
        flags = options.session_flags(settings.cli)
        if options.model or settings.cli.model:
            flags["model"] = options.model or settings.cli.model
        if options.resume is not None:
            found = await self._sessions.get(await self.find(options.resume))
            new = {name: value for name, value in flags.items() if found.flags.get(name) != value}
            if options.effort() is not None:
                new["thinking_effort"] = options.effort()
            if new:
                await self._sessions.set_flags(found.thread_id, new)
            return found.thread_id
        from bowerbird.agent.prompt import load_preset

        preset = options.preset or settings.cli.preset
        load_preset(preset or settings.agent.preset, Path(settings.agent.prompts_dir))  # before it is made
        new_session = NewSession(
            kind="cli",
            preset=preset,
            flags=flags,
            thinking_effort=options.effort(settings.cli),
            workspace=self.where,
            policy=options.land or settings.workspace.landing,
            hide=settings.workspace.hidden,
        )
        return (await self._sessions.create(new_session)).thread_id

    # ------------------------------------------------------------ sessions

    async def sessions(self, *, every: bool, words: str = "") -> list[Row]:
        """See `Client`."""
        here, asking = None if every else self.where, await self._sessions.asking()
        if words:
            from bowerbird.sessions.searching import SessionSearch

            hits = await self._sessions.part(SessionSearch).find(words, workspace=here)
            return [shown.hit(one, asked=one.info.thread_id in asking) for one in hits]
        found = await self._sessions.list(workspace=here, limit=None)
        return [shown.listed(info, asked=info.thread_id in asking) for info in found]

    async def show(self, thread_id: str, *, messages: bool = True) -> Row:
        """See `Client`."""
        row, maker = await self._sessions.row(thread_id), self._application.maker
        model = maker.model_of(row) or self._usual_model()
        now = await self._sessions.get(thread_id)
        found = await shown.conversation(
            self._sessions,
            row,
            model=model,
            window=await to_thread(maker.window_of, model),
            defaults=self._defaults,
            limit=0,
        )
        said = await self.messages(thread_id) if messages else []
        return {**found, "status": now.status, "messages": said}

    def _usual_model(self) -> str:
        """Return what a session without a model of its own runs on, "" where nothing can."""
        from bowerbird.app import choose_model

        try:
            return choose_model(self._application.loaded).name
        except (ConfigError, NoModel):
            return ""

    async def messages(self, thread_id: str) -> list[Row]:
        """See `Client`."""
        page, following = await shown.messages_page(self._sessions, thread_id, after=0, limit=1000)
        while following is not None:
            more, following = await shown.messages_page(
                self._sessions, thread_id, after=following, limit=1000
            )
            page += more
        return page

    async def change(self, thread_id: str, changes: dict[str, Any]) -> None:
        """See `Client`."""
        if changes.get("model") is not None:
            from bowerbird.app import choose_model

            changes = {**changes, "model": choose_model(self._application.loaded, changes["model"]).name}
        await self._sessions.set_flags(thread_id, changes)

    async def delete(self, thread_id: str) -> None:
        """See `Client`."""
        await self._sessions.delete(thread_id)

    async def fork(self, thread_id: str, turn_id: str | None) -> str:
        """See `Client`."""
        return (await self._sessions.fork(thread_id, turn_id)).thread_id

    # ------------------------------------------------------------ turns

    async def drive(self, thread_id: str) -> None:
        """See `Client`."""
        await self._application.drive(thread_id)

    async def send(self, thread_id: str, text: str, pictures: Sequence[bytes] = ()) -> Row:
        """See `Client`."""
        if not pictures:
            return _receipt(await self._sessions.submit(thread_id, text, door=DOOR))
        from bowerbird.sessions.inbox.pictures import picture_block

        blocks = [await picture_block(self._sessions.store, each) for each in pictures]
        content = [{"type": "text", "text": text}, *filter(None, blocks)]
        return _receipt(await self._sessions.submit(thread_id, {"content": content}, door=DOOR))

    async def comment(self, thread_id: str, remark: "Remark") -> Row:
        """See `Client`."""
        return await self.send(thread_id, await self._review.comment(thread_id, [remark]))

    async def take_back(self, thread_id: str, inbox_id: str) -> None:
        """See `Client`."""
        await self._sessions.take_back(thread_id, inbox_id)

    async def cancel(self, thread_id: str) -> str:
        """See `Client`."""
        return await self._sessions.cancel(thread_id)

    async def leave(self, thread_id: str, turn_id: str) -> None:
        """See `Client`; it stops with this process."""

    async def resume(self, thread_id: str) -> str:
        """See `Client`."""
        turns = await self._sessions.turns(thread_id)
        # A turn on record as running may be of a process that died; another's that lives is watched there.
        with suppress(TurnRunning):
            return (await self._sessions.resume(thread_id=thread_id)).turn_id
        return turns[-1].turn_id

    async def compact(self, thread_id: str, focus: str) -> None:
        """See `Client`."""
        await self._sessions.set_flags(thread_id, {"compact": focus})

    async def turns(self, thread_id: str) -> list[Row]:
        """See `Client`."""
        return [shown.turn_row(turn) for turn in await self._sessions.turns(thread_id)]

    async def turn(self, thread_id: str, turn_id: str) -> Row:
        """See `Client`."""
        turn = await self._sessions.turn(turn_id)
        return shown.turn_row(turn) | await shown.answered(self._sessions, turn)

    async def pending(self) -> list[Row]:
        """See `Client`."""
        return [shown.question(request) for request in await self._sessions.pending()]

    async def answer(self, thread_id: str, request_id: str, answer: Answer) -> None:
        """See `Client`."""
        await self._sessions.answer(
            request_id, answer.decision, feedback=answer.feedback, by=DOOR, calls=answer.calls
        )

    async def follow(
        self, thread_id: str, after: int, *, lines: bool = False, say: Callable[[str], None] | None = None
    ) -> AsyncGenerator[News]:
        """See `Client`."""
        make = _Lines(self, thread_id, after) if lines else None
        try:
            async for published in self._sessions.follow(thread_id, after):
                said = await make.of(published) if make is not None else ()
                yield News(published, said, usage=_usage(published, said))
        finally:
            if make is not None:
                await make.aclose()

    # ------------------------------------------------------------ review

    async def branch(self, thread_id: str) -> "Branch":
        """Return the session's open branch."""
        return await self._sessions.branch(thread_id)

    async def changed(self, thread_id: str) -> list[str]:
        """See `Client`."""
        changes = await to_thread((await self.branch(thread_id)).changes, ignored=False)
        return list(changes.paths)

    async def diff(self, thread_id: str, paths: Sequence[str] | None = None) -> Row:
        """See `Client`."""
        return await self._review.diff(thread_id, paths)

    async def git(self, thread_id: str) -> list[Row]:
        """See `Client`."""
        return (await self._review.git(thread_id)).record()

    async def patch(self, thread_id: str, paths: Sequence[str] | None = None) -> str:
        """See `Client`."""
        return await to_thread((await self.branch(thread_id)).unified, paths, ignored=False)

    async def plan(
        self, thread_id: str, paths: Sequence[str] | None = None, include: Sequence[str] = ()
    ) -> Row:
        """See `Client`."""
        return (await self._review.plan(thread_id, paths, include)).record()

    async def land(self, thread_id: str, wanted: ToLand, told: "Told | None" = None) -> Row:
        """See `Client`."""
        commit = wanted.commit and msgspec.structs.replace(
            wanted.commit, own_git=True
        )  # whoever runs this sits here
        wanted = msgspec.structs.replace(wanted, commit=commit, own_git=True)
        return _landing(await self._review.land(thread_id, wanted, actor=DOOR, door=DOOR, told=told))

    async def check(self, thread_id: str, begun: Callable[[str], None]) -> Row:
        """See `Client`."""
        command = self._sessions.settings.landing_check
        if not command:
            raise CliExit(USAGE, NO_CHECK)
        begun(command)
        return (await self._review.check(thread_id)).record()

    async def landings(self) -> list[Row]:
        """See `Client`."""
        return [_landing(each) for each in reversed(await self._review.landings(self.where))]

    async def undo(
        self, landing_id: str, *, force: bool, commit: bool = False, told: "Told | None" = None
    ) -> Row:
        """See `Client`."""
        wish = CommitWish(own_git=True) if commit else None
        undone = await self._review.undo(
            self.where, landing_id, force=force, actor=DOOR, door=DOOR, told=told, commit=wish
        )
        return _landing(undone)

    async def fix(self, landing_id: str, how: Fix) -> Row:
        """See `Client`."""
        return _landing(await self._review.fix(self.where, landing_id, how))

    async def discard(self, thread_id: str) -> Row:
        """See `Client`."""
        return (await self._review.discard(thread_id)).record()


class _Lines:
    """Makes the wire's frames of one session's events, the branch's files with the end of each turn."""

    def __init__(self, client: LocalClient, thread_id: str, after: int) -> None:
        self._client = client
        self._thread_id = thread_id
        self._after = after
        self._wire: WireEvents | None = None
        self._files: BranchFiles | None = None

    async def of(self, published: Published) -> list[str]:
        """Return the frames that viewers would be sent."""
        event = published.event
        wire = self._wire or await self._begun()
        if not isinstance(event, TurnMark) or published.thread_id != self._thread_id or self._files is None:
            return wire.lines(published)
        if not event.has_stopped:
            self._files.look_ahead()
            return wire.lines(published)
        return wire.lines(published, await self._files.closing())

    async def _begun(self) -> "WireEvents":
        from bowerbird.cli.turn.wire_events import WireEvents  # costs what the socket's frames cost
        from bowerbird.server.socket.files import BranchFiles

        shown = await self._client.show(self._thread_id, messages=False)
        self._wire = WireEvents(self._thread_id, self._after, plan_mode=bool(shown["enable_plan_mode"]))
        with suppress(InvalidWorkspace):  # its directory is gone
            self._files = BranchFiles(await self._client.branch(self._thread_id))
        return self._wire

    async def aclose(self) -> None:
        """Let go of the branch's files."""
        if self._files is not None:
            await self._files.aclose()


def _usage(published: Published, lines: Sequence[str]) -> Row | None:
    """Return what a turn used in the wire's words, where its end was put into them."""
    if not lines or not isinstance(published.event, TurnMark) or not published.event.has_stopped:
        return None
    return decode(lines[-1], Row).get("usage")


def _landing(landing: "Landing") -> Row:
    return {name: value for name, value in landing.record().items() if name != "workspace"}


def _receipt(receipt: "Receipt") -> Row:
    return {
        "inbox_id": receipt.inbox_id,
        "turn_id": receipt.turn_id,
        "position": receipt.position,
        "duplicate": receipt.duplicate,
        "open_request": receipt.open_request,
    }
