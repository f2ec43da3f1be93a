"""Room for one model call: the run's own limits first, then the scopes it shares (AG-44, MO-49 … MO-52).

Here: reserving, asking a person for more money, settling. Not here: the arithmetic (`models.budget`),
where shared totals are kept (`turn.Budget`).
"""

import math

import msgspec

from bowerbird.agent.turn_loop.flow import Flow
from bowerbird.agent.turn_loop.state import Turn
from bowerbird.core.errors import ConfigError
from bowerbird.core.events import ApprovalRequest, Notice, RunError
from bowerbird.core.ids import new_id
from bowerbird.core.requests import ModelRequest
from bowerbird.core.usage import Usage
from bowerbird.models.budget import WARN_AT, BudgetRefusal, Scope, fit


async def afford(turn: Turn, request: ModelRequest, expected: Usage) -> Flow:
    """Set `turn.request` to `request` with an output limit that fits, or end the run (`turn.done`).

    Money that does not suffice is asked for where someone can answer; tokens are not.
    """
    while turn.done is None:
        found = _own_limits(turn, expected, request.max_tokens)
        if isinstance(found, int) and turn.run.budget is not None:
            held = await turn.stop.guard(turn.run.budget.reserve(expected, found))
            if not isinstance(held, BudgetRefusal):
                turn.reservation, found = held.id, held.max_tokens
            else:
                found = held
        if isinstance(found, int):
            turn.request = msgspec.structs.replace(request, max_tokens=found)
            warning = _warning(turn)
            if warning is not None:
                yield warning
            return
        if found.unit == "tokens":
            _end(turn, "token_budget", found)
            return
        yield _ask_for_money(turn, found)


async def settle(turn: Turn) -> None:
    """Replace the reservation of the last call by what it used."""
    if turn.reservation is not None and turn.run.budget is not None:
        held, turn.reservation = turn.reservation, None
        await turn.run.budget.settle(held, turn.last_usage)


def _warning(turn: Turn) -> Notice | None:
    """Return what to say, once, when most of the run's money is spent."""
    limit = turn.run.limits.max_cost
    if limit is None or turn.warned or (turn.usage.cost or 0.0) < WARN_AT * limit:
        return None
    turn.warned = True
    return Notice("budget", f"{turn.usage.cost:.4f} of {limit:.4f} USD of this run are spent")


def _own_limits(turn: Turn, expected: Usage, asked: int) -> int | BudgetRefusal:
    limits, spent = turn.run.limits, turn.usage
    scopes: list[Scope] = []
    if limits.max_tokens_total:
        scopes.append(Scope("turn", "tokens", limits.max_tokens_total, spent.budget_tokens))
        left = limits.max_tokens_total - expected.input_tokens
        if not spent.model_calls and left > 0:
            # A limit below one answer's usual floor still lets the first call go out, cut to fit.
            asked = min(asked, left)
    if limits.max_cost is None:
        granted = fit(scopes, expected, asked, _unpriced)
    else:
        limit = limits.max_cost + turn.raised_usd
        if spent.cost is None and not limits.allow_unpriced:
            raise ConfigError(f"max_cost is {limits.max_cost} but the cost so far is unknown: {_REMEDY}")
        scopes.append(Scope("turn", "usd", limit, spent.cost or 0.0))
        granted = fit(scopes, expected, asked, turn.price(), allow_unpriced=limits.allow_unpriced)
    return granted if isinstance(granted, BudgetRefusal) else granted.max_tokens


_REMEDY = "set a price for the model, or Limits(allow_unpriced=True)"


def _unpriced(_usage: Usage) -> float | None:
    return None


async def _ask_for_money(turn: Turn, refusal: BudgetRefusal) -> Flow:
    if turn.run.approver is None:
        _end(turn, "cost_budget", refusal)
        return
    figures = {
        "scope": refusal.scope, "limit": refusal.limit, "spent": refusal.spent, "needed": refusal.needed,
    }  # fmt: skip
    request = ApprovalRequest(new_id("r"), "budget", tools=(figures,), text=_figures(refusal))
    yield request
    answer = await turn.stop.guard(turn.run.approver.ask(request))
    if answer is None:
        turn.finish("awaiting_approval", turn.text_so_far())
        return
    yield answer
    if answer.decision != "raise":
        _end(turn, "cost_budget", refusal)
        return
    try:
        amount = float(answer.feedback or "")
    except ValueError:
        amount = math.nan
    if refusal.scope == "turn":
        if not (math.isfinite(amount) and amount > 0):
            yield Notice("budget", f"raise needs an amount in USD above 0, got {answer.feedback!r}")
            _end(turn, "cost_budget", refusal)
            return
        turn.raised_usd += amount


def _end(turn: Turn, stop: str, refusal: BudgetRefusal) -> None:
    error = RunError("BudgetExceeded", _figures(refusal), retryable=False)
    turn.finish("token_budget" if stop == "token_budget" else "cost_budget", turn.text_so_far(), error)


def _figures(refusal: BudgetRefusal) -> str:
    if refusal.unit == "usd":
        return (
            f"the budget of {refusal.scope} is {refusal.limit:.4f} USD; {refusal.spent:.4f} is used and the "
            f"next call may need {refusal.needed:.4f}"
        )
    return (
        f"the token budget of {refusal.scope} is {refusal.limit:,.0f}; {refusal.spent:,.0f} are used and the "
        f"next call needs {refusal.needed:,.0f}"
    )
