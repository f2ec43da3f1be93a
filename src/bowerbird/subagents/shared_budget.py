"""What a turn has left, shared by all its subagents (DE-16).

Here: one pool of tokens and money per turn, and the budget through which one model draws on it. Not
here: the arithmetic (`models.budget`), scopes that outlive a process (`sessions.budget`).
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from bowerbird.agent.limits import Limits
from bowerbird.core.ids import new_id
from bowerbird.core.usage import Usage
from bowerbird.models.budget import BudgetRefusal, Grant, PriceOf, Reservation, Scope, fit

if TYPE_CHECKING:
    from bowerbird.models.protocol import Model


class Part(msgspec.Struct, frozen=True):
    """A part of a purse for a run that nobody here can hold to account call by call; None = no limit."""

    id: str
    tokens: int | None = None
    usd: float | None = None


class Purse:
    """The limits of a turn, less what it and its subagents used.

    One per turn of the session that is nobody's child: subagents of subagents draw on it too.

    Args:
        limits: of the turn. used: what its subagents used before, in a process that died.
    """

    def __init__(self, limits: Limits, used: Usage | None = None) -> None:
        self._limits = limits
        self._own = Usage()
        self._spent = used or Usage()
        self._held: dict[str, Grant] = {}

    def note(self, used: Usage) -> None:
        """Take over what the turn has used so far; its ended subagents' part is known here already."""
        self._own = used

    @property
    def limits_money(self) -> bool:
        """Whether prices matter."""
        return self._limits.max_cost is not None

    def scopes(self) -> list[Scope]:
        """Return the scopes as they stand."""
        limits, own, spent = self._limits, self._own, self._spent
        children = own.subagents or Usage()
        grants = self._held.values()
        found: list[Scope] = []
        if limits.max_tokens_total:
            used = own.budget_tokens - children.budget_tokens + spent.budget_tokens
            held = sum(grant.tokens for grant in grants)
            found.append(Scope("turn", "tokens", limits.max_tokens_total, used, held))
        if limits.max_cost is not None:
            money = (own.cost or 0.0) - (children.cost or 0.0) + (spent.cost or 0.0)
            found.append(
                Scope("turn", "usd", limits.max_cost, money, sum(grant.usd or 0.0 for grant in grants))
            )
        return found

    def hold(self, expected: Usage, max_tokens: int, price: PriceOf) -> Reservation | BudgetRefusal:
        """Reserve room for a call, or say which scope has none."""
        unpriced = self._limits.allow_unpriced
        found = fit(self.scopes(), expected, max_tokens, price, allow_unpriced=unpriced)
        if isinstance(found, BudgetRefusal):
            return found
        held = Reservation(new_id("b"), found.max_tokens)
        self._held[held.id] = found
        return held

    def hold_part(self, parts: int) -> Part | BudgetRefusal:
        """Reserve one of so many equal parts of what is not spent, or say which scope has nothing.

        What others hold is theirs all the same; so parts are equal in whichever order they are taken.
        """
        free: dict[str, float] = {}
        for scope in self.scopes():
            part = min(scope.free, (scope.limit - scope.spent) / max(parts, 1))
            if part <= 0:
                return BudgetRefusal(scope.name, scope.unit, scope.limit, scope.spent + scope.held, 0.0)
            free[scope.unit] = part
        tokens = max(1, int(free["tokens"])) if "tokens" in free else None
        part = Part(new_id("b"), tokens, free.get("usd"))
        self._held[part.id] = Grant(0, part.usd, part.tokens or 0)
        return part

    def settle(self, reservation: str, usage: Usage) -> None:
        """Replace a reservation by what was used; a second time changes nothing."""
        if self._held.pop(reservation, None) is not None:
            known = usage if usage.cost is not None else msgspec.structs.replace(usage, cost=0.0)
            self._spent += known


class PurseBudget:
    """A purse as the budget of one run; see `models.budget.Budget`.

    Args:
        price: USD of a usage of the run's model, None when unknown.
    """

    def __init__(self, purse: Purse, price: PriceOf) -> None:
        self._purse = purse
        self._price = price

    async def reserve(self, expected: Usage, max_tokens: int) -> Reservation | BudgetRefusal:
        """See `Budget.reserve`."""
        return self._purse.hold(expected, max_tokens, self._price)

    async def settle(self, reservation: str, usage: Usage) -> None:
        """See `Budget.settle`."""
        if usage.cost is None:
            usage = msgspec.structs.replace(usage, cost=self._price(usage))
        self._purse.settle(reservation, usage)


def of_a_child(limits: Limits, seconds: float) -> Limits:
    """Return a child's limits: tokens and money are the shared purse's to refuse."""
    return replace(limits, max_tokens_total=0, max_cost=None, deadline_s=seconds)


def price_of(purse: Purse, model: "Model") -> PriceOf:
    """Return the price function of a model; without a money limit nobody asks, so no table is loaded."""
    if not purse.limits_money:
        return _unpriced
    from bowerbird.models.prices import pricer_of

    return pricer_of(model.info)


def _unpriced(_usage: Usage) -> float | None:
    return None
