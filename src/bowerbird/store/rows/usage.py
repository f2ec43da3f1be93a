"""What was used, what is reserved, and which limits hold (SE-41 … SE-43, MO-49).

Here: sums over `usage`, rows of `budgets` and `reservations`, inside a given transaction. Not
here: whether a call fits (`models/budget.py`), prices.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
)

from bowerbird.store.sql.statements import rows_where
from bowerbird.store.sql.tables import budgets, reservations, sessions, turns, usage

HELD, SETTLED, RELEASED = "held", "settled", "released"
_AT_ONCE = 100  # scopes asked for at once: a condition of several hundred terms, of SQLite's thousand


class MoneyScope(msgspec.Struct, frozen=True):
    """One limit in USD that a call counts against.

    Attributes:
        scope: `session`, `user`, `schedule` or `deployment`.
        key: thread id, user id, task id, or "" for the deployment.
        window: "" for ever, or the UTC day `2026-11-20`.
    """

    scope: str
    key: str
    window: str
    limit_usd: float


class Standing(msgspec.Struct, frozen=True):
    """A scope with what is spent and held; `limit_usd` includes what a person added."""

    scope: MoneyScope
    limit_usd: float
    spent: float
    held: float


class TurnUsage(msgspec.Struct, frozen=True):
    """Totals of a turn's model calls; `cost` None when one of them has no price."""

    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost: float | None
    estimated: bool
    repeated_tokens: int = 0


def turn_usage(connection: Connection, turn_id: str) -> TurnUsage:
    """Return what a turn used so far, every attempt included, and how much of it was sent again."""
    whole = _summed(connection.execute(_OF_TURN, {"b_turn": turn_id}).mappings().one())
    seen = repeated = 0
    for row in connection.execute(_CALLS_OF_TURN, {"b_turn": turn_id}):
        sent = row.input_tokens + row.cache_read_tokens + row.cache_write_tokens
        repeated += max(row.cache_read_tokens, min(sent, seen))
        seen = sent + row.output_tokens
    return msgspec.structs.replace(whole, repeated_tokens=repeated)


def _totals(connection: Connection, which: ColumnElement[bool]) -> TurnUsage:
    return _summed(connection.execute(_sums(which)).mappings().one())


def _sums(which: ColumnElement[bool]) -> Select[Any]:
    columns = (
        usage.c.input_tokens,
        usage.c.output_tokens,
        usage.c.cache_read_tokens,
        usage.c.cache_write_tokens,
    )
    guessed = case((usage.c.estimated.is_(True), 1), else_=0)
    return select(
        func.count().label("calls"),
        func.count(usage.c.cost).label("priced"),
        func.coalesce(func.sum(usage.c.cost), 0.0).label("cost"),
        func.coalesce(func.sum(guessed), 0).label("guessed"),
        *(func.coalesce(func.sum(column), 0).label(column.name) for column in columns),
    ).where(which)


_OF_TURN = _sums(usage.c.turn_id == bindparam("b_turn"))
_CALLS_OF_TURN = (
    select(usage.c.input_tokens, usage.c.cache_read_tokens, usage.c.cache_write_tokens, usage.c.output_tokens)
    .where(usage.c.turn_id == bindparam("b_turn"), usage.c.purpose != "tool")
    .order_by(usage.c.id)
)


def _summed(row: RowMapping) -> TurnUsage:
    return TurnUsage(
        calls=int(row["calls"]),
        input_tokens=int(row["input_tokens"]),
        output_tokens=int(row["output_tokens"]),
        cache_read_tokens=int(row["cache_read_tokens"]),
        cache_write_tokens=int(row["cache_write_tokens"]),
        cost=float(row["cost"]) if row["calls"] == row["priced"] else None,
        estimated=bool(row["guessed"]),
    )


def session_usage(connection: Connection, thread_id: str) -> TurnUsage:
    """Return what all model calls of a session used, its subagents' and teammates' included."""
    return _totals(connection, _with_children(connection, thread_id))


_BELOW = (".sub", ".team.")  # what follows a session's id in those of its subagents and teammates


def _with_children(connection: Connection, thread_id: str) -> ColumnElement[bool]:
    below = [_begins(connection, f"{thread_id}{mark}") for mark in _BELOW]
    return or_(usage.c.thread_id == thread_id, *below)


def _begins(connection: Connection, prefix: str) -> ColumnElement[bool]:
    if connection.dialect.name != "sqlite":
        return usage.c.thread_id.startswith(prefix, autoescape=True)
    # SQLite's LIKE folds case, so that no index serves it: each model call would read the whole table.
    return and_(usage.c.thread_id >= prefix, usage.c.thread_id < prefix[:-1] + chr(ord(prefix[-1]) + 1))


# ---------------------------------------------------------------- money limits


def standings(connection: Connection, scopes: Sequence[MoneyScope]) -> list[Standing]:
    """Return where each scope stands: spent, held by other calls, and its limit.

    Asks a few times per hundred scopes of one kind, not once per scope.
    """
    kinds: dict[tuple[str, str], list[str]] = {}
    for s in scopes:
        kinds.setdefault((s.scope, s.window), []).append(s.key)
    added: dict[tuple[str, str, str], float] = {}
    spent: dict[tuple[str, str, str], float] = {}
    held: dict[tuple[str, str, str], float] = {}
    for (scope, window), keys in kinds.items():
        for at in range(0, len(keys), _AT_ONCE):
            some = keys[at : at + _AT_ONCE]
            for sums, found in (
                (added, _added(connection, scope, some, window)),
                (spent, _spent(connection, scope, some, window)),
                (held, _held(connection, scope, some, window)),
            ):
                sums.update({(scope, key, window): usd for key, usd in found.items()})
    places = [(s.scope, s.key, s.window) for s in scopes]
    return [
        Standing(s, s.limit_usd + added.get(place, 0.0), spent.get(place, 0.0), held.get(place, 0.0))
        for s, place in zip(scopes, places, strict=True)
    ]


