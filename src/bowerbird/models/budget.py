"""Money and tokens reserved before a call and settled after it (MO-49 … MO-52): the arithmetic.

Here: what a call may cost at most, whether it fits its scopes, and a budget in memory for runs of
the library. Not here: the durable `reservations` table (`store`), prices (`prices`), who is asked to
raise a limit.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from bowerbird.core.errors import ConfigError
from bowerbird.core.ids import new_id
from bowerbird.core.requests import ModelInfo
from bowerbird.core.usage import Usage

LEAST_OUTPUT_TOKENS = 1_024  # a lowered max_tokens never goes below (MO-50)
WARN_AT = 0.8

Unit = Literal["usd", "tokens"]
PriceOf = Callable[[Usage], float | None]


class Reservation(msgspec.Struct, frozen=True):
    """Room for one model call; `max_tokens` may be lower than asked."""

    id: str
    max_tokens: int


class BudgetRefusal(msgspec.Struct, frozen=True):
    """No room: the scope that said so and its figures in `unit`."""

    scope: str
    unit: Unit
    limit: float
    spent: float
    needed: float


class Budget(Protocol):
    """Where calls reserve: shared by a run and its subagents, compaction and memory."""

    async def reserve(self, expected: Usage, max_tokens: int) -> Reservation | BudgetRefusal:
        """Reserve `expected` input plus `max_tokens` of output in every scope, or in none."""
        ...

    async def settle(self, reservation: str, usage: Usage) -> None:
        """Replace a reservation by what its call really used."""
        ...


class Scope(msgspec.Struct, frozen=True):
    """One limit and where it stands; `held` is reserved and not yet settled."""

    name: str
    unit: Unit
    limit: float
    spent: float = 0.0
    held: float = 0.0

    @property
    def free(self) -> float:
        """What can still be reserved."""
        return self.limit - self.spent - self.held


class Grant(msgspec.Struct, frozen=True):
    """The decision for a call that fits: its output limit and what each unit reserves."""

    max_tokens: int
    usd: float | None
    tokens: int


def worst_cost(expected: Usage, output_tokens: int, price: PriceOf) -> float | None:
    """Return the highest price of a call in USD, None when unknown.

    The whole input is taken as uncached or as written to the cache, whichever costs more: a
    provider's cache may be cold.
    """
    counted = expected.context_tokens
    costs = [
        price(Usage(input_tokens=counted, output_tokens=output_tokens)),
        price(Usage(cache_write_tokens=counted, output_tokens=output_tokens)),
    ]
    return None if None in costs else max(cost for cost in costs if cost is not None)


def fit(
    scopes: Sequence[Scope], expected: Usage, max_tokens: int, price: PriceOf, *, allow_unpriced: bool = False
) -> Grant | BudgetRefusal:
    """Decide whether a call fits `scopes`, lowering its output limit down to 1,024 if it must.

    Args:
        scopes: every limit the call counts against.
        expected: counted input; its cache-read part does not count against tokens.
        max_tokens: wanted output limit.
        price: USD of a usage at the model's price, None when unknown.
        allow_unpriced: let a model without price run under money limits.

    Raises:
        ConfigError: the price is unknown and a money limit is set.
    """
    least = min(max_tokens, LEAST_OUTPUT_TOKENS)
    usd = worst_cost(expected, max_tokens, price)
    money = [scope for scope in scopes if scope.unit == "usd"]
    if money and usd is None:
        if not allow_unpriced:
            raise ConfigError(
                "the price of this model is unknown, so the money limit "
                f"{money[0].name} cannot hold; set its price or budgets.allow_unpriced"
            )
        money = []
    granted = max_tokens
    for scope in (s for s in scopes if s.unit == "tokens"):
        counted = expected.input_tokens + expected.cache_write_tokens
        if scope.free < counted + least:
            return BudgetRefusal(scope.name, "tokens", scope.limit, scope.spent + scope.held, counted + least)
        granted = min(granted, int(scope.free) - counted)
    for scope in money:
        granted = _lowered(scope, expected, granted, price)
        needed = worst_cost(expected, max(granted, least), price)
        if needed is None or granted < least:
            return BudgetRefusal(scope.name, "usd", scope.limit, scope.spent + scope.held, needed or 0.0)
    reserved = worst_cost(expected, granted, price)
    return Grant(granted, reserved, expected.input_tokens + expected.cache_write_tokens + granted)


def _lowered(scope: Scope, expected: Usage, max_tokens: int, price: PriceOf) -> int:
    """Return the largest output limit ≤ `max_tokens` that `scope` can pay, -1 when none can."""

    def fits(tokens: int) -> bool:
        cost = worst_cost(expected, tokens, price)
        return cost is not None and cost <= scope.free

    if fits(max_tokens):
        return max_tokens
    low, high = -1, max_tokens  # prices may have tiers, so the limit is searched, not divided
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


class BudgetWarning(msgspec.Struct, frozen=True):
    """A scope passed 80 % of its limit."""

    scope: str
    unit: Unit
    limit: float
    spent: float


class MemoryBudget:
    """Scopes in memory, for one process; totals end with it. Safe between tasks of one loop.

    Args:
        limits: name → (unit, limit), say `{"turn": ("tokens", 200_000), "run": ("usd", 1.0)}`.
        price: USD of a usage, None when unknown; see `prices.pricer`.
        info: the model, named when its price is unknown.
        allow_unpriced: see `fit`.
        on_warning: called once per scope at 80 %.

    Example:
        budget = MemoryBudget({"run": ("usd", 1.0)}, price=pricer(model.info))
        held = await budget.reserve(Usage(input_tokens=1_000), 16_384)
    """

    def __init__(
        self,
        limits: Mapping[str, tuple[Unit, float]],
        price: PriceOf,
        *,
        info: ModelInfo | None = None,
        allow_unpriced: bool = False,
        on_warning: Callable[[BudgetWarning], None] | None = None,
    ) -> None:
        self._scopes = {name: Scope(name, unit, limit) for name, (unit, limit) in limits.items()}
        self._price = price
        self._info = info
        self._allow_unpriced = allow_unpriced
        self._on_warning = on_warning
        self._held: dict[str, Grant] = {}
        self._warned: set[str] = set()

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes as they stand."""
        # Summed anew each time: adding and taking away floats would leave a residue in `held`.
        grants = self._held.values()
        held = {
            "usd": sum(grant.usd or 0.0 for grant in grants),
            "tokens": sum(grant.tokens for grant in grants),
        }
        return tuple(msgspec.structs.replace(scope, held=held[scope.unit]) for scope in self._scopes.values())

    async def reserve(self, expected: Usage, max_tokens: int) -> Reservation | BudgetRefusal:
        """See `Budget.reserve`; raises ConfigError for an unknown price under a money limit."""
        decided = fit(self.scopes, expected, max_tokens, self._price, allow_unpriced=self._allow_unpriced)
        if isinstance(decided, BudgetRefusal):
            return decided
        reservation = Reservation(new_id("b"), decided.max_tokens)
        self._held[reservation.id] = decided
        return reservation

    async def settle(self, reservation: str, usage: Usage) -> None:
        """See `Budget.settle`; a second settlement of the same reservation changes nothing."""
        if self._held.pop(reservation, None) is None:
            return
        cost = usage.cost if usage.cost is not None else self._price(usage)
        for name, scope in self._scopes.items():
            used = (cost or 0.0) if scope.unit == "usd" else usage.budget_tokens
            self._scopes[name] = msgspec.structs.replace(scope, spent=scope.spent + used)
        self._warn()

    def raise_limit(self, scope: str, amount: float) -> None:
        """Add `amount` to the limit of `scope` (the answer `raise{amount}` of MO-50)."""
        found = self._scopes[scope]
        self._scopes[scope] = msgspec.structs.replace(found, limit=found.limit + amount)

    def _warn(self) -> None:
        for name, scope in self._scopes.items():
            if self._on_warning and name not in self._warned and scope.spent >= WARN_AT * scope.limit:
                self._warned.add(name)
                self._on_warning(BudgetWarning(name, scope.unit, scope.limit, scope.spent))


class BothBudgets:
    """Two budgets that a call must both fit, say its turn's purse and the scopes of the database."""

    def __init__(self, first: Budget, second: Budget) -> None:
        self._first = first
        self._second = second
        self._paired: dict[str, str] = {}

    async def reserve(self, expected: Usage, max_tokens: int) -> Reservation | BudgetRefusal:
        """See `Budget.reserve`: in both, or in none."""
        held = await self._first.reserve(expected, max_tokens)
        if isinstance(held, BudgetRefusal):
            return held
        other = await self._second.reserve(expected, held.max_tokens)
        if isinstance(other, BudgetRefusal):
            await self._first.settle(held.id, Usage())
            return other
        self._paired[held.id] = other.id
        return Reservation(held.id, min(held.max_tokens, other.max_tokens))

    async def settle(self, reservation: str, usage: Usage) -> None:
        """See `Budget.settle`."""
        await self._first.settle(reservation, usage)
        other = self._paired.pop(reservation, None)
        if other is not None:
            await self._second.settle(other, usage)
