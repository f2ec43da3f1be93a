"""What a failed turn's calls changed without anybody hearing of it: taken back, or marked (D-8, law 7).

A disk that gets full ends a turn between a command and its record, and may cut its files off anywhere; nobody
read what it did. Here: that its changes do not land unannounced. Not here: the decision which
call goes back (`resume_decision.py`), turns that are driven again (`recovery.py`).
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import BowerbirdError
from bowerbird.core.events import ToolIntent, ToolOutcome
from bowerbird.core.threads import ThreadDefect, in_thread
from bowerbird.sessions.journal.events_as_records import ledger_class
from bowerbird.sessions.resume_decision import Close, Decision, LedgerCall, RunAgain, decide_resume, rollbacks
from bowerbird.sessions.turn.driver_context import DriverContext
from bowerbird.sessions.turn.end_transaction import Ending

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

_FAILED = (BowerbirdError, OSError, ThreadDefect)
_log = logging.getLogger(__name__)


async def without_unrecorded(
    ending: Ending,
    batch: Sequence[ToolIntent | ToolOutcome],
    branch: "Branch | None",
    context: DriverContext,
) -> Ending:
    """Take back what calls without an outcome changed, and say so in the turn's error.

    Args:
        batch: intents and recorded outcomes of the turn's newest model call, in order; none of them runs.
        branch: bound to the turn; None when it could not be opened. The caller has its lease.
    """
    if branch is None or ending.error is None:
        return ending
    calls = _ledger(batch)
    tools = {call.call: call.tool for call in calls}
    decisions = decide_resume(calls)
    back: list[str] = []
    kept = [tools[d.call] for d in decisions if isinstance(d, Close) and d.status == "interrupted"]
    for mark in rollbacks(decisions, calls):
        went = await _went_back(branch, mark, context)
        (back if went else kept).extend(tools[d.call] for d in decisions if _is_for(d, mark))
    said = [ending.error.message]
    if back:
        for part in reversed(context.parts):
            await part.rolled_back(branch.id)
        said.append(f"what {_names(back)} had changed by then was taken back")
    if kept:
        said.append(f"what {_names(kept)} had changed by then is still there: look at it before it lands")
        try:
            await in_thread(branch.taint, None, f"{_names(kept)}, whose end was not recorded")
        except _FAILED as error:
            _log.warning("branch %s: unrecorded changes were not marked: %s", branch.id, error)
    return msgspec.structs.replace(
        ending, error=msgspec.structs.replace(ending.error, message="; ".join(said))
    )


def _ledger(batch: Sequence[ToolIntent | ToolOutcome]) -> list[LedgerCall]:
    outcomes = {event.call: at for at, event in enumerate(batch) if isinstance(event, ToolOutcome)}
    return [
        LedgerCall(
            event.call,
            event.tool,
            ledger_class=ledger_class(event.effect, event.key),
            mark=event.mark,
            intent_seq=at,
            outcome_seq=outcomes.get(event.call),
        )
        for at, event in enumerate(batch)
        if isinstance(event, ToolIntent)
    ]


async def _went_back(branch: "Branch", mark: str, context: DriverContext) -> bool:
    try:
        await context.branches.require_quiet(branch.id)  # else a background command goes on writing
        await in_thread(branch.rollback, mark)
    except _FAILED as error:
        _log.warning("branch %s was not taken back to %s: %s", branch.id, mark, error)
        return False
    return True


def _is_for(decision: Decision, mark: str) -> bool:
    return isinstance(decision, RunAgain) and decision.rollback == mark


def _names(tools: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(tools))
