"""What reaches a running turn from outside: answers, steer messages (SE-19, 21, AG-62, AG-63).

Here: the loop's `Approver` and `Inbox` over the store's inbox. Not here: accepting what people
send (`inbox/accept.py`), recording it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from sqlalchemy import Connection

from bowerbird.agent.policy import Policy
from bowerbird.agent.turn import Approver, Inbox
from bowerbird.core.events import ApprovalAnswer, ApprovalRequest, CallAnswer, Injected, UserStep
from bowerbird.core.forms import convert, decode
from bowerbird.core.messages import Message, blocks_from_data
from bowerbird.sessions.inbox.accept import ANSWER_DOOR
from bowerbird.store.rows.turns import InboxRow, find_input, inputs_of
from bowerbird.store.store import Store


class DoorApprover:
    """Waits for a person behind any door; after the time it lets the turn go on waiting without us.

    Args:
        turn_id: the running turn.
        timeout_s: `approval.timeout_s`.
        alias: the recorded id of a request that was asked before a crash, by its new id.
        leaves_money: a question about money is put and the turn stops at once, as with a plan: nobody is
            expected to find a limit in minutes, and every client hears that the turn is done.
        waits: told True when a wait begins and False when it ends, to show the turn's state.
    """

    def __init__(
        self,
        store: Store,
        turn_id: str,
        timeout_s: float,
        alias: dict[str, str],
        waits: Callable[[ApprovalRequest | None], Awaitable[None]],
        *,
        leaves_money: bool = False,
    ) -> None:
        self._store = store
        self._turn_id = turn_id
        self._timeout_s = timeout_s
        self._alias = alias
        self._waits = waits
        self._news = asyncio.Event()
        self._open: list[ApprovalRequest] = []
        self._leaves_money = leaves_money
        self._makes_room = False

    def look_again(self) -> None:
        """Something was answered or superseded."""
        self._news.set()

    def make_room(self) -> None:
        """Others have work and no slot: let the turn wait without us now, as after the time."""
        if self._open:
            self._makes_room = True
            self._news.set()

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """See `Approver.ask`."""
        request_id = self._alias.get(request.id, request.id)
        if request.kind == "budget" and self._leaves_money:
            return None
        self._open.append(request)
        await self._waits(request)
        answer: ApprovalAnswer | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._answer_to(request_id)
        except TimeoutError:
            return None
        finally:
            self._open.remove(request)
        if answer is not None:
            # Another question of the same batch may still wait: what is typed now is for that one.
            await self._waits(self._open[-1] if self._open else None)
        return answer

    async def _answer_to(self, request_id: str) -> ApprovalAnswer | None:
        while True:
            self._news.clear()
            row = await self._store.read(lambda c: find_input(c, ANSWER_DOOR, request_id))
            if row is not None:
                return answer_of(row)
            if self._makes_room or await self._store.read(lambda c: bool(notes_of(c, self._turn_id))):
                return None
            await self._news.wait()


def notes_of(connection: Any, turn_id: str) -> list[InboxRow]:
    """Return what tells the turn to end without an answer: a new message or a cancel."""
    return inputs_of(connection, turn_id=turn_id, states=("queued",), kinds=("notification",))


def answer_of(row: InboxRow) -> ApprovalAnswer:
    """Return the answer that an inbox row holds."""
    body = decode(row.body, dict[str, Any])
    calls = convert(body.get("calls") or {}, dict[str, CallAnswer])
    return ApprovalAnswer(
        body["request_id"], body["decision"], str(body.get("by") or ""), body.get("feedback"), calls
    )


class Inboxes:
    """Several inboxes of one turn as one."""

    def __init__(self, *parts: Inbox) -> None:
        self._parts = parts

    async def poll(self) -> Sequence[Injected | UserStep]:
        """See `Inbox.poll`."""
        return [step for part in self._parts for step in await part.poll()]


class MoneyOnly:
    """Who is asked in a turn that nobody watches: money waits for its owner, the rest is denied."""

    def __init__(self, approver: DoorApprover) -> None:
        self._approver = approver

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """See `Approver.ask`."""
        if request.kind == "budget":
            return await self._approver.ask(request)
        return ApprovalAnswer(request.id, "deny", "system", None)


def approver_for(policy: Policy, approver: DoorApprover) -> Approver:
    """Return who is asked in a turn of this policy."""
    return MoneyOnly(approver) if policy.unattended else approver


class DoorInbox:
    """Steer messages of one turn, polled before each model call.

    Attributes:
        taken: inbox ids of the messages handed out, by message id; whoever records one removes it.
    """

    def __init__(self, store: Store, turn_id: str) -> None:
        self._store = store
        self._turn_id = turn_id
        self._seen: set[str] = set()
        self._ahead: list[InboxRow] | None = None
        self.taken: dict[str, InboxRow] = {}

    def waiting(self, connection: Connection) -> list[InboxRow]:
        """Return the steer messages that wait."""
        return inputs_of(connection, turn_id=self._turn_id, states=("queued",), kinds=("steer",))

    def give(self, rows: list[InboxRow]) -> None:
        """Take what waited a moment ago, read beside something else: the next poll reads nothing."""
        self._ahead = rows

    async def poll(self) -> Sequence[Injected | UserStep]:
        """See `Inbox.poll`."""
        rows, self._ahead = self._ahead, None
        if rows is None:
            rows = await self._store.read(self.waiting)
        steps: list[UserStep] = []
        for row in rows:
            if row.id in self._seen:
                continue
            self._seen.add(row.id)
            body = decode(row.body, dict[str, Any])
            message = Message("user", blocks_from_data(body["content"]))
            self.taken[message.id] = row
            steps.append(UserStep(message, steer=True))
        return steps
