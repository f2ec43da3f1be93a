"""What was used, and limits in USD (SV-32).

Here: the routes. Not here: sums (`store/rows/usage_report.py`), enforcing limits (`sessions/turn/money.py`).
"""

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from bowerbird.core.timestamps import to_iso
from bowerbird.server.common.context import ServerContext
from bowerbird.server.common.json_answers import answer, clean
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.conversations import hidden_owner
from bowerbird.server.routes.common import Context, Shown, StrictBody, User, Viewer
from bowerbird.server.routes.shapes import UsageRow
from bowerbird.sessions.lookup import OWN, MoneyScope, OutcomesBy

router = APIRouter(prefix="/api", tags=["usage"])

Scope = Literal["session", "user", "schedule", "deployment"]
# Not a bare date: that would take the number of a second for one.
Day = Annotated[date, BeforeValidator(lambda text: date.fromisoformat(text) if len(text) == 10 else None)]
DAILY = ("user", "schedule", "deployment")


class UsageShown(Shown):
    """Sums by key; cost null = some call has no price."""

    by: str
    rows: list[UsageRow]


class OutcomeRow(Shown):
    """How many turns' changes came to what."""

    key: str
    changes: int
    landed: int
    part: int
    discarded: int
    undone: int
    open: int


class OutcomesShown(Shown):
    """Counts by key."""

    by: str
    rows: list[OutcomeRow]


class BudgetShown(Shown):
    """A limit and where it stands; `limit_usd` null = none."""

    scope: str
    key: str
    limit_usd: float | None
    source: str
    spent_usd: float
    held_usd: float


class NewBudget(StrictBody):
    """A limit to set; `limit_usd` null takes it away, so that the settings' holds again."""

    scope: Scope
    key: Annotated[str | None, Field(max_length=200)] = None
    limit_usd: Annotated[float | None, Field(ge=0, le=1e9, allow_inf_nan=False)]


@router.get("/usage", response_model=UsageShown, summary="What was used")
async def used(
    context: Context,
    caller: Viewer,
    start: Annotated[Day | None, Query(alias="from", description="First UTC day.")] = None,
    end: Annotated[Day | None, Query(alias="to", description="Last UTC day.")] = None,
    by: Literal["day", "model", "user", "conversation"] = "day",
) -> Response:
    """Of the caller's conversations; of all for an admin."""
    until = end + timedelta(days=1) if end is not None and end < date.max else None
    rows = await context.sessions.lookup.usage(
        by, since=_at(start), until=_at(until), owner=hidden_owner(caller)
    )
    return answer({"by": by, "from": start, "to": end, "rows": rows})


@router.get("/usage/outcomes", response_model=OutcomesShown, summary="What became of changes")
async def outcomes(
    context: Context,
    caller: Viewer,
    start: Annotated[Day | None, Query(alias="from", description="First UTC day.")] = None,
    end: Annotated[Day | None, Query(alias="to", description="Last UTC day.")] = None,
    by: OutcomesBy = "model",
) -> Response:
    """Of the caller's conversations; of all for an admin. Each turn that changed files counts once.

    They landed, landed in part, were discarded, were landed and taken back, or are open.
    """
    until = end + timedelta(days=1) if end is not None and end < date.max else None
    rows = await context.sessions.lookup.outcomes(
        by, since=_at(start), until=_at(until), owner=hidden_owner(caller)
    )
    return answer({"by": by, "from": start, "to": end, "rows": rows})


def _at(day: date | None) -> str | None:
    return None if day is None else to_iso(datetime(day.year, day.month, day.day, tzinfo=UTC))


@router.get("/budgets", response_model=list[BudgetShown], summary="Limits in USD and where they stand")
async def budgets(context: Context, caller: Viewer) -> Response:
    """The caller's daily limit, limits set on their conversations, and for an admin all others too."""
    lookup = context.sessions.lookup
    is_admin = caller.role == "admin"
    limits = await lookup.limits(None if is_admin else caller.user_id)
    wanted = {("session" if scope == OWN else scope, key) for scope, key in limits}
    wanted |= {("user", caller.user_id), *([("deployment", "")] if is_admin else [])}
    return answer(await _rows(context, wanted, limits))


async def _rows(
    context: ServerContext, wanted: Collection[tuple[str, str]], limits: Mapping[tuple[str, str], float]
) -> list[dict[str, Any]]:
    """Return where the limits `wanted` stand; `limits` are those that people set."""
    today = datetime.now(UTC).date().isoformat()
    places: list[MoneyScope] = []
    asked: list[tuple[float | None, bool]] = []  # the limit, and whether a person set it
    for scope, key in sorted(wanted):
        limit = limits.get((scope, key), context.settings.budgets.get(scope))
        own = limits.get((OWN, key)) if scope == "session" else None
        if own is not None:
            limit = own if limit is None else min(own, limit)
        places.append(MoneyScope(scope, key, today if scope in DAILY else "", limit or 0.0))
        asked.append((limit, own is not None or (scope, key) in limits))
    return [
        {
            "scope": standing.scope.scope,
            "key": standing.scope.key,
            "limit_usd": None if limit is None else standing.limit_usd,
            "source": "set" if is_set else "settings",
            "spent_usd": standing.spent,
            "held_usd": standing.held,
        }
        for standing, (limit, is_set) in zip(
            await context.sessions.lookup.standings(places), asked, strict=True
        )
    ]


@router.put("/budgets", response_model=BudgetShown, summary="Set a limit in USD")
async def set_budget(wanted: NewBudget, context: Context, caller: User) -> Response:
    """Of a conversation of one's own, within what settings or an admin gave; any other needs the role admin.

    Holds from the next model call on.
    """
    key = "" if wanted.scope == "deployment" else clean(wanted.key or "")
    if wanted.scope in ("session", "schedule"):
        await owned_session(context, caller, key)
    lookup, limit = context.sessions.lookup, wanted.limit_usd
    settings, authority, by = context.sessions.settings, caller.authority, caller.user_id
    await lookup.set_limit(wanted.scope, key, limit, settings, authority=authority, by=by)
    await context.sessions.keepers.limits_lifted()
    [row] = await _rows(context, [(wanted.scope, key)], await lookup.limits())
    return answer(row)
