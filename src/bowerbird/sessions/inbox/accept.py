"""Accepting what people send: one transaction that acknowledges, queues and orders (SE-17 … SE-21).

Here: the rules of acceptance as functions of a connection, run inside the store's `write`. Not
here: waking a driver, checking a message's form (`service.py`), SQL (`store`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import (
    AlreadyAnswered,
    InvalidArgument,
    MessageTooLarge,
    NoPendingRequest,
    NotQueued,
    QueueFull,
    SessionError,
    UnknownSession,
)
from bowerbird.core.ids import new_id
from bowerbird.core.messages import ImageBlock, TextBlock, block_to_data, blocks_from_data
from bowerbird.core.timestamps import now_iso
from bowerbird.sessions.inbox.answers import ANSWER_DOOR, open_request
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.values import InputKind, Receipt
from bowerbird.store.rows.sessions import SessionRow, lock_session, update_session
from bowerbird.store.rows.turns import (
    OPEN,
    InboxRow,
    TurnRow,
    active_and_open,
    count_waiting,
    find_input,
    find_turn,
    get_turn,
    inputs_of,
    insert_input,
    insert_turn,
    last_turn_number,
    move_queue_back,
    turns_of,
    update_inputs,
    update_turn,
)

TITLE_CHARS = 100
MAX_IMAGES = 20


class Offered(msgspec.Struct, frozen=True):
    """An input as a door offers it.

    Attributes:
        body: `{"content": [blocks]}`; sender: `{"id", "name", "door"}`.
        dedupe_key: unique per door; the same key again is the same input.
        turn_kind: `user`, `schedule`, `memory` …, recorded in `turn_started`.
        text: the message's text, for the session's title.
    """

    thread_id: str
    door: str
    dedupe_key: str
    kind: InputKind
    sender: dict[str, Any]
    body: dict[str, Any]
    text: str = ""
    turn_kind: str = "user"


class Accepted(msgspec.Struct, frozen=True):
    """The receipt, and what the service must do now.

    Attributes:
        wake: a turn to drive: the new one or one that waited; None when it is another's turn.
        interrupt: a running turn that must stop for this input.
        superseded: a waiting turn whose driver may be in this process and must let go.
        session, input: the rows of the session, locked, and of an input that made a turn.
        answers: the input is the answer to a question, and shown as that.
    """

    receipt: Receipt
    wake: TurnRow | None = None
    interrupt: TurnRow | None = None
    superseded: TurnRow | None = None
    session: SessionRow | None = None
    input: InboxRow | None = None
    answers: bool = False


def take_back(connection: Connection, thread_id: str, inbox_id: str) -> InboxRow:
    """Cancel an accepted input whose turn has not begun; its turn ends without a record.

    Raises:
        UnknownSession: no such input. NotQueued: its turn has begun, or it was taken back before.
    """
    lock_session(connection, thread_id)
    rows = inputs_of(connection, thread_id=thread_id)
    row = next((row for row in rows if row.id == inbox_id), None)
    if row is None:
        raise UnknownSession(f"session {thread_id} has no input {inbox_id}")
    if row.state != "queued" or row.kind not in ("message", "steer", "interrupt"):
        raise NotQueued(f"input {inbox_id} is {row.state}; only what waits can be taken back")
    update_inputs(connection, [row.id], state="cancelled")
    turn = None if row.turn_id is None else get_turn(connection, row.turn_id)
    # A steer message joins a turn that others began: only that message goes.
    if turn is not None and turn.state == "queued" and turn.started_at is None:
        update_turn(connection, turn.turn_id, state="cancelled", stop_reason="cancelled", ended_at=now_iso())
        if not turns_of(connection, thread_id, OPEN):
            update_session(connection, thread_id, status="idle")
    return row


def accept(connection: Connection, offered: Offered, limits: SessionSettings) -> Accepted:
    """Store an input and the turn it becomes, or return the first receipt of the same key.

    Raises:
        UnknownSession, QueueFull, SessionError: nothing is stored.
    """
    known = find_input(connection, offered.door, offered.dedupe_key)
    if known is not None:
        position = _position(turns_of(connection, known.thread_id, OPEN), known.turn_id)
        return Accepted(Receipt(known.id, known.turn_id or "", position, duplicate=True))
    session = lock_session(connection, offered.thread_id)
    _require_room(connection, session, limits)
    active, open_turns = active_and_open(connection, offered.thread_id)
    if offered.kind == "steer" and active is not None and active.state == "running":
        row = _input(offered, active.turn_id)
        insert_input(connection, row)
        return Accepted(Receipt(row.id, active.turn_id, 0))
    waiting = active if active is not None and active.state == "waiting" else None
    if waiting is not None and (answered := _answer_by_typing(connection, offered, waiting)) is not None:
        return answered
    asked = None if waiting is None else open_request(connection, waiting)
    is_revision = waiting is not None and waiting.waiting_for == "plan"
    # A question stays until a person answers it, or it has expired: what is said meanwhile waits.
    superseded = waiting if is_revision or asked is None else None
    interrupted = active if offered.kind == "interrupt" and (waiting is None or superseded) else None
    turn = _new_turn(connection, offered, active if is_revision or interrupted else None)
    if is_revision and turn.kind == "user":
        turn = msgspec.structs.replace(turn, kind="plan_revision")
    row = _input(offered, turn.turn_id)
    insert_turn(connection, turn)
    insert_input(connection, row)
    title = {"title": offered.text[:TITLE_CHARS]} if session.title is None and offered.text else {}
    update_session(connection, offered.thread_id, **title)
    # An interrupt, and what is said to a plan, goes before the queue, directly behind the active turn.
    goes_ahead = is_revision or interrupted is not None
    receipt = Receipt(row.id, turn.turn_id, 1 if goes_ahead else open_turns)
    if superseded is not None:
        supersede(connection, superseded)
        stops = None if is_revision else interrupted
        return Accepted(receipt, wake=superseded, interrupt=stops, superseded=superseded)
    if waiting is not None and asked is not None:
        receipt = msgspec.structs.replace(receipt, open_request=asked.id)
    wake = turn if receipt.position == 0 else None
    session = msgspec.structs.replace(session, **title)
    return Accepted(receipt, wake=wake, interrupt=interrupted, session=session, input=row)


def _answer_by_typing(connection: Connection, offered: Offered, waiting: TurnRow) -> Accepted | None:
    """Take a message as the answer to what the agent asked, None when it asked nothing.

    A message with images is no answer: it waits, as one does that is sent while an approval is open.
    """
    if not offered.text or any(block.get("type") != "text" for block in offered.body.get("content", ())):
        return None
    asked = open_request(connection, waiting, "user")
    if asked is None:
        return None
    by = str(offered.sender.get("name") or offered.sender.get("id") or "user")
    body = {"request_id": asked.id, "decision": offered.text, "by": by, "feedback": None}
    accept_answer(connection, waiting, asked.id, body, offered.sender)
    # Kept under its own key too, so that a repeat of the message is known.
    row = msgspec.structs.replace(_input(offered, waiting.turn_id), kind="answer", state="done")
    insert_input(connection, row)
    return Accepted(Receipt(row.id, waiting.turn_id, 0), wake=waiting, superseded=waiting, answers=True)


def supersede(connection: Connection, waiting: TurnRow) -> None:
    """Let a waiting turn end without an answer: what it asked is closed by what came instead."""
    if find_input(connection, ANSWER_DOOR, _superseded_key(waiting)) is None:
        insert_input(
            connection,
            InboxRow(
                id=new_id("i"),
                thread_id=waiting.thread_id,
                door=ANSWER_DOOR,
                dedupe_key=_superseded_key(waiting),
                kind="notification",
                sender="{}",
                body='{"superseded":true}',
                turn_id=waiting.turn_id,
            ),
        )
    update_turn(connection, waiting.turn_id, state="queued", waiting_for=None)


def accept_answer(
    connection: Connection, turn: TurnRow, request_id: str, body: dict[str, Any], sender: dict[str, Any]
) -> bool:
    """Store a person's answer to a pending request; returns whether the turn must be woken.

    Args:
        body: `{"request_id", "decision", "by", "feedback"}`, perhaps `calls`.

    Raises:
        AlreadyAnswered: someone was first. NoPendingRequest: the turn no longer waits.
    """
    lock_session(connection, turn.thread_id)
    if find_input(connection, ANSWER_DOOR, request_id) is not None:
        raise AlreadyAnswered(f"request {request_id} was answered before")
    fresh = find_turn(connection, turn.turn_id)
    if (
        fresh is None
        or fresh.state not in OPEN
        or find_input(connection, ANSWER_DOOR, _superseded_key(turn)) is not None
    ):
        raise NoPendingRequest(f"request {request_id} is no longer open: its turn went on or ended")
    insert_input(
        connection,
        InboxRow(
            id=new_id("i"),
            thread_id=turn.thread_id,
            door=ANSWER_DOOR,
            dedupe_key=request_id,
            kind="answer",
            sender=msgspec.json.encode(sender).decode(),
            body=msgspec.json.encode(body).decode(),
            turn_id=turn.turn_id,
        ),
    )
    if fresh.state != "waiting":
        return False
    update_turn(connection, turn.turn_id, state="queued", waiting_for=None)
    return True


def requeue_steers(connection: Connection, turn: TurnRow, steers: list[InboxRow]) -> TurnRow | None:
    """Make a turn of steer messages that came too late for theirs; returns it."""
    if not steers:
        return None
    number = last_turn_number(connection, turn.thread_id) + 1
    late = TurnRow(turn_id=new_id("t"), thread_id=turn.thread_id, n=number)
    insert_turn(connection, late)
    return late


def _require_room(connection: Connection, session: SessionRow, limits: SessionSettings) -> None:
    if session.last_seq - (session.parent_seq or 0) >= limits.max_records:
        raise SessionError(
            f"session {session.thread_id} has {limits.max_records} records, the most a session may have; "
            "fork it or begin another"
        )
    if session.bytes >= limits.max_bytes:
        raise SessionError(
            f"session {session.thread_id} holds {limits.max_bytes >> 20} MB of records, the most a session "
            "may have; fork it or begin another"
        )
    if count_waiting(connection, session.thread_id) >= limits.queue_per_session:
        raise QueueFull(
            f"{limits.queue_per_session} inputs wait in this session (limits.queue_per_session); "
            "send it again in a while",
            retry_after_s=30.0,
        )
    if count_waiting(connection) >= limits.queue_total:
        raise QueueFull(
            f"{limits.queue_total} inputs wait in all sessions (limits.queue_total); send it again later",
            retry_after_s=60.0,
        )


def _new_turn(connection: Connection, offered: Offered, ahead_of_queue: TurnRow | None) -> TurnRow:
    if ahead_of_queue is None:
        number = last_turn_number(connection, offered.thread_id) + 1
    else:
        number = move_queue_back(connection, offered.thread_id, ahead_of_queue.n)
    return TurnRow(turn_id=new_id("t"), thread_id=offered.thread_id, n=number, kind=offered.turn_kind)


def _input(offered: Offered, turn_id: str) -> InboxRow:
    return InboxRow(
        id=new_id("i"),
        thread_id=offered.thread_id,
        door=offered.door,
        dedupe_key=offered.dedupe_key,
        kind=offered.kind,
        sender=msgspec.json.encode(offered.sender).decode(),
        body=msgspec.json.encode(offered.body).decode(),
        turn_id=turn_id,
        received_at=now_iso(),
    )


def positions(open_turns: Sequence[TurnRow]) -> dict[str, int]:
    """Return how many turns run or wait before each of a session's open turns."""
    return {turn.turn_id: index for index, turn in enumerate(open_turns)}


