"""Task boards and lists of a process's sessions: their tools, copies and events (DE-32 … DE-45).

Here: what a turn gets of them, and who is shown a changed board. Not here: boards and lists themselves
(`bowerbird.boards`), the tools' texts.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bowerbird.boards.boards import BoardKey, Boards, BoardState, board_of
from bowerbird.boards.rules import board_lines
from bowerbird.boards.todos import Todos, todo_lines
from bowerbird.boards.tool_calls import BoardToolCalls
from bowerbird.core.errors import BowerbirdError
from bowerbird.core.events import Notice, TaskUpdate
from bowerbird.core.tasks import Tasks
from bowerbird.sessions.live.hub import Published
from bowerbird.sessions.parts import SessionPart
from bowerbird.store.rows.board import boards_of_threads, revisions
from bowerbird.tools.together.board import board_tools
from bowerbird.tools.together.todo import todo_tools

if TYPE_CHECKING:
    from bowerbird.agent.turn import TurnRun
    from bowerbird.sessions.live.hub import Live
    from bowerbird.sessions.turn_maker import TurnContext
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.store.store import Store
    from bowerbird.tools import Tool

_log = logging.getLogger(__name__)

EVERY_S = 0.25  # at most four events a second (DE-42), and how often other processes are looked after
MOST_KNOWN = 1_000  # boards and sessions remembered, beyond those that somebody looks at


class _Viewed(msgspec.Struct):
    """What a session's viewers were shown last."""

    board: str
    revision: int = 0
    at: float = float("-inf")
    timer: asyncio.TimerHandle | None = None


class _Known(msgspec.Struct):
    """A board as this process knows it."""

    key: BoardKey
    state: BoardState = msgspec.field(default_factory=lambda: BoardState(0, ()))


class BoardNews:
    """Shows each changed board to the viewers of its workspace's sessions.

    Changes of other processes are found by looking at the boards' revisions, while anybody watches.
    """

    def __init__(self, store: "Store", live: "Live", boards: Boards) -> None:
        self._store = store
        self._live = live
        self._boards = boards
        self._known: dict[str, _Known] = {}
        self._viewed: dict[str, _Viewed] = {}
        self._tasks = Tasks("task boards")
        self._watching: asyncio.Task[None] | None = None
        self._seen: tuple[float, Mapping[str, int]] = (float("-inf"), {})
        boards.listen(self.heard)

    def start(self) -> None:
        """Look after what other processes change, until `aclose`."""
        if self._watching is None:
            self._watching = self._tasks.spawn(self._watch())

    async def aclose(self) -> None:
        """Stop looking and showing."""
        for viewed in self._viewed.values():
            if viewed.timer is not None:
                viewed.timer.cancel()
        await self._tasks.cancel()

    def seen(self) -> Mapping[str, int] | None:
        """Return the revisions of all boards a moment ago, None when nobody watches."""
        at, revisions_then = self._seen
        return revisions_then if time.monotonic() - at < 2 * EVERY_S else None

    def begins(self, thread_id: str, key: BoardKey) -> None:
        """Say which board a session whose turn begins works on."""
        self._known.setdefault(key.name, _Known(key))
        if thread_id not in self._viewed:
            self._viewed[thread_id] = _Viewed(key.name)

    def heard(self, key: BoardKey, state: BoardState) -> None:
        """Take a board's present state; `Boards` tells it."""
        known = self._known.setdefault(key.name, _Known(key))
        self._forget_unseen(key)
        if state.revision <= known.state.revision:
            return
        known.state = state
        # A call's own session is shown the board between the call's result and what follows.
        for thread_id, viewed in list(self._viewed.items()):
            if viewed.board == key.name:
                self._offer(thread_id, viewed)
        self._tasks.spawn(self._spread(known))

    async def _spread(self, known: _Known) -> None:
        watched = self._live.watched()
        if not watched:
            return
        try:
            owners = await self._store.read(lambda c: boards_of_threads(c, watched))
        except BowerbirdError as error:
            _log.warning("board %s was not shown: %s", known.key.name, error)
            return
        for session in owners:
            if board_of(session).name == known.key.name:
                viewed = self._viewed.setdefault(session.thread_id, _Viewed(known.key.name))
                self._offer(session.thread_id, viewed)

    def _offer(self, thread_id: str, viewed: _Viewed) -> None:
        """Show the board, now or a quarter of a second after the last time."""
        if viewed.timer is not None:
            return  # what it shows then is the newest
        wait_s = viewed.at + EVERY_S - time.monotonic()
        if wait_s > 0:
            loop = asyncio.get_running_loop()
            viewed.timer = loop.call_later(wait_s, self._show, thread_id, viewed)
        else:
            self._show(thread_id, viewed)

    def _show(self, thread_id: str, viewed: _Viewed) -> None:
        viewed.timer = None
        known = self._known.get(viewed.board)
        if known is None:
            return
        state = known.state
        if state.revision <= viewed.revision or not self._live.viewers(thread_id):
            return
        viewed.revision, viewed.at = state.revision, time.monotonic()
        # Shown, not published: other processes look for themselves.
        self._live.show(Published(thread_id, None, None, TaskUpdate(state.tasks)))

    def _forget_unseen(self, present: BoardKey) -> None:
        """Keep what nobody looks at from growing: it is found again when somebody does."""
        if len(self._viewed) > MOST_KNOWN:
            unseen = [t for t, v in self._viewed.items() if v.timer is None and not self._live.viewers(t)]
            for thread_id in unseen:
                del self._viewed[thread_id]
        if len(self._known) > MOST_KNOWN:
            kept = {viewed.board for viewed in self._viewed.values()} | {present.name}
            self._known = {name: known for name, known in self._known.items() if name in kept}

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self._look()
            except BowerbirdError as error:
                _log.warning("the task boards could not be looked at: %s", error)

    async def _look(self) -> None:
        watched = self._live.watched()
        if not watched:
            return
        present = await self._store.read(revisions)
        self._seen = (time.monotonic(), present)
        changed = {
            name for name, revision in present.items()
            if name not in self._known or self._known[name].state.revision < revision
        }  # fmt: skip
        if not changed:
            return
        for session in await self._store.read(lambda c: boards_of_threads(c, watched)):
            key = board_of(session)
            if key.name in changed and not self._boards.is_changing(key.name):
                changed.discard(key.name)
                await self._boards.refresh(key)


