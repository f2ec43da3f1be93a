"""Answers kept for repeated requests (SV-3): one row per user and Idempotency-Key, for 24 hours.

Here: finding, keeping and forgetting them inside a given transaction. Not here: what a request's
fingerprint is, which answers are kept (`server/http/idempotency.py`).
"""

from datetime import UTC, datetime, timedelta

import msgspec
from sqlalchemy import Connection, select

from bowerbird.core.timestamps import to_iso
from bowerbird.store.sql.tables import answers

KEPT_HOURS = 24


class StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer; `fingerprint` is of the request it was given to, `at` when."""

    user_id: str
    key: str
    fingerprint: str
    status: int
    content_type: str
    body: str
    at: str


def find_answer(connection: Connection, user_id: str, key: str) -> StoredAnswer | None:
    """Return the answer given to this key in the last 24 hours, None for a new key."""
    statement = select(answers).where(
        answers.c.user_id == user_id, answers.c.key == key, answers.c.at > _oldest()
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else StoredAnswer(**row)


def keep_answer(connection: Connection, answer: StoredAnswer) -> None:
    """Keep an answer in place of an outdated one of the same key; what is too old is forgotten."""
    connection.execute(answers.delete().where(answers.c.at <= _oldest()))
    here = (answers.c.user_id == answer.user_id) & (answers.c.key == answer.key)
    connection.execute(answers.delete().where(here))
    connection.execute(answers.insert().values(**msgspec.structs.asdict(answer)))


def _oldest() -> str:
    return to_iso(datetime.now(UTC) - timedelta(hours=KEPT_HOURS))