def _position(open_turns: Sequence[TurnRow], turn_id: str | None) -> int:
    return positions(open_turns).get(turn_id or "", 0)


def _superseded_key(turn: TurnRow) -> str:
    return f"superseded:{turn.turn_id}:{turn.attempt}"


def content_of(body: str | Mapping[str, Any], limits: SessionSettings) -> tuple[list[dict[str, Any]], str]:
    """Return a message's blocks as plain data, and its text. Pure.

    Args:
        body: text, or a mapping whose `content` is text or a list of blocks.

    Raises:
        InvalidArgument: empty, malformed, or above a limit; names the setting.
    """
    raw = body if isinstance(body, str) else body.get("content")
    if not isinstance(raw, str | list):
        raise InvalidArgument('a message is text, or {"content": text or a list of blocks}')
    try:
        blocks = blocks_from_data(cast("str | list[Mapping[str, Any]]", raw))
    except (msgspec.ValidationError, AttributeError, TypeError) as error:
        raise InvalidArgument(f"the message's content cannot be read: {error}") from error
    text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
    images = sum(1 for block in blocks if isinstance(block, ImageBlock))
    if not text.strip() and not images:
        raise InvalidArgument("the message is empty")
    size = len(text.encode("utf-8", "surrogateescape"))
    if size > limits.message_bytes:
        raise MessageTooLarge(
            f"the message has {size / (1 << 20):.2f} MiB of text; limits.message_mb allows "
            f"{limits.message_bytes / (1 << 20):g} MiB"
        )
    if images > MAX_IMAGES:
        raise InvalidArgument(f"the message has {images} images; at most {MAX_IMAGES} are allowed")
    return [block_to_data(block) for block in blocks], text
