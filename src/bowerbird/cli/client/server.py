"""The client of a server, over REST and its socket (R1, UI-41, UI-85).

Here: each call of the protocol as the requests that answer it. Not here: how a request is sent (`http.py`),
the socket (`socket.py`), what commands do with the answers.
"""

import asyncio
import urllib.parse
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import structs, to_builtins

from bowerbird.cli.client.agent_sessions import AGENT_SESSION, branch_of_agent
from bowerbird.cli.client.pages import MOST_ROWS, all_landings, all_sessions, whole
from bowerbird.cli.client.pictures import body_of
from bowerbird.cli.client.preferences import Preferences
from bowerbird.cli.client.protocol import Contest, Fix, News, Row
from bowerbird.cli.client.server_rest import ServerRest
from bowerbird.cli.terminal.exits import USAGE, CliExit, Refused
from bowerbird.cli.terminal.picking import branch_paths
from bowerbird.cli.terminal.text import harmless, one_line
from bowerbird.cli.turn.answer import Answer
from bowerbird.core import wire
from bowerbird.core.errors import BowerbirdError, NoPendingRequest, UnknownSession
from bowerbird.core.events import LandingProgress, SubagentEnd, SubagentStart
from bowerbird.core.forms import convert
from bowerbird.sessions.live.hub import Published, TurnMark
from bowerbird.sessions.wishes import NO_CHECK, ToLand

if TYPE_CHECKING:
    from bowerbird.cli.client.http import Requests
    from bowerbird.cli.terminal.run_options import RunOptions
    from bowerbird.config.sections.ground import CliSection
    from bowerbird.sessions.inbox.comments import Remark
    from bowerbird.sessions.live.landing_watch import Told

LOOK_S = 0.5
LEAVING_S = 10  # for a turn to stop; it takes a tenth of a second
_OF_THE_CONNECTION = (wire.Hello, wire.BranchUpdate)
"""Frames that greet a viewer and keep a page's list of files: no events of the session."""


