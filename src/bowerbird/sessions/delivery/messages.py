"""What must be delivered to people who have no open connection, as rows of the outbox (SE-37, 38). Pure.

Here: which ends and questions of a turn become which rows. Not here: sending (`outbox.py`),
committing, how a door cuts or formats a text (its `Deliverer`).
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from bowerbird.core.events import CUT_SHORT, ApprovalRequest
from bowerbird.core.forms import decode
from bowerbird.core.ids import ulid
from bowerbird.core.timestamps import to_iso
from bowerbird.store.rows.outbox import OutboxRow
from bowerbird.store.rows.sessions import SessionRow
from bowerbird.store.rows.turns import TurnRow

_WITHOUT_WORDS = {
    "end_turn": "Done.",
    "max_turns": "I stopped: all model calls of this turn are used.",
    "token_budget": "I stopped: the tokens of this turn are used.",
    "budget": "I stopped: the limit of money is reached.",
    "deadline": "I stopped: the time of this turn is over.",
    "stuck": "I stopped: I kept making the same calls.",
    "truncated": "I stopped: the answer is longer than the model can write.",
    "refused": "The model declines to answer that.",
}
"""What an ended turn says in a chat, by its stop reason (AS-12): where it has no words of its own, and after
them where a limit ended it. Where a question was not answered, the question says so itself."""

BY_PARTS = ("schedule",)  # kinds of turns whose part says itself what is owed (`SessionPart.ended`)


class Parcel(msgspec.Struct, frozen=True):
    """One thing for one address, as a door gets it.

    Attributes:
        kind: `answer`, `request`, `error`, `file`, `schedule`, or a door's own.
        content: `{"text": …}`; of a request also `request_id`, `request_kind`, `tools`; of a schedule
            `silent` (without notification) and, when it failed, `is_failure`.
        since: when it was made; too old ones are given up.
        is_plain: the receiver refused the formatting: send the text as it is.
    """

    kind: str
    content: dict[str, Any]
    since: str
    is_plain: bool = False


def has_address(session: SessionRow) -> bool:
    """Whether what the session says is delivered somewhere: it belongs to a chat of a channel."""
    return session.channel is not None and session.chat_id is not None


def answer_parcels(
    session: SessionRow, turn: TurnRow, contents: Sequence[Mapping[str, Any]]
) -> tuple[OutboxRow, ...]:
    """Return the rows of a turn's final answer, one per part."""
    return rows_of(session, turn, "answer", contents)


def words_at_end(text: str, state: str, stop_reason: str) -> str:
    """Return what a turn says at its end: its own text, in which way it ended where a limit did, or either.

    Example:
        >>> words_at_end(" ", "done", "end_turn"), words_at_end("", "cancelled", "cancelled")
        ('Done.', '')
    """
    how = _WITHOUT_WORDS.get(stop_reason, "") if state == "done" else ""
    if stop_reason in CUT_SHORT and how:
        go_on = (
            " Raise it, or start a new conversation."
            if stop_reason == "budget"
            else ' Say "go on", and I continue.'
        )
        return f"{text}\n\n{how}{go_on}".strip()
    return text if text.strip() else how


def error_parcels(session: SessionRow, turn: TurnRow, text: str) -> tuple[OutboxRow, ...]:
    """Return the row that tells a person that a turn failed; each attempt may say so once."""
    return rows_of(session, turn, f"error.{turn.attempt}", [{"text": text, "turn_id": turn.turn_id}])


def request_parcels(session: SessionRow, turn: TurnRow, request: ApprovalRequest) -> tuple[OutboxRow, ...]:
    """Return the row that puts a question before a person."""
    content = {
        "text": request.text,
        "request_id": request.id,
        "request_kind": request.kind,
        "tools": list(request.tools),
        "expires_at": request.expires_at,
    }
    return rows_of(session, turn, f"request.{request.id}", [content])


def rows_of(
    session: SessionRow, turn: TurnRow, kind: str, contents: Sequence[Mapping[str, Any]]
) -> tuple[OutboxRow, ...]:
    """Return rows for the session's chat, none when it has no address.

    Args:
        kind: with the turn and the part it is the key under which a thing is delivered once.
    """
    if session.channel is None or session.chat_id is None:
        return ()
    since = to_iso(datetime.now(UTC))
    return tuple(
        OutboxRow(
            id=row_id,
            thread_id=session.thread_id,
            turn_id=turn.turn_id,
            door=session.channel,
            address=session.chat_id,
            part=part,
            body=msgspec.json.encode(Parcel(kind.partition(".")[0], dict(content), since)).decode(),
            dedupe_key=f"{turn.turn_id}:{kind}:{part}",
        )
        for part, (row_id, content) in enumerate(zip(ordered_ids(len(contents)), contents, strict=True))
    )


def parcel_of(row: OutboxRow) -> Parcel:
    """Return what a row holds."""
    return decode(row.body, Parcel)


def ordered_ids(count: int) -> list[str]:
    """Return ids whose order is the order of the list, made at one instant.

    Example:
        >>> ids = ordered_ids(3)
        >>> ids == sorted(ids)
        True
    """
    begin = int(datetime.now(UTC).timestamp() * 1000)
    # The random part orders nothing; the number in front of it does.
    return [f"o_{ulid(begin)[:10]}{number:04d}{ulid(begin)[14:]}" for number in range(count)]
