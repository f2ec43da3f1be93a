"""What an attempt does before the loop: answers given meanwhile, unfinished calls (SE-20 … 26).

Here: from the state the last attempt left to one that the loop can go on with, or to an end.
Not here: the resume decision (`resume_decision.py`), the commits (given as a function).
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.core.ids import new_id
from bowerbird.core.timestamps import to_iso
from bowerbird.core.usage import Usage
from bowerbird.sessions.journal.history import Loaded, load
from bowerbird.sessions.resume_decision import LedgerCall
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.turn.approver_and_inbox import answer_of
from bowerbird.sessions.turn.begin_transaction import Begun
from bowerbird.sessions.turn.driver_context import DriverContext
from bowerbird.sessions.turn.end_transaction import Ending, Pause
from bowerbird.sessions.turn.in_place_of_an_answer import Commit, unanswered
from bowerbird.sessions.turn.recovery import Recovery, recover
from bowerbird.store.journal.journal import NewRecord
from bowerbird.store.rows.usage import TurnUsage, turn_usage

if TYPE_CHECKING:
    from bowerbird.workspace import Branch


@dataclass(frozen=True, slots=True)
class Ready:
    """A turn the loop can go on with; `used` counts every earlier attempt.

    Attributes:
        limits: in USD, by (scope, key), that people set.
    """

    loaded: Loaded
    used: Usage
    sender: dict[str, Any]
    limits: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])


async def opened(
    context: DriverContext, begun: Begun, loaded: Loaded, branch: "Branch", commit: Commit
) -> Ready | Ending | Pause:
    """Bring a turn to where the loop can go on, or say how it stops.

    Args:
        commit: commits one step event; what it raises is passed on.
    """
    thread, turn = begun.session.thread_id, begun.turn.turn_id
    used = (
        Usage() if begun.is_first else _usage(await context.store.read(lambda c: turn_usage(c, turn)), loaded)
    )
    if begun.notes:
        return await unanswered(loaded, begun.notes, begun.behind, used, commit)
    if begun.answers:
        for row in begun.answers:
            await commit(answer_of(row))
        loaded = load(await context.store.records(thread), turn)
    if begun.behind is not None and loaded.turn.open_requests:
        return await unanswered(loaded, (), begun.behind, used, commit)
    stopped = _answered_end(loaded, used)
    if stopped is not None:
        return stopped
    recovery = await recover(loaded.turn.calls, branch, context.settings.resume_external)
    if recovery.went_back:
        for part in reversed(context.parts):
            await part.rolled_back(branch.id)
    for outcome in recovery.outcomes:
        await commit(outcome)
    if recovery.ask:
        return _ask_what_happened(loaded, recovery, used, turn, context.settings)
    if recovery.outcomes:
        loaded = load(await context.store.records(thread), turn)
    return Ready(loaded, used, begun.sender, begun.limits)


def expires_at(settings: SessionSettings) -> str:
    """Return when a request made now can no longer be answered."""
    return to_iso(datetime.now(UTC) + timedelta(days=settings.approval_expiry_days))


def _answered_end(loaded: Loaded, used: Usage) -> Ending | Pause | None:
    """Return how a turn stops whose plan or budget question stands at the end of its records."""
    turn = loaded.turn
    if turn.plan_answer is not None:
        return Ending("done", "plan", used, turn.plan_text)
    if turn.budget_answer is not None and turn.budget_answer.decision == "stop":
        return Ending("done", "budget", used)
    for request in turn.open_requests:
        if request.kind == "plan":
            return Pause("plan", "plan", used)
        if request.kind == "effect":
            return Pause("effect", "awaiting_user", used)
    return None


def _ask_what_happened(
    loaded: Loaded, recovery: Recovery, used: Usage, turn: str, settings: SessionSettings
) -> Pause:
    tools = [_shown(loaded, call) for call in recovery.ask]
    body: dict[str, Any] = {
        "id": new_id("r"),
        "kind": "effect",
        "calls": [call.call for call in recovery.ask],
        "expires_at": expires_at(settings),
        "tools": tools,
        "text": "The process stopped while these calls were running. Did they happen?",
    }
    return Pause("effect", "awaiting_user", used, NewRecord("request", body, turn))


def _shown(loaded: Loaded, call: LedgerCall) -> dict[str, Any]:
    uses = {use.id: use for message in loaded.history.messages for use in message.tool_uses}
    use = uses.get(call.call)
    return {"name": call.tool, "input": {} if use is None else use.input, "id": call.call}


def _usage(totals: TurnUsage, loaded: Loaded) -> Usage:
    """Return what the turn used: model calls from their rows, the rest from the records."""
    recorded = loaded.turn.used
    return msgspec.structs.replace(
        recorded,
        input_tokens=totals.input_tokens,
        output_tokens=totals.output_tokens,
        cache_read_tokens=totals.cache_read_tokens,
        cache_write_tokens=totals.cache_write_tokens,
        model_calls=max(totals.calls, recorded.model_calls),
        cost=totals.cost,
        estimated=totals.estimated or recorded.estimated,
    )