class SessionRecords(SessionPart):
    """Boards and lists for the turns of a process.

    Args:
        own: the server's own workspace (`WORKSPACE_DIR`), None where it serves somebody's directory.

    Attributes:
        boards: every board.
    """

    def __init__(self, store: "Store", live: "Live", own: Path | None) -> None:
        self._live = live
        self._todos = Todos(store)
        self.boards = Boards(store, own=own, seen=self._seen)
        self._news = BoardNews(store, live, self.boards)

    def _seen(self) -> Mapping[str, int] | None:
        return self._news.seen()

    @cached_property
    def _tools(self) -> "tuple[Tool, ...]":
        return (*board_tools(BoardToolCalls(self.boards)), *todo_tools(self._todos))

    def tools(self, session: "SessionRow | None") -> "Sequence[Tool]":
        """Return the tools, shared by all turns."""
        return self._tools

    async def join(self, run: "TurnRun", context: "TurnContext") -> "TurnRun":
        """Bring a session's copies up to date; give its turn the tools and what summaries keep."""
        thread_id = context.session.thread_id
        key = board_of(context.session)
        for warning in await self.boards.open(key):
            self._live.publish(Published(thread_id, context.turn.turn_id, None, Notice("tasks", warning)))
        self._news.begins(thread_id, key)
        await self.boards.attach(key, context.branch)

        async def notes() -> Mapping[str, str]:
            state = await self.boards.state(key)
            tasks = [task for task in state.tasks if task["status"] != "completed"]
            items = await self._todos.items(thread_id)
            return {
                "Open tasks": board_lines(tasks) if tasks else "",
                "Todo list": todo_lines(items) if items else "",
            }

        return msgspec.structs.replace(
            run,
            tools=run.tools.with_(*self._tools),
            summaries=msgspec.structs.replace(run.summaries, notes=notes),
        )

    async def start(self, *, drives_all: bool) -> None:
        """Look after what other processes change."""
        self._news.start()

    async def turn_ended(self, branch_id: str) -> None:
        """Write no more copies on a branch until its next turn."""
        self.boards.detach(branch_id)

    async def rolled_back(self, branch_id: str) -> None:
        """Copies are written again: the branch was taken back to an earlier state."""
        self.boards.went_back(branch_id)

    async def aclose(self) -> None:
        """Stop looking and showing."""
        await self._news.aclose()
