"""Usage summed for people: by day, model, user or conversation; limits that were set (SV-32).

Here: those reads and writes inside a given transaction. Not here: which limits a call counts against
(`sessions/turn/money.py`), prices.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, Connection, case, func, select, tuple_

from bowerbird.store.rows.usage import MoneyScope
from bowerbird.store.sql.statements import rows_where
from bowerbird.store.sql.tables import budgets, sessions, usage

By = Literal["day", "model", "user", "conversation"]
OWN = "own"  # scope of the lower limit that a conversation's owner keeps on it
STANDING = "standing"  # window of a limit that a person set, in place of the settings'


def usage_rows(
    connection: Connection, by: By, *, since: str | None, until: str | None, owner: str | None
) -> list[dict[str, Any]]:
    """Return sums by key; `cost` counts priced calls only and is None when a call has no price.

    Args:
        since, until: record times, the second excluded; None = open.
        owner: only of this user's sessions, None = of all.
    """
    key = _key(by)
    unpriced = func.sum(case((usage.c.cost.is_(None), 1), else_=0))
    statement = select(
        key.label("key"),
        func.count().label("calls"),
        func.sum(usage.c.input_tokens).label("input_tokens"),
        func.sum(usage.c.output_tokens).label("output_tokens"),
        func.sum(usage.c.cache_read_tokens).label("cache_read_tokens"),
        func.sum(usage.c.cache_write_tokens).label("cache_write_tokens"),
        func.sum(usage.c.cost).label("priced"),
        unpriced.label("unpriced_calls"),
    ).join(sessions, sessions.c.thread_id == usage.c.thread_id)
    if since is not None:
        statement = statement.where(usage.c.at >= since)
    if until is not None:
        statement = statement.where(usage.c.at < until)
    if owner is not None:
        statement = statement.where(sessions.c.owner == owner)
    rows = connection.execute(statement.group_by(key).order_by(key)).mappings()
    return [_row(dict(row)) for row in rows]


def _key(by: By) -> ColumnElement[str]:
    if by == "day":
        return func.substr(usage.c.at, 1, 10)
    if by == "model":
        return func.coalesce(usage.c.model, "")
    if by == "user":
        return func.coalesce(sessions.c.owner, "")
    return func.coalesce(usage.c.thread_id, "")


def _row(row: dict[str, Any]) -> dict[str, Any]:
    known, unpriced = float(row.pop("priced") or 0.0), int(row["unpriced_calls"])
    numbers = {name: int(value or 0) for name, value in row.items() if name != "key"}
    return {"key": row["key"], **numbers, "cost": None if unpriced else known, "known_cost": known}


def standing_limits(connection: Connection) -> dict[tuple[str, str], float]:
    """Return the limits in USD that people set, by (scope, key); key "*" is for every key of the scope."""
    rows = rows_where(connection, budgets, {"window": STANDING})
    return {(row.scope, row.key): float(row.limit_usd) for row in rows if row.limit_usd is not None}


def limits_of(connection: Connection, owner: str) -> dict[tuple[str, str], float]:
    """Return those of `standing_limits` that are a user's: their own, and those of their sessions."""
    named = select(budgets.c.scope, budgets.c.key, budgets.c.limit_usd).where(budgets.c.window == STANDING)
    own = named.where(budgets.c.scope == "user", budgets.c.key == owner)
    theirs = named.join(sessions, sessions.c.thread_id == budgets.c.key).where(
        budgets.c.scope.in_(("session", OWN, "schedule")), sessions.c.owner == owner
    )
    rows = [*connection.execute(own), *connection.execute(theirs)]
    return {(row.scope, row.key): float(row.limit_usd) for row in rows if row.limit_usd is not None}


def limits_now(connection: Connection, scopes: Sequence[MoneyScope]) -> list[MoneyScope]:
    """Return `scopes` with the limits that people set since they were read; those of settings stay."""
    named = [(scope.scope, scope.key) for scope in scopes]
    named += [(OWN, key) for scope, key in named if scope == "session"]
    found = connection.execute(
        select(budgets.c.scope, budgets.c.key, budgets.c.limit_usd).where(
            budgets.c.window == STANDING, tuple_(budgets.c.scope, budgets.c.key).in_(named)
        )
    )
    standing = {(row.scope, row.key): float(row.limit_usd) for row in found if row.limit_usd is not None}
    fresh: list[MoneyScope] = []
    for scope in scopes:
        limit = standing.get((scope.scope, scope.key), scope.limit_usd)
        own = standing.get((OWN, scope.key)) if scope.scope == "session" else None
        fresh.append(msgspec.structs.replace(scope, limit_usd=limit if own is None else own))
    return fresh


def set_standing_limit(connection: Connection, scope: str, key: str, limit_usd: float | None) -> None:
    """Set a limit in place of the settings'; None takes it away."""
    here = (budgets.c.scope == scope) & (budgets.c.key == key) & (budgets.c.window == STANDING)
    connection.execute(budgets.delete().where(here))
    if limit_usd is not None:
        connection.execute(
            budgets.insert().values(scope=scope, key=key, window=STANDING, limit_usd=limit_usd)
        )
