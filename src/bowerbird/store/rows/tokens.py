"""Rows of `tokens` and `tickets`: who may come in, by the hash of a secret (SV-54, SV-55).

Here: making, finding, listing and revoking them inside a given transaction. Not here: what a role may do,
OIDC, the wire (`server/access`).
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec
from sqlalchemy import Connection, RowMapping, select

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.ids import new_id
from bowerbird.core.timestamps import now_iso, to_iso
from bowerbird.store.sql.tables import tickets, tokens

TokenRole = Literal["viewer", "user", "admin"]

PREFIX = "bb_"
TICKET_S = 30.0
MAX_NAME = 100
ROLES: tuple[TokenRole, ...] = ("viewer", "user", "admin")

_LIFETIME = re.compile(r"([1-9][0-9]{0,5})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class TokenRow(msgspec.Struct, frozen=True, kw_only=True):
    """A token without its secret.

    Attributes:
        user: whose things it works on; several tokens may be one user's.
        expires_at, revoked_at: None = not.
    """

    token_id: str
    name: str
    role: TokenRole
    user: str
    created_at: str
    expires_at: str | None = None
    revoked_at: str | None = None

    def is_usable(self, at: str) -> bool:
        """Whether it admits at the time `at`."""
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)


def digest(secret: str) -> str:
    """Return what is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def expiry(lifetime: str, now: datetime | None = None) -> str:
    """Return when something ends that begins now and lasts so long.

    Args:
        lifetime: a number and one of s, m, h, d, w.

    Raises:
        InvalidArgument: it is none.

    Example:
        >>> expiry("90d", datetime(2026, 1, 1, tzinfo=UTC))
        '2026-04-01T00:00:00.000000+00:00'
    """
    found = _LIFETIME.fullmatch(lifetime.strip())
    if found is None:
        raise InvalidArgument(f"{lifetime!r} is not a lifetime; use for example 90d (s, m, h, d, w)")
    span = timedelta(**{_UNITS[found[2]]: int(found[1])})
    if span > timedelta(days=36_500):
        raise InvalidArgument(f"{lifetime!r} is longer than 100 years")
    return to_iso((now or datetime.now(UTC)) + span)


def make_token(
    connection: Connection, name: str, role: TokenRole, *, user: str = "", expires_at: str | None = None
) -> tuple[TokenRow, str]:
    """Add a token; return it and its secret (`bb_` + 256 random bits), which exists nowhere else.

    Args:
        name: what people call it; no usable token may have it. user: the name when "".

    Raises:
        InvalidArgument: the name is empty, too long or taken.
    """
    wanted = name.strip()
    if not wanted or len(wanted) > MAX_NAME or not wanted.isprintable():
        raise InvalidArgument(f"a token's name has 1 to {MAX_NAME} printable characters")
    now = now_iso()
    if any(row.is_usable(now) for row in tokens_named(connection, wanted)):
        raise InvalidArgument(f"there is a token {wanted!r} already; revoke it, or choose another name")
    secret = PREFIX + secrets.token_urlsafe(32)
    row = TokenRow(
        token_id=new_id("k"),
        name=wanted,
        role=role,
        user=user.strip() or wanted,
        created_at=now,
        expires_at=expires_at,
    )
    connection.execute(tokens.insert().values(**msgspec.structs.asdict(row), sha256=digest(secret)))
    return row, secret


def find_token(connection: Connection, secret: str) -> TokenRow | None:
    """Return the usable token of a secret, None for any other text."""
    wanted = digest(secret)
    row = connection.execute(select(tokens).where(tokens.c.sha256 == wanted)).mappings().first()
    if row is None or not hmac.compare_digest(str(row["sha256"]), wanted):
        return None
    found = _row(row)
    return found if found.is_usable(now_iso()) else None


def tokens_named(connection: Connection, name: str) -> list[TokenRow]:
    """Return every token that has or had this name."""
    return [_row(row) for row in connection.execute(select(tokens).where(tokens.c.name == name)).mappings()]


def all_tokens(connection: Connection) -> list[TokenRow]:
    """Return every token, the oldest first, those without use any more too."""
    statement = select(tokens).order_by(tokens.c.created_at, tokens.c.token_id)
    return [_row(row) for row in connection.execute(statement).mappings()]


def revoke(connection: Connection, name_or_id: str) -> list[TokenRow]:
    """Revoke the tokens of this name or id; return them, none when there is no usable one."""
    now = now_iso()
    named = (tokens.c.name == name_or_id) | (tokens.c.token_id == name_or_id)
    rows = [_row(row) for row in connection.execute(select(tokens).where(named)).mappings()]
    fresh = [row for row in rows if row.revoked_at is None]
    ids = [row.token_id for row in fresh]
    connection.execute(tokens.update().where(tokens.c.token_id.in_(ids)).values(revoked_at=now))
    return [msgspec.structs.replace(row, revoked_at=now) for row in fresh]


def unusable(connection: Connection, token_ids: Collection[str]) -> set[str]:
    """Return which of these tokens admit nobody any more; ids of something else are left out."""
    now = now_iso()
    rows = connection.execute(select(tokens).where(tokens.c.token_id.in_(list(token_ids)))).mappings()
    return {row.token_id for row in map(_row, rows) if not row.is_usable(now)}


# ---------------------------------------------------------------- tickets


def make_ticket(connection: Connection, caller: str) -> str:
    """Add a ticket that admits `caller` (JSON) once, within 30 seconds; return it."""
    now = datetime.now(UTC)
    connection.execute(tickets.delete().where(tickets.c.expires_at < to_iso(now)))
    secret = secrets.token_urlsafe(32)
    until = to_iso(now + timedelta(seconds=TICKET_S))
    connection.execute(tickets.insert().values(sha256=digest(secret), caller=caller, expires_at=until))
    return secret


def take_ticket(connection: Connection, secret: str) -> str | None:
    """Return whom a ticket admits and use it up; None for one that is unknown, used or too old."""
    wanted = digest(secret)
    row = connection.execute(select(tickets).where(tickets.c.sha256 == wanted)).mappings().first()
    if row is None:
        return None
    # Of two that come with one ticket, only one deletes it.
    used = connection.execute(tickets.delete().where(tickets.c.sha256 == wanted)).rowcount
    return str(row["caller"]) if used == 1 and now_iso() < str(row["expires_at"]) else None


def _row(row: RowMapping) -> TokenRow:
    values = {str(key): value for key, value in row.items() if key != "sha256"}
    return TokenRow(**values)