def hold(
    connection: Connection, scopes: Sequence[MoneyScope], turn_id: str, usd: float, tokens: int
) -> list[int]:
    """Reserve `usd` and `tokens` in every scope; returns the reservations' numbers."""
    held: list[int] = []
    for scope in scopes:
        result = connection.execute(
            reservations.insert().values(
                scope=scope.scope, key=_held_key(scope), turn_id=turn_id, usd=usd, tokens=tokens, state=HELD
            )
        )
        key = result.inserted_primary_key
        assert key is not None, "an insert of one row has a key"
        held.append(int(key[0]))
    return held


def finish_reservations(connection: Connection, ids: Sequence[int], state: str) -> None:
    """Mark reservations `settled` (their usage row is written) or `released` (never sent)."""
    if ids:
        connection.execute(reservations.update().where(reservations.c.id.in_(ids)).values(state=state))


def settle_dead(connection: Connection, thread_id: str, turn_id: str, at: str) -> int:
    """Turn reservations that a dead attempt left into estimated usage; returns how many calls."""
    rows = rows_where(connection, reservations, {"turn_id": turn_id, "state": HELD}).all()
    if not rows:
        return 0
    calls = max(sum(1 for row in rows if row.scope == scope) for scope in {row.scope for row in rows})
    first_scope = rows[0].scope
    for row in (row for row in rows if row.scope == first_scope):
        connection.execute(
            usage.insert().values(
                thread_id=thread_id, turn_id=turn_id, agent="main", purpose="main", model="",
                input_tokens=row.tokens or 0, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0,
                cost=row.usd, priced=row.usd is not None, estimated=True, at=at,
            )
        )  # fmt: skip
    finish_reservations(connection, [row.id for row in rows], SETTLED)
    return calls


def add_to_limit(connection: Connection, scope: str, key: str, window: str, usd: float) -> None:
    """Raise a limit by `usd` for its window: a person's answer to a waiting turn."""
    here = and_(budgets.c.scope == scope, budgets.c.key == key, budgets.c.window == window)
    present = connection.execute(select(budgets.c.limit_usd).where(here)).first()
    if present is None:
        connection.execute(budgets.insert().values(scope=scope, key=key, window=window, limit_usd=usd))
    else:
        connection.execute(budgets.update().where(here).values(limit_usd=(present.limit_usd or 0.0) + usd))


def _held_key(scope: MoneyScope) -> str:
    return f"{scope.key}@{scope.window}" if scope.window else scope.key


def added_to_limit(connection: Connection, scope: MoneyScope) -> float:
    """Return what people's answers added to a limit for its window."""
    return _added(connection, scope.scope, [scope.key], scope.window).get(scope.key, 0.0)


def _added(connection: Connection, scope: str, keys: Sequence[str], window: str) -> dict[str, float]:
    here = (budgets.c.scope == scope, budgets.c.key.in_(keys), budgets.c.window == window)
    rows = connection.execute(select(budgets.c.key, budgets.c.limit_usd).where(*here))
    return {row.key: float(row.limit_usd or 0.0) for row in rows}


def _spent(connection: Connection, scope: str, keys: Sequence[str], window: str) -> dict[str, float]:
    """Return what was spent, by those of `keys` of which there is something."""
    of: ColumnElement[str] = literal("")
    statement, where = select(func.sum(usage.c.cost)), list[ColumnElement[bool]]()
    if scope == "session":
        of = usage.c.thread_id
        where.append(or_(*(_with_children(connection, key) for key in keys)))
    elif scope == "user":
        of = func.coalesce(sessions.c.owner, "")
        statement = statement.join(sessions, sessions.c.thread_id == usage.c.thread_id)
        named = sessions.c.owner.in_(keys)
        where.append(or_(named, sessions.c.owner.is_(None)) if "" in keys else named)
    elif scope == "schedule":
        of = usage.c.thread_id
        statement = statement.join(turns, turns.c.turn_id == usage.c.turn_id)
        where += [of.in_(keys), turns.c.kind == "schedule"]
    if window:
        # A range, not a prefix: so the index on `at` is used, and a day costs what that day has.
        where += [usage.c.at >= window, usage.c.at < _day_after(window)]
    if scope != "deployment":
        statement = statement.group_by(of)
    sums = {
        str(key): float(usd or 0.0)
        for usd, key in connection.execute(statement.add_columns(of).where(*where))
    }
    return _with_those_below(sums, keys) if scope == "session" else sums


def _with_those_below(sums: Mapping[str, float], keys: Sequence[str]) -> dict[str, float]:
    """Return the sums of threads as sums of the sessions `keys` that they belong to. Pure."""
    wanted, found = set(keys), dict[str, float]()
    for thread_id, usd in sums.items():
        ends = (match.start() for mark in _BELOW for match in re.finditer(re.escape(mark), thread_id))
        for key in wanted.intersection((thread_id, *(thread_id[:end] for end in ends))):
            found[key] = found.get(key, 0.0) + usd
    return found


def _day_after(day: str) -> str:
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()


def _held(connection: Connection, scope: str, keys: Sequence[str], window: str) -> dict[str, float]:
    named = {_held_key(MoneyScope(scope, key, window, 0.0)): key for key in keys}
    here = (reservations.c.scope == scope, reservations.c.key.in_(named), reservations.c.state == HELD)
    kept = reservations.c.key
    rows = connection.execute(select(kept, func.sum(reservations.c.usd)).where(*here).group_by(kept))
    return {named[key]: float(usd or 0.0) for key, usd in rows}
