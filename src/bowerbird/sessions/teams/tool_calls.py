"""Teams as tools use them (`tools/together/team.py`'s `Team`).

Here: a call to a change of the store, which becomes one transaction with the call's outcome, and who is
told of it. Not here: the changes (`bowerbird.teams`), the tools' texts, running anybody.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

from bowerbird.core.errors import InvalidArgument
from bowerbird.sessions.teams.hub import TeamHub
from bowerbird.sessions.thread_ids import thread_of_teammate
from bowerbird.store.rows.sessions import SessionRow, lock_session
from bowerbird.store.rows.team_mail import mark_read, requests_of, unread, unread_counts
from bowerbird.store.rows.teams import MemberRow, members_of
from bowerbird.teams.changes import NewMember, Person, living, person_of, post, recipient, spawn
from bowerbird.teams.readable_copies import newest_by_name
from bowerbird.teams.rules import (
    BY_LEAD,
    BY_TEAMMATE,
    LEAD,
    Ended,
    checked_content,
    checked_name,
    checked_role,
    checked_type,
    wire,
)
from bowerbird.tools.context import ToolContext
from bowerbird.tools.result import ToolResult, to_result
from bowerbird.tools.together.team import Body

Change = Callable[[Connection, Person], Body]


class TeamToolCalls:
    """The teams of a process; each call is its session's.

    Args:
        start: keeps a new teammate going. stop: ends one in the middle of its work.
        model_of: names the model of a session's teammates.
    """

    def __init__(
        self,
        hub: TeamHub,
        *,
        start: Callable[[MemberRow], None],
        stop: "Callable[[MemberRow, Ended], Any]",
        model_of: Callable[[SessionRow], str],
    ) -> None:
        self._hub = hub
        self._start = start
        self._stop = stop
        self._model_of = model_of

    # ------------------------------------------------------------ members

    async def spawn(self, name: str, role: str, prompt: str, call: ToolContext) -> Body:
        """See `Team`."""
        hub, lead = self._hub, call.session
        await hub.store.read(lambda c: self._new(c, lead, name, role, prompt, ""))
        model = self._model_of(await hub.session(lead))
        fork = await hub.fork(lead, name)
        made: list[MemberRow] = []

        def change(connection: Connection, _: Person) -> Body:
            lock_session(connection, lead)
            new = self._new(connection, lead, name, role, prompt, fork.id, model)
            made[:] = [spawn(connection, lead, new)[0]]
            return {"name": name, "role": new.role, "status": "working"}

        try:
            done = await self._change(call, change)
        except InvalidArgument:
            await hub.drop(lead, fork.id)
            raise
        self._start(made[0])
        await hub.announce(lead)
        return done

    def _new(
        self, c: Connection, lead: str, name: str, role: str, prompt: str, fork: str, model: str = ""
    ) -> NewMember:
        rules = self._hub.rules
        if person_of(c, lead).member is not None:
            raise InvalidArgument("teammates have no teammates of their own")
        names = [row.name for row in living(c, lead)]
        nth = 1 + sum(row.name == name for row in members_of(c, lead))
        return NewMember(
            name=checked_name(name, names, rules.max_teammates),
            role=checked_role(role),
            prompt=checked_content(prompt),
            thread_id=thread_of_teammate(lead, name, nth),
            fork=fork,
            model=model,
            holder=self._hub.holder,
        )

    async def members(self, call: ToolContext) -> list[Body]:
        """See `Team`."""
        hub = self._hub
        lead, rows, counts = await hub.store.read(lambda c: _members(c, call.session))
        tasks = (await hub.boards.state(await hub.board(lead))).tasks
        doing = {task["owner"]: task for task in tasks if task["status"] == "in_progress" and task["owner"]}
        return [
            {
                "name": row.name,
                "role": row.role,
                "status": row.status,
                "current_task": _task(doing.get(row.name)) if row.lives else None,
                "unread": counts.get(row.thread_id, 0),
            }
            for row in rows
        ]

    # ------------------------------------------------------------ mail

    async def send(
        self,
        to: str,
        content: str,
        msg_type: str,
        request_id: str,
        approve: bool | None,
        reason: str,
        call: ToolContext,
    ) -> Body:
        """See `Team`."""

        def change(c: Connection, sender: Person) -> Body:
            checked_type(msg_type, BY_LEAD if sender.member is None else BY_TEAMMATE)
            target = recipient(c, sender, to)
            if msg_type == "message":
                lock_session(c, sender.lead)
                post(c, self._hub.rules, sender, target, "message", content)
                return {"to": target.name, "status": "sent"}
            if sender.member is not None and target.member is not None:
                raise InvalidArgument(f"{msg_type} goes to {LEAD}, not to {target.name}")
            return self._ask(c, sender, target, content, msg_type, request_id, approve, reason)

        done = await self._change(call, change)
        if done.get("status") == "pending" and msg_type == "plan_approval_request":
            self._hub.awaiting.add(call.session)
        await self._hub.announce(await self._lead(call))
        return done

    def _ask(
        self, c: Connection, sender: Person, to: Person, content: str, msg_type: str, request_id: str,
        approve: bool | None, reason: str,
    ) -> Body:  # fmt: skip
        """Open or answer a request; returns it."""
        from bowerbird.teams.requests import answer_shutdown, ask_plan, ask_shutdown, review_plan

        rules = self._hub.rules
        if msg_type == "shutdown_request":
            return _pending(ask_shutdown(c, rules, sender, to.name, reason or content).request_id)
        if msg_type == "plan_approval_request":
            return _pending(ask_plan(c, rules, sender, content).request_id)
        if approve is None:
            raise InvalidArgument(f"{msg_type} needs approve: true or false")
        if msg_type == "shutdown_response":
            found = answer_shutdown(c, sender, request_id, approve, reason or content)
            return {"request_id": found.request_id, "status": found.status, "ends": approve}
        found = review_plan(
            c, sender, request_id, approve=approve, feedback=reason or content, to=to.name
        )  # fmt: skip
        return {"request_id": found.request_id, "status": found.status}

    async def read(self, call: ToolContext) -> list[Body]:
        """See `Team`."""

        def change(c: Connection, reader: Person) -> Body:
            rows = unread(c, reader.thread)
            mark_read(c, reader.thread, [row.id for row in rows])
            return {"messages": [wire(row) for row in rows]}

        return (await self._change(call, change))["messages"]

    async def broadcast(self, content: str, call: ToolContext) -> Body:
        """See `Team`."""

        def change(c: Connection, sender: Person) -> Body:
            lock_session(c, sender.lead)
            rows = [row for row in living(c, sender.lead) if row.thread_id != sender.thread]
            if not rows:
                raise InvalidArgument("there is no active teammate to tell")
            for row in rows:
                to = Person(sender.lead, row.name, row.thread_id, row)
                post(c, self._hub.rules, sender, to, "broadcast", content)
            return {"sent_to": [row.name for row in rows]}

        done = await self._change(call, change)
        await self._hub.announce(await self._lead(call))
        return done

    # ------------------------------------------------------------ requests

    async def shutdown(self, teammate: str, force: bool, call: ToolContext) -> Body:
        """See `Team`."""
        stopped: list[MemberRow] = []

        def change(c: Connection, lead: Person) -> Body:
            from bowerbird.teams.requests import ask_shutdown, force_shutdown

            if force:
                stopped[:] = [force_shutdown(c, lead, teammate)]
                return {"teammate": stopped[0].name, "status": "interrupted"}
            return _pending(ask_shutdown(c, self._hub.rules, lead, teammate).request_id)

        done = await self._change(call, change)
        for row in stopped:
            await self._stop(row, "interrupted")
        await self._hub.announce(call.session)
        return done

    async def requests(self, request_id: str, call: ToolContext) -> list[Body]:
        """See `Team`."""

        def look(c: Connection) -> list[Body]:
            from bowerbird.teams.request_rules import find, record

            names = {row.number: row.name for row in members_of(c, call.session)}
            known = requests_of(c, call.session)
            wanted = [find(known, request_id)] if request_id.strip() else _open(known)
            return [record(request, names.get(request.number, "")) for request in wanted]

        return await self._hub.store.read(look)

    async def review(self, request_id: str, approve: bool, feedback: str, call: ToolContext) -> Body:
        """See `Team`."""

        def change(c: Connection, lead: Person) -> Body:
            from bowerbird.teams.requests import review_plan

            found = review_plan(c, lead, request_id, approve=approve, feedback=feedback)
            return {"request_id": found.request_id, "status": found.status}

        done = await self._change(call, change)
        await self._hub.announce(call.session)
        return done

    # ------------------------------------------------------------ inside

    async def _change(self, call: ToolContext, change: Change) -> Body:
        """Run a change and record its result as the call's outcome, in one transaction."""
        found: list[Body] = []

        def apply(connection: Any) -> ToolResult:
            found[:] = [change(connection, person_of(connection, call.session))]  # may be tried twice
            return to_result({key: value for key, value in found[0].items() if key != "ends"})

        if call.change is None:
            await self._hub.store.write(apply)
        else:
            await call.change(apply)
        return found[0]

    async def _lead(self, call: ToolContext) -> str:
        return (await self._hub.store.read(lambda c: person_of(c, call.session))).lead


def _members(connection: Connection, thread_id: str) -> tuple[str, list[MemberRow], dict[str, int]]:
    lead = person_of(connection, thread_id).lead
    return lead, newest_by_name(members_of(connection, lead)), unread_counts(connection, lead)


def _task(task: Any) -> Body | None:
    return None if task is None else {"id": task["id"], "subject": task["subject"]}


def _pending(request_id: str) -> Body:
    return {"request_id": request_id, "status": "pending"}


def _open(known: Any) -> list[Any]:
    return [request for request in known if request.status == "pending"]
