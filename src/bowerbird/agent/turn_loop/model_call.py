"""A model call as a step of the turn: room for it, the stream, what its failure means.

Here: what it may cost (the run's own limits, then the scopes it shares; a person is asked for more money),
stream, settling, overflow, provider failures (AG-44, AG-56, MO-32). Not here: the request and the stream's
events (`model_step`), the arithmetic of budgets (`models.budget`), what the answer means (`loop`).
"""

import math

import msgspec

from bowerbird.agent.context.compaction import text_tokens
from bowerbird.agent.turn_loop.flow import Flow
from bowerbird.agent.turn_loop.model_step import Ask, build_request, expected_usage, stream_reply
from bowerbird.agent.turn_loop.state import Turn
from bowerbird.core.errors import ConfigError, ModelError
from bowerbird.core.events import ApprovalRequest, Notice, RunError
from bowerbird.core.ids import new_id
from bowerbird.core.requests import ModelRequest
from bowerbird.core.usage import Usage
from bowerbird.models.budget import WARN_AT, BudgetRefusal, Scope, fit

MOST_OVERFLOWS = 2  # summaries after "context too long" before the run gives up

_REMEDY = "set a price for the model, or Limits(allow_unpriced=True)"


async def call_model(turn: Turn, ask: Ask) -> Flow:
    """Ask once. Afterwards `turn.reply` is the answer, or None: then the run has ended (`turn.done`),
    or room was made and the loop goes round again."""
    turn.reply = None
    request = await build_request(turn, ask)
    yield afford(turn, request, expected_usage(request, max(turn.cached, turn.seen_tokens), turn.sent_tokens))
    if turn.done is not None or turn.request is None:
        return
    turn.iterations += 1
    try:
        yield stream_reply(turn, turn.request)
    except ModelError as error:
        if error.kind == "context_overflow":
            yield make_room(turn, str(error))
        else:
            report(turn, error)
    finally:
        await settle(turn)


async def make_room(turn: Turn, message: str) -> Flow:
    """Summarise after the provider said that the context is too long; end the run if that cannot help."""
    from bowerbird.agent.turn_loop.summarise import compact, too_large

    turn.reply = None
    turn.iterations -= 1
    turn.overflows += 1
    problem = too_large(turn)
    turn.refused_at = min(turn.window, turn.sent_tokens + text_tokens(*turn.system))
    before = len(turn.history.compactions)
    if problem is None and turn.overflows <= MOST_OVERFLOWS:
        yield compact(turn, "overflow")
    if len(turn.history.compactions) == before:
        turn.finish("model_error", turn.text_so_far(), RunError("ModelError", problem or message))


def report(turn: Turn, error: ModelError) -> None:
    """End the run with the provider's failure."""
    failure = RunError(type(error).__name__, str(error), error.retryable)
    turn.finish("refused" if error.kind == "refused" else "model_error", turn.said(), failure)


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


def _usd(amount: float) -> str:
    """Return an amount with every digit that counts: a limit of a cent's part is not 0."""
    return "$" + (f"{amount:.6f}".rstrip("0").rstrip(".") if amount else "0")


def _figures(refusal: BudgetRefusal) -> str:
    whose = f"this {refusal.scope}"  # turn, session, user, schedule, deployment
    if refusal.unit == "usd":
        return (
            f"{whose} may spend {_usd(refusal.limit)}; {_usd(refusal.spent)} is spent, and the next "
            f"call may cost {_usd(refusal.needed)}"
        )
    return (
        f"{whose} may use {refusal.limit:,.0f} tokens; {refusal.spent:,.0f} are used, and the next call "
        f"needs {refusal.needed:,.0f}"
    )
