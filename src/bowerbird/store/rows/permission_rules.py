"""Rows of `permission_rules`: what people always allow (UI-71).

Here: reading and writing those rows inside a given transaction. Not here: what a rule covers
(`agent/always.py`), which of them a session's turns follow (`sessions/permission_rules.py`).
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, and_, or_, select

from bowerbird.core.timestamps import now_iso
from bowerbird.store.sql.tables import permission_rules

MOST = 1_000  # rules of one person; beyond them the oldest go, and are asked about again


class PermissionRow(msgspec.Struct, frozen=True):
    """One rule of a person.

    Attributes:
        owner: user id, "" for the one user of a server without auth.
        scope: `session`, `workspace` or `everywhere`; target: that session's id or workspace's path, else "".
        rule: as `Policy` reads it. by: who answered. at: when.
    """

    id: int
    owner: str
    scope: str
    target: str
    rule: str
    by: str
    at: str


def add_rules(
    connection: Connection, owner: str, scope: str, target: str, rules: Sequence[str], by: str
) -> None:
    """Keep rules that are not kept yet."""
    table = permission_rules.c
    here = and_(table.owner == owner, table.scope == scope, table.target == target)
    known = set(connection.scalars(select(table.rule).where(here)))
    at = now_iso()
    rows = [
        {"owner": owner, "scope": scope, "target": target, "rule": rule, "by": by, "at": at}
        for rule in dict.fromkeys(rules)
        if rule not in known
    ]
    if not rows:
        return
    connection.execute(permission_rules.insert(), rows)
    newest = select(table.id).where(table.owner == owner).order_by(table.id.desc()).offset(MOST - 1).limit(1)
    last = connection.scalar(newest)
    if last is not None:
        connection.execute(permission_rules.delete().where(table.owner == owner, table.id < last))


def rules_of(connection: Connection, owner: str, workspace: str, thread_id: str) -> list[str]:
    """Return the rules that hold in a session of a workspace, the oldest first."""
    table = permission_rules.c
    query = (
        select(table.rule)
        .where(
            table.owner == owner,
            or_(
                table.scope == "everywhere",
                and_(table.scope == "workspace", table.target == workspace),
                and_(table.scope == "session", table.target == thread_id),
            ),
        )
        .order_by(table.id)
    )
    return list(connection.scalars(query))


def permission_list(connection: Connection, owner: str | None) -> list[PermissionRow]:
    """Return the rules of a person, or of all for None, the newest first."""
    query = select(permission_rules).order_by(permission_rules.c.id.desc())
    if owner is not None:
        query = query.where(permission_rules.c.owner == owner)
    return [PermissionRow(**row) for row in connection.execute(query).mappings()]


def remove_rule(connection: Connection, rule_id: int, owner: str | None) -> bool:
    """Forget a rule of a person, or of anybody for None; whether there was one."""
    where = [permission_rules.c.id == rule_id]
    if owner is not None:
        where.append(permission_rules.c.owner == owner)
    return connection.execute(permission_rules.delete().where(*where)).rowcount > 0


def forget_session(connection: Connection, thread_id: str) -> None:
    """Forget what was allowed in one session only."""
    table = permission_rules.c
    connection.execute(permission_rules.delete().where(table.scope == "session", table.target == thread_id))
