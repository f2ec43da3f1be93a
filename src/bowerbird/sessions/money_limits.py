"""Who may change limits in money, and changing them (D-29).

Here: the rule, and the only two ways in which people change a limit: setting one, and answering the question
of a turn that reached one. Not here: what a limit does (`turn/money.py`), waking what waited for it.

Limits of users, schedules and the deployment, and those that settings gave, are an admin's. The owner of a
conversation may keep a lower limit of their own on it, and move that up to what settings or an admin gave.
"""

import logging
from collections.abc import Mapping
from typing import Any, Literal

from sqlalchemy import Connection

from bowerbird.core.errors import NotAllowed
from bowerbird.core.events import ApprovalRequest
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.thread_ids import root_of
from bowerbird.store.rows.usage import MoneyScope, add_to_limit, added_to_limit
from bowerbird.store.rows.usage_report import OWN, set_standing_limit, standing_limits
from bowerbird.store.store import Store

_log = logging.getLogger(__name__)

Authority = Literal["admin", "owner"]


def ceiling_of(connection: Connection, thread_id: str, settings: SessionSettings) -> float | None:
    """Return the limit of a conversation that settings or an admin gave, None when they gave none."""
    root = root_of(thread_id)
    given = standing_limits(connection).get(("session", root), settings.session_usd)
    if given is None:
        return None
    return given + added_to_limit(connection, MoneyScope("session", root, "", given))


def set_limit(
    connection: Connection,
    scope: str,
    key: str,
    limit_usd: float | None,
    settings: SessionSettings,
    *,
    authority: Authority,
    by: str,
) -> None:
    """Set a limit in place of the settings', or take it away with None.

    Raises:
        NotAllowed: it is not the caller's; nothing was changed.
    """
    if authority == "admin":
        set_standing_limit(connection, scope, key, limit_usd)
        if scope == "session":  # what an admin says now is the limit
            set_standing_limit(connection, OWN, root_of(key), None)
    else:
        if scope != "session":
            raise NotAllowed(f"only an admin sets limits of a {scope}" if scope != "deployment" else _ALL)
        ceiling = ceiling_of(connection, key, settings)
        if limit_usd is not None and ceiling is not None and limit_usd > ceiling:
            raise NotAllowed(_within(ceiling))
        set_standing_limit(connection, OWN, root_of(key), limit_usd)
    to = "the settings' limit" if limit_usd is None else f"{limit_usd:g} USD"
    _log.info("%s (%s) set the limit of %s %s to %s", by or "somebody", authority, scope, key, to)


_ALL = "only an admin sets limits of the deployment"


def _within(ceiling: float) -> str:
    return f"settings or an admin gave this conversation {ceiling:g} USD; only an admin gives more"


def check_raise(
    connection: Connection,
    request: ApprovalRequest,
    thread_id: str,
    amount: str | None,
    settings: SessionSettings,
    authority: Authority,
) -> None:
    """Refuse to raise the limit that a question names for whom it is not theirs.

    Raises:
        NotAllowed: nothing was changed; the question goes on waiting.
    """
    if authority == "admin":
        return
    scope = str(request.tools[0].get("scope")) if request.tools else ""
    if scope != "session":
        whose = {"deployment": "the deployment", "turn": "a turn"}.get(scope, f"a {scope}")
        raise NotAllowed(f"the limit of {whose} is raised by an admin; use stop, or ask one")
    own = standing_limits(connection).get((OWN, root_of(thread_id)))
    ceiling = ceiling_of(connection, thread_id, settings)
    if ceiling is not None and (own is None or own + _number(amount) > ceiling):
        raise NotAllowed(_within(ceiling))


async def permit_raise(
    store: Store,
    request: ApprovalRequest,
    body: Mapping[str, Any],
    thread_id: str,
    settings: SessionSettings,
    authority: Authority,
) -> None:
    """Refuse or note an answer that raises a limit; `body` is the answer's.

    Raises:
        NotAllowed: see `check_raise`.
    """
    amount, by = body["feedback"], body["by"] or "somebody"
    await store.read(lambda c: check_raise(c, request, thread_id, amount, settings, authority))
    scope = request.tools[0].get("scope") if request.tools else "?"
    _log.info("%s (%s) raised the limit of the %s by %s USD in %s", by, authority, scope, amount, thread_id)


def raise_limit(
    connection: Connection, scope: MoneyScope, thread_id: str, amount: float, settings: SessionSettings
) -> None:
    """Raise the limit that a turn reached, as its question was answered.

    An owner's own limit goes up first, as far as what was given; only the rest raises what was given.
    """
    if scope.scope == "session":
        own = standing_limits(connection).get((OWN, scope.key))
        if own is not None:
            ceiling = ceiling_of(connection, thread_id, settings)
            step = amount if ceiling is None else min(amount, max(0.0, ceiling - own))
            set_standing_limit(connection, OWN, scope.key, own + step)
            amount -= step
    if amount > 0:
        add_to_limit(connection, scope.scope, scope.key, scope.window, amount)


def _number(amount: str | None) -> float:
    try:
        return float(amount or "")
    except ValueError:
        return 0.0
