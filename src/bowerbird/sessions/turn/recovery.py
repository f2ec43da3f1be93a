"""Carrying out the resume decision: rollbacks, outcomes of calls that are given up (SE-25, 26).

Here: from a loaded turn to a history that the loop can go on with. Not here: the decision
(`resume_decision.py`), reading the journal, questions to a person.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

import msgspec

from bowerbird.core.errors import WorkspaceError
from bowerbird.core.events import ToolOutcome
from bowerbird.core.threads import to_thread
from bowerbird.sessions.resume_decision import (
    AskPerson,
    Close,
    Decision,
    LedgerCall,
    RunAgain,
    decide_resume,
    rollbacks,
)

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

MAX_LISTED_PATHS = 50


class Recovery(msgspec.Struct, frozen=True):
    """What must be recorded before the loop goes on.

    Attributes:
        outcomes: of calls that are not run again.
        ask: calls about which a person must say what happened.
        went_back: the branch was taken back.
    """

    outcomes: tuple[ToolOutcome, ...] = ()
    ask: tuple[LedgerCall, ...] = ()
    went_back: bool = False


async def recover(
    calls: Sequence[LedgerCall], branch: "Branch", external: Literal["tell", "ask"]
) -> Recovery:
    """Take the branch back where calls run again; return the outcomes of those that do not.

    No process of the old attempt lives when this is called: the lease was taken from a dead or
    expired holder, whose processes die with it, and the branch's lock is ours.

    Args:
        calls: the turn's newest batch.
        branch: bound to the turn.
        external: setting `resume.external`.
    """
    decisions = decide_resume(calls, external)
    closed: list[ToolOutcome] = []
    tools = {call.call: call.tool for call in calls}
    changing = {call.call for call in calls if call.ledger_class == "branch"}
    went_back = False
    for mark in rollbacks(decisions, calls):
        failure = await to_thread(_roll_back, branch, mark)
        if failure is None:
            went_back = True
        else:
            closed += [_closed(tools, _impossible(d, failure)) for d in decisions if _goes_back(d, mark)]
    given_up = [_closed(tools, decision) for decision in decisions if isinstance(decision, Close)]
    closed += [
        await to_thread(_with_paths, branch, outcome)
        if outcome.status == "interrupted" and outcome.call in changing
        else outcome
        for outcome in given_up
    ]
    asked = {decision.call for decision in decisions if isinstance(decision, AskPerson)}
    return Recovery(tuple(closed), tuple(call for call in calls if call.call in asked), went_back)


def _goes_back(decision: Decision, mark: str) -> bool:
    return isinstance(decision, RunAgain) and decision.rollback == mark


def _roll_back(branch: "Branch", mark: str) -> WorkspaceError | None:
    try:
        branch.rollback(mark)
    except WorkspaceError as error:
        return error
    return None


def _impossible(decision: Decision, failure: WorkspaceError) -> Close:
    text = (
        "The process stopped while this call was running, and its changes could not be taken back "
        f"({failure}). They were kept as they are."
    )
    return Close(decision.call, "interrupted", text)


def _closed(tools: dict[str, str], decision: Close) -> ToolOutcome:
    data = None if decision.status == "ok" else {"error": decision.text}
    return ToolOutcome(decision.call, tools.get(decision.call, ""), decision.status, decision.text, data=data)


def _with_paths(branch: "Branch", outcome: ToolOutcome) -> ToolOutcome:
    """Name the paths that the interrupted process call changed, as the branch's journal has them.

    What was found on the branch after a kill stands at its end without a call: it may be this one's.
    """
    branch.catch_up()
    rows = list(branch.journal())
    left = takewhile(lambda row: row["call"] is None and row["via"] == "process", reversed(rows))
    own = [*left, *(row for row in rows if row["call"] == outcome.call)]
    paths = sorted({str(row["path"]) for row in own})
    shown = [path.lstrip("/") for path in paths[:MAX_LISTED_PATHS]]
    more = "" if len(paths) <= MAX_LISTED_PATHS else f" and {len(paths) - MAX_LISTED_PATHS} more"
    text = f"{outcome.content}\nPaths changed since it began: {', '.join(shown) or 'none'}{more}."
    return msgspec.structs.replace(outcome, content=text, data={**(outcome.data or {}), "changed": paths})
