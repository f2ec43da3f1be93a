"""Money limits shared by all turns of a database: reserve before a call, settle after it (SE-42, 43).

Here: which limits a turn counts against, and the loop's `Budget` over the store. Not here: the
arithmetic (`models/budget.py`), token limits of a turn (the loop's own), who is asked.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from sqlalchemy import Connection

from bowerbird.agent.turn import TurnRun
from bowerbird.core.errors import BowerbirdError
from bowerbird.core.events import ApprovalAnswer, ApprovalRequest
from bowerbird.core.usage import Usage
from bowerbird.models.budget import BudgetRefusal, PriceOf, Reservation, Scope, fit
from bowerbird.sessions.money_limits import raise_limit
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.thread_ids import root_of
from bowerbird.store.rows.sessions import SessionRow
from bowerbird.store.rows.turns import TurnRow
from bowerbird.store.rows.usage import SETTLED, MoneyScope, finish_reservations, hold, standings
from bowerbird.store.rows.usage_report import OWN, limits_now, standing_limits
from bowerbird.store.sql.turnstile import pass_alone
from bowerbird.store.store import Store


def money_scopes(
    session: SessionRow,
    turn: TurnRow,
    settings: SessionSettings,
    today: str | None = None,
    *,
    standing: Mapping[tuple[str, str], float] | None = None,
) -> tuple[MoneyScope, ...]:
    """Return the limits in USD that apply to a turn; empty when none is set.

    Args:
        today: the UTC day, the clock's when None.
        standing: limits that people set, by (scope, key); they stand in place of the settings'.
    """
    day = today or datetime.now(UTC).date().isoformat()
    given = standing or {}
    wanted = (
        ("session", root_of(session.thread_id), "", settings.session_usd),
        ("user", session.owner or "", day, settings.user_day_usd),
        ("schedule", session.thread_id, day, settings.schedule_day_usd if turn.kind == "schedule" else None),
        ("deployment", "", day, settings.deployment_day_usd),
    )
    limits = [(scope, key, window, given.get((scope, key), limit)) for scope, key, window, limit in wanted]
    own = given.get((OWN, root_of(session.thread_id)))
    if own is not None:  # an owner's own limit lowers what was given, never raises it
        scope, key, window, limit = limits[0]
        limits[0] = (scope, key, window, own if limit is None else min(own, limit))
    if turn.kind != "schedule":
        limits = [row for row in limits if row[0] != "schedule"]
    return tuple(
        MoneyScope(scope, key, window, limit) for scope, key, window, limit in limits if limit is not None
    )


async def require_money(store: Store, settings: SessionSettings, session: SessionRow, *, kind: str) -> None:
    """Ask for room before a model call that belongs to no turn.

    Args:
        kind: of the call, as `TurnRow.kind`.

    Raises:
        BowerbirdError: a limit of the session, its user or the deployment has no room at all.
    """

    def look(connection: Connection) -> list[str]:
        turn = TurnRow(turn_id="", thread_id=session.thread_id, n=0, kind=kind)
        scopes = money_scopes(session, turn, settings, standing=standing_limits(connection))
        return [s.scope.scope for s in standings(connection, scopes) if s.spent + s.held >= s.limit_usd]

    full = await store.read(look)
    if full:
        raise BowerbirdError(f"the budget of the {full[0]} is used up")


def add_money(
    connection: Connection,
    session: SessionRow,
    turn: TurnRow,
    settings: SessionSettings,
    asked: tuple[ApprovalRequest, ApprovalAnswer],
) -> None:
    """Raise the limit that a budget request named by the answer's amount; nonsense changes nothing."""
    request, answer = asked
    try:
        amount = float(answer.feedback or "")
    except ValueError:
        return
    named = request.tools[0].get("scope") if request.tools else None
    for scope in money_scopes(session, turn, settings, standing=standing_limits(connection)):
        if scope.scope == named and 0 < amount < float("inf"):
            raise_limit(connection, scope, session.thread_id, amount, settings)


class StoreBudget:
    """The `Budget` of one turn's attempt.

    Args:
        scopes: limits that every call counts against.
        run: names the model (its price) and whether unpriced models may run.
    """

    def __init__(self, store: Store, turn_id: str, scopes: tuple[MoneyScope, ...], run: TurnRun) -> None:
        self._store = store
        self._turn_id = turn_id
        self._scopes = scopes
        self._run = run
        self._held: dict[str, list[int]] = {}

    async def reserve(self, expected: Usage, max_tokens: int) -> Reservation | BudgetRefusal:
        """See `Budget.reserve`: one transaction over all scopes.

        Raises:
            ConfigError: the model's price is unknown and limits are set.
        """
        price = self._price()

        def decide(connection: Connection) -> tuple[Reservation, list[int]] | BudgetRefusal:
            pass_alone(connection, "budgets")
            where = standings(connection, limits_now(connection, self._scopes))
            scopes = [Scope(s.scope.scope, "usd", s.limit_usd, s.spent, s.held) for s in where]
            allowed = self._run.limits.allow_unpriced
            granted = fit(scopes, expected, max_tokens, price, allow_unpriced=allowed)
            if isinstance(granted, BudgetRefusal):
                return granted
            ids = hold(connection, self._scopes, self._turn_id, granted.usd or 0.0, granted.tokens)
            return Reservation(f"b_{ids[0]}", granted.max_tokens), ids

        decided = await self._store.write(decide)
        if isinstance(decided, BudgetRefusal):
            return decided
        reservation, ids = decided
        self._held[reservation.id] = ids
        return reservation

    def settle_last(self) -> Callable[[Connection], None] | None:
        """Return what settles the newest reservation, for the transaction that has its usage row.

        So a process that dies there leaves the reservation or the usage, never both.
        """
        if not self._held:
            return None
        _, ids = self._held.popitem()
        return lambda c: finish_reservations(c, ids, SETTLED)

    async def settle(self, reservation: str, usage: Usage) -> None:
        """See `Budget.settle`; nothing is left to do when the call's record settled it."""
        ids = self._held.pop(reservation, None)
        if ids:
            await self._store.write(lambda c: finish_reservations(c, ids, SETTLED))

    def _price(self) -> PriceOf:
        from bowerbird.models.prices import pricer_of

        return pricer_of(self._run.model.info)
