"""Finding the request that an answer belongs to, and whether the answer is one (SE-21, AG-62).

Here: those two checks. Not here: storing the answer (`accept.py`), what follows from it.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, cast

from sqlalchemy import Connection

from bowerbird.agent.always import DECISIONS as ALWAYS
from bowerbird.agent.turn_loop.asking import options_of
from bowerbird.core.errors import AlreadyAnswered, InvalidArgument, NoPendingRequest
from bowerbird.core.events import ApprovalAnswer, ApprovalRequest, CallAnswer
from bowerbird.core.timestamps import from_iso
from bowerbird.sessions.journal.events_as_records import events_of
from bowerbird.store.journal.reading import read_turn_records
from bowerbird.store.rows.turns import OPEN, TurnRow, find_input, open_turns_with, turns_of
from bowerbird.store.store import Store

ANSWER_DOOR = "answer"  # answers are deduplicated by the request they answer, whatever door they came through

DECISIONS: dict[str, tuple[str, ...]] = {
    "approval": ("approve", "deny", "auto_approve", *ALWAYS),
    "plan": ("approve", "reject"),
    "effect": ("happened", "did_not_happen", "run_again"),
    "budget": ("raise", "stop"),
}
_WORDS = frozenset(word for words in DECISIONS.values() for word in words)


async def find_request(
    store: Store, request_id: str | None, thread_id: str | None
) -> tuple[TurnRow, ApprovalRequest]:
    """Return the open request and its turn.

    Args:
        request_id: None means the one pending request of `thread_id`.

    Raises:
        NoPendingRequest: unknown, expired, or none pending. AlreadyAnswered: it has an answer.
    """
    if request_id is None and thread_id is None:
        raise InvalidArgument("name a request, or the session whose pending request is meant")
    turns = await store.read(
        lambda c: open_turns_with(c) if thread_id is None else turns_of(c, thread_id, OPEN)
    )
    for turn in turns:
        found = await _in_turn(store, turn, request_id)
        if found is not None:
            return turn, found
    named = "" if request_id is None else f" {request_id}"
    raise NoPendingRequest(f"there is no pending request{named}; nothing was changed")


async def _in_turn(store: Store, turn: TurnRow, request_id: str | None) -> ApprovalRequest | None:
    records = [record for record in await store.records(turn.thread_id) if record.turn == turn.turn_id]
    pairs = events_of(records)
    answered = {event.id for _, event in pairs if isinstance(event, ApprovalAnswer)}
    for record, event in reversed(pairs):
        if not isinstance(event, ApprovalRequest) or request_id not in (None, event.id):
            continue
        if event.id in answered:
            if request_id is None:
                continue
            raise AlreadyAnswered(f"request {event.id} was answered before")
        until = record.body.get("expires_at")
        if until and from_iso(str(until)) < datetime.now(UTC):
            raise NoPendingRequest(f"request {event.id} expired at {until}; send the message again")
        return event
    return None


def check_decision(
    request: ApprovalRequest,
    decision: str,
    calls: Mapping[str, CallAnswer] = MappingProxyType({}),
    feedback: str | None = None,
) -> None:
    """Raise InvalidArgument when `decision`, with what is said of single `calls`, is no answer. Pure."""
    _check_calls(request, decision, calls)
    if request.kind == "user" and not feedback:
        _check_word(decision, options_of(request))
    allowed = DECISIONS.get(request.kind)
    if allowed is not None and decision not in allowed:
        raise InvalidArgument(
            f"decision {decision!r} does not answer a request of kind {request.kind}; "
            f"use {', '.join(allowed)}"
        )
    if decision in ALWAYS and not any(tool.get("rules") for tool in request.tools):
        raise InvalidArgument("this call cannot be allowed for good; use approve or deny")


def _check_word(word: str, options: Sequence[str]) -> None:
    """Refuse a word for other kinds where the agent offered its own: `approve` is no colour."""
    if not options or word in options or word == "deny" or word not in _WORDS:
        return
    raise InvalidArgument(
        f"{word!r} does not answer this question; use one of {', '.join(map(repr, options))}, words of your "
        "own, or deny to leave it unanswered"
    )


def _check_calls(request: ApprovalRequest, decision: str, calls: Mapping[str, CallAnswer]) -> None:
    if not calls:
        return
    if request.kind != "approval":
        raise InvalidArgument("single calls are answered of an approval only")
    tools = {str(tool.get("id")): tool for tool in request.tools}
    for call, said in calls.items():
        if call not in request.calls:
            raise InvalidArgument(f"{call!r} is no call of request {request.id}")
        if said.command is None:
            continue
        if said.decision == "deny" or not said.command.strip():
            raise InvalidArgument("a command that is edited is approved, and not empty")
        arguments: object = tools.get(call, {}).get("input")
        if not isinstance(arguments, Mapping) or not isinstance(
            cast("Mapping[str, object]", arguments).get("command"), str
        ):
            raise InvalidArgument(f"call {call} runs no command that could be edited")


def answer_body(
    request_id: str, decision: str, by: str, feedback: str | None, calls: Mapping[str, CallAnswer]
) -> dict[str, Any]:
    """Return an answer as the inbox keeps it."""
    body: dict[str, Any] = {"request_id": request_id, "decision": decision, "by": by, "feedback": feedback}
    return body | ({"calls": dict(calls)} if calls else {})


def open_request(connection: Connection, turn: TurnRow, *kinds: str) -> ApprovalRequest | None:
    """Return the oldest request of a turn that can still be answered, None for none.

    Args:
        kinds: that count; all when none is named.
    """
    records = read_turn_records(connection, turn.thread_id, turn.turn_id, types=("request", "answer"))
    open_ones: dict[str, ApprovalRequest] = {}
    for _, event in events_of(records):
        if isinstance(event, ApprovalRequest) and (not kinds or event.kind in kinds):
            open_ones[event.id] = event
        elif isinstance(event, ApprovalAnswer):
            open_ones.pop(event.id, None)
    now = datetime.now(UTC)
    for event in open_ones.values():
        is_over = bool(event.expires_at) and from_iso(str(event.expires_at)) < now
        if not is_over and find_input(connection, ANSWER_DOOR, event.id) is None:
            return event
    return None
