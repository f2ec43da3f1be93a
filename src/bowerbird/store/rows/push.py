"""Rows of `push_subscriptions`: which browsers are told what a person's agents need (UI-95).

Here: reading and writing those rows inside a given transaction. Not here: keys of the sender, sending.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, select

from bowerbird.core.ids import new_id
from bowerbird.core.timestamps import now_iso
from bowerbird.store.rows.tokens import unusable
from bowerbird.store.sql.tables import push_subscriptions

MOST = 20  # browsers of one person; beyond them the oldest go


class PushRow(msgspec.Struct, frozen=True, kw_only=True):
    """One browser.

    Attributes:
        owner: user id, "" for the one user of a server without auth.
        credential: the token it was made with, "" for none: it ends with that.
        endpoint: address of the push service, which knows the browser. p256dh, auth: the browser's keys.
    """

    id: str
    owner: str
    credential: str
    endpoint: str
    p256dh: str
    auth: str
    created_at: str


def keep_subscription(
    connection: Connection, owner: str, credential: str, endpoint: str, p256dh: str, auth: str
) -> None:
    """Keep a browser; one that is known already belongs to whoever said so last."""
    table = push_subscriptions.c
    connection.execute(push_subscriptions.delete().where(table.endpoint == endpoint))
    row = PushRow(
        id=new_id("p"), owner=owner, credential=credential, endpoint=endpoint, p256dh=p256dh, auth=auth,
        created_at=now_iso(),
    )  # fmt: skip
    connection.execute(push_subscriptions.insert().values(**msgspec.structs.asdict(row)))
    newest = select(table.id).where(table.owner == owner).order_by(table.created_at.desc(), table.id.desc())
    old = list(connection.scalars(newest.offset(MOST)))
    connection.execute(push_subscriptions.delete().where(table.id.in_(old)))


def subscriptions_of(connection: Connection, owner: str) -> list[PushRow]:
    """Return a person's browsers, without those whose credential counts no longer; these are forgotten."""
    table = push_subscriptions.c
    found = connection.execute(select(push_subscriptions).where(table.owner == owner)).mappings()
    return _usable(connection, [PushRow(**row) for row in found])


def find_subscription(connection: Connection, row_id: str) -> PushRow | None:
    """Return one browser; None when it is forgotten, or its credential counts no longer."""
    row = (
        connection.execute(select(push_subscriptions).where(push_subscriptions.c.id == row_id))
        .mappings()
        .first()
    )
    return next(iter(_usable(connection, [PushRow(**row)])), None) if row is not None else None


def drop_subscription(connection: Connection, row_id: str) -> None:
    """Forget a browser by its id."""
    connection.execute(push_subscriptions.delete().where(push_subscriptions.c.id == row_id))


def drop_endpoint(connection: Connection, owner: str, endpoint: str) -> bool:
    """Forget a person's browser by its address; whether it was there."""
    table = push_subscriptions.c
    here = push_subscriptions.delete().where(table.owner == owner, table.endpoint == endpoint)
    return connection.execute(here).rowcount > 0


def _usable(connection: Connection, rows: Sequence[PushRow]) -> list[PushRow]:
    over = unusable(connection, {row.credential for row in rows if row.credential})
    if over:
        gone = [row.id for row in rows if row.credential in over]
        connection.execute(push_subscriptions.delete().where(push_subscriptions.c.id.in_(gone)))
    return [row for row in rows if row.credential not in over]