class ServerClient(ServerRest):
    """Works with the conversations of one server.

    Args:
        requests: to it. preferences: of the terminal. liked: what the person prefers for sessions; None where
            none are made.
    """

    is_server = True
    model = ""

    def __init__(
        self, requests: "Requests", preferences: Preferences, liked: "CliSection | None" = None
    ) -> None:
        super().__init__(requests)
        self.where = harmless(requests.address.url)
        self.preferences = preferences
        self._liked = liked

    # ------------------------------------------------------------ which session

    async def find(self, given: str | None) -> str:
        """See `Client`."""
        if given and given.startswith(AGENT_SESSION):
            return branch_of_agent(given, await self.agent_conversation(given))
        if not given:
            newest = await self._requests.get("/api/conversations", limit=1)
            if not newest:
                raise CliExit(USAGE, f"there is no session on {self.where} yet")
            return str(newest[0]["id"])
        fitting = [
            row for row in await all_sessions(self._requests, given) if str(row["id"]).startswith(given)
        ]
        exact = [row for row in fitting if row["id"] == given]
        if len(given) < 4 or not fitting:
            short = len(given) < 4
            hint = "give at least 4 characters of its id" if short else "`bowerbird sessions` lists them"
            raise UnknownSession(f"no session {harmless(given)!r} on {self.where}; {hint}")
        if len(fitting) > 1 and not exact:
            listed = "".join(f"\n  {row['id']}  {one_line(row['title'] or '', 60)}" for row in fitting)
            raise UnknownSession(f"{harmless(given)} fits several sessions:{listed}")
        return str((exact or fitting)[0]["id"])

    def is_path(self, word: str) -> bool:
        """See `Client`; nothing of the server's directories is known here."""
        return "/" in word or "." in word

    def paths(self, words: Sequence[str]) -> list[str]:
        """See `Client`."""
        return branch_paths(words, None)

    async def session_for(self, options: "RunOptions") -> str:
        """See `Client`; `--workspace` is the name of a registered one."""
        assert self._liked is not None, "a client that talks was given what the person prefers"
        flags = options.session_flags(self._liked)
        if options.resume is not None:
            thread_id = await self.find(options.resume)
            if options.effort() is not None:
                flags["thinking_effort"] = options.effort()
            if flags:
                await self.change(thread_id, flags)
            return thread_id
        asked = {
            **flags, "thinking_effort": options.effort(self._liked), "preset": options.preset,
            "workspace": options.workspace, "landing": options.land,
        }  # fmt: skip
        body = {name: value for name, value in asked.items() if value is not None}
        return str((await self._requests.ask("POST", "/api/chat", body))["conversation_id"])

    # ------------------------------------------------------------ sessions

    async def sessions(self, *, every: bool, words: str = "") -> list[Row]:
        """See `Client`; a server lists all that we may see."""
        if words:
            return await self._requests.get("/api/conversations", limit=MOST_ROWS, search=words)
        return await all_sessions(self._requests)

    async def show(self, thread_id: str, *, messages: bool = True) -> Row:
        """See `Client`."""
        found = await self._requests.get(_place(thread_id), after=2**53)
        return {**found, "messages": await self.messages(thread_id)} if messages else found

    async def messages(self, thread_id: str) -> list[Row]:
        """See `Client`."""
        return await whole(self._requests, _place(thread_id, "/messages"), "messages")

    async def change(self, thread_id: str, changes: dict[str, Any]) -> None:
        """See `Client`."""
        await self._requests.ask("PATCH", _place(thread_id), changes)

    async def delete(self, thread_id: str) -> None:
        """See `Client`."""
        await self._requests.ask("DELETE", _place(thread_id))

    async def fork(self, thread_id: str, turn_id: str | None) -> str:
        """See `Client`."""
        body = {"turn_id": turn_id} if turn_id is not None else {}
        return str((await self._requests.ask("POST", _place(thread_id, "/fork"), body))["conversation_id"])

    # ------------------------------------------------------------ turns

    async def drive(self, thread_id: str) -> None:
        """See `Client`; a server does it by itself."""

    async def send(self, thread_id: str, text: str, pictures: Sequence[bytes] = ()) -> Row:
        """See `Client`."""
        return await self._requests.ask("POST", _place(thread_id, "/messages"), body_of(text, pictures))

    async def comment(self, thread_id: str, remark: "Remark") -> Row:
        """See `Client`."""
        row = {
            "path": remark.path, "side": remark.side, "line": remark.line, "end_line": remark.end_line,
            "text": remark.text,
        }  # fmt: skip
        return await self._requests.ask("POST", _place(thread_id, "/comments"), {"comments": [row]})

    async def take_back(self, thread_id: str, inbox_id: str) -> None:
        """See `Client`."""
        await self._requests.ask("DELETE", _place(thread_id, f"/queue/{urllib.parse.quote(inbox_id)}"))

    async def cancel(self, thread_id: str) -> str:
        """See `Client`."""
        return str((await self._requests.ask("POST", _place(thread_id, "/cancel")))["turn_id"])

    async def leave(self, thread_id: str, turn_id: str) -> None:
        """See `Client`; a server that is gone has stopped it."""
        with suppress(BowerbirdError):
            body = {"turn_id": turn_id, "resumable": True}
            await self._requests.ask("POST", _place(thread_id, "/cancel"), body)
            # Whoever resumes it next must find it stopped.
            await self._requests.get(_place(thread_id, f"/turns/{turn_id}"), wait=LEAVING_S)

    async def resume(self, thread_id: str) -> str:
        """See `Client`."""
        return str((await self._requests.ask("POST", _place(thread_id, "/resume")))["turn_id"])

    async def compact(self, thread_id: str, focus: str) -> None:
        """See `Client`."""
        await self._requests.ask("POST", _place(thread_id, "/compact"), {"focus": focus})

    async def turns(self, thread_id: str) -> list[Row]:
        """See `Client`."""
        return await whole(self._requests, _place(thread_id, "/turns"), "turns")

    async def turn(self, thread_id: str, turn_id: str) -> Row:
        """See `Client`."""
        return await self._requests.get(_place(thread_id, f"/turns/{turn_id}"))

    async def pending(self) -> list[Row]:
        """See `Client`."""
        return await self._requests.get("/api/approvals")

    async def answer(self, thread_id: str, request_id: str, answer: Answer) -> None:
        """See `Client`."""
        body: dict[str, Any] = {"decision": answer.decision, "feedback": answer.feedback}
        if answer.calls:
            body["calls"] = {call: to_builtins(said) for call, said in answer.calls.items()}
        try:
            await self._requests.ask("POST", f"/api/approvals/{urllib.parse.quote(request_id)}", body)
        except Refused as error:
            if error.exit_code != USAGE:
                raise
            raise NoPendingRequest(str(error)) from None

    async def follow(
        self, thread_id: str, after: int, *, lines: bool = False, say: Callable[[str], None] | None = None
    ) -> AsyncGenerator[News]:
        """See `Client`."""
        from bowerbird.cli.client.frames import Frames
        from bowerbird.cli.client.socket import frames

        events = Frames()
        async for text, frame in frames(self._requests, thread_id, after, say or (lambda _: None)):
            if frame is None:
                for begun in (*events.begun_anew(thread_id), None):
                    yield News(begun, is_lost=bool(text))
                continue
            todos = frame.todos if isinstance(frame, wire.TodoUpdate) else None
            event = events.event(frame)
            published = None if event is None else Published(thread_id, frame.turn_id, None, event)
            usage = events.usage if isinstance(event, TurnMark) and event.has_stopped else None
            said = lines and not isinstance(frame, _OF_THE_CONNECTION)
            yield News(published, [text] if said else (), todos, usage)

    # ------------------------------------------------------------ review

    async def changed(self, thread_id: str) -> list[str]:
        """See `Client`."""
        return [str(row["path"]) for row in (await self.plan(thread_id))["entries"]]

    async def diff(self, thread_id: str, paths: Sequence[str] | None = None) -> Row:
        """See `Client`."""
        return await self._requests.get(_place(thread_id, "/diff"), path=paths)

    async def git(self, thread_id: str) -> list[Row]:
        """See `Client`."""
        return await self._requests.get(_place(thread_id, "/git"))

    async def patch(self, thread_id: str, paths: Sequence[str] | None = None) -> str:
        """See `Client`."""
        return await self._requests.text(_place(thread_id, "/diff"), path=paths, format="unified")

    async def plan(
        self, thread_id: str, paths: Sequence[str] | None = None, include: Sequence[str] = ()
    ) -> Row:
        """See `Client`."""
        return await self._requests.get(_place(thread_id, "/landing-plan"), path=paths, include=include)

    async def land(self, thread_id: str, wanted: ToLand, told: "Told | None" = None) -> Row:
        """See `Client`; who and from where is what the server knows of us."""
        body = {name: value for name, value in structs.asdict(wanted).items() if value is not None}
        del body["own_git"]  # whose git runs is the server's to say
        if wanted.commit is not None:
            body["commit"] = {"message": wanted.commit.message, "branch": wanted.commit.branch}
        asking = self._requests.ask("POST", _place(thread_id, "/land"), body, patient=True)
        return await self._landing(asking, told, {"kind": "land", "conversation_id": thread_id})

    async def check(self, thread_id: str, begun: Callable[[str], None]) -> Row:
        """See `Client`."""
        place = _place(thread_id, "/check")
        if not (await self._requests.get(place))["command"]:
            raise CliExit(USAGE, NO_CHECK)
        found: Row = await self._requests.ask("POST", place)
        begun(str(found["command"]))
        while found["state"] == "running":
            await asyncio.sleep(LOOK_S)
            found = await self._requests.get(place)
        return found

    async def landings(self) -> list[Row]:
        """See `Client`."""
        return await all_landings(self._requests)

    async def undo(
        self, landing_id: str, *, force: bool, commit: bool = False, told: "Told | None" = None
    ) -> Row:
        """See `Client`."""
        place = f"/api/landings/{landing_id}/undo"
        body: Row = {"force": force, **({"commit": {}} if commit else {})}
        asking = self._requests.ask("POST", place, body, patient=True)
        return await self._landing(asking, told, {"undoes": landing_id})

    async def _landing(self, asking: Coroutine[Any, Any, Row], told: "Told | None", which: Row) -> Row:
        """Return what a landing's request answers; say meanwhile how far the one that is `which` is."""
        answering = asyncio.create_task(asking)
        try:
            while not (await asyncio.wait([answering], timeout=LOOK_S))[0]:
                if told is None:
                    continue
                with suppress(Refused):  # what counts is the answer
                    for row in await self._requests.get("/api/landings/running"):
                        if which.items() <= row.items():
                            told(convert(row, LandingProgress))
            return answering.result()
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)

    async def fix(self, landing_id: str, how: Fix) -> Row:
        """See `Client`."""
        return await self._requests.ask("POST", f"/api/landings/{landing_id}/fix", {"how": how})

    async def discard(self, thread_id: str) -> Row:
        """See `Client`."""
        return await self._requests.ask("POST", _place(thread_id, "/discard"))

    # ------------------------------------------------------------ subagents

    async def subagents(self, thread_id: str) -> list[Row]:
        """See `Client`."""
        return await self._requests.get(_place(thread_id, "/subagents"))

    async def subagent(self, thread_id: str, handle: str) -> Row:
        """See `Client`."""
        return await self._requests.get(_subagent(thread_id, handle))

    async def subagent_file(self, thread_id: str, handle: str, path: str) -> Row:
        """See `Client`."""
        return await self._requests.get(_subagent(thread_id, handle, "/file"), path=path)

    async def merge_subagent(
        self, thread_id: str, handle: str, paths: Sequence[str] | None, *, force: bool
    ) -> Row:
        """See `Client`."""
        body = {"paths": None if paths is None else list(paths), "force": force}
        return await self._requests.ask("POST", _subagent(thread_id, handle, "/merge"), body)

    async def discard_subagent(self, thread_id: str, handle: str) -> None:
        """See `Client`."""
        await self._requests.ask("POST", _subagent(thread_id, handle, "/discard"))

    async def attempt(self, wanted: Contest, show: Callable[[Published], None]) -> Row:
        """See `Client`; it goes on there when this command ends."""
        title = one_line(wanted.task, 100)
        made = await self._requests.ask("POST", "/api/chat", {"title": title})
        thread_id = str(made["conversation_id"])
        watching = asyncio.create_task(self._watch_attempts(thread_id, show))
        try:
            place = _place(thread_id, "/attempts")
            found: Row = await self._requests.ask("POST", place, structs.asdict(wanted))
            while found["state"] == "running":
                await asyncio.sleep(LOOK_S)
                found = await self._requests.get(f"{place}/{found['id']}")
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        return found

    async def _watch_attempts(self, thread_id: str, show: Callable[[Published], None]) -> None:
        with suppress(Refused):  # how they go is shown as long as it can be; the result is asked for
            async for news in self.follow(thread_id, 0):
                if news.published and isinstance(news.published.event, SubagentStart | SubagentEnd):
                    show(news.published)

    # ------------------------------------------------------------ the rest

    async def memory(self) -> list[Row]:
        """See `Client`; of the server's default workspace."""
        return await self._requests.get("/api/memory/versions")

    async def restore_memory(self, version: int) -> Row:
        """See `Client`."""
        return await self._requests.ask("POST", "/api/memory/restore", {"version": version})

    async def usage(self, by: str, since: str | None, until: str | None) -> Row:
        """See `Client`."""
        return await self._requests.get("/api/usage", by=by, **{"from": since, "to": until})

    async def outcomes(self, by: str, since: str | None, until: str | None) -> Row:
        """See `Client`."""
        return await self._requests.get("/api/usage/outcomes", by=by, **{"from": since, "to": until})

    async def tools(self) -> list[Row]:
        """See `Client`."""
        return await self._requests.get("/api/tools")

    async def models(self) -> list[Row]:
        """See `Client`."""
        return await self._requests.get("/api/models")

    async def no_processes(self) -> str | None:
        """See `Client`."""
        found = await self._requests.get("/api/sandbox")
        return None if found["tier"] != "none" else "; ".join(found["reasons"]) or "no sandbox"


def _place(thread_id: str, rest: str = "") -> str:
    return f"/api/conversations/{urllib.parse.quote(thread_id)}{rest}"


def _subagent(thread_id: str, handle: str, rest: str = "") -> str:
    return _place(thread_id, f"/subagents/{urllib.parse.quote(handle, safe='')}{rest}")
