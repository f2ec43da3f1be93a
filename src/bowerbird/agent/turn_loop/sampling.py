"""One request to the turn's model on behalf of a running tool, within the turn's budget (PT-23).

Here: whether there is room, the call, its record. Not here: what a tool asks for and why it may.
"""

from collections.abc import Callable

import msgspec

from bowerbird.agent.turn_loop.model_step import expected_usage
from bowerbird.agent.turn_loop.state import Turn
from bowerbird.core.errors import ModelError, ToolError
from bowerbird.core.events import UsageStep
from bowerbird.core.requests import End, ModelRequest
from bowerbird.core.usage import Usage
from bowerbird.models.budget import BudgetRefusal
from bowerbird.models.protocol import complete


async def sample(turn: Turn, request: ModelRequest, report: Callable[[UsageStep], None]) -> End:
    """Return the model's answer to `request`, whose use counts to the turn and all its scopes.

    Args:
        request: no tools, no stream for anyone; its `max_tokens` is lowered to what fits.
        report: takes the record of what was used, before this returns.

    Raises:
        ToolError: the budget has no room, or the model failed; the sentence says which.
    """
    run, model = turn.run, turn.model
    wanted = min(request.max_tokens, run.limits.max_output_tokens, model.info.max_output_tokens)
    expected = expected_usage(request, 0)
    limit = run.limits.max_tokens_total
    if limit and turn.usage.budget_tokens + expected.input_tokens + wanted > limit:
        raise ToolError(f"the token budget of this turn ({limit:,}) has no room for it")
    if run.limits.max_cost is not None and (turn.usage.cost or 0.0) >= run.limits.max_cost + turn.raised_usd:
        raise ToolError(f"the money budget of this turn ({run.limits.max_cost:.4f} USD) is spent")
    held = await run.budget.reserve(expected, wanted) if run.budget is not None else None
    if isinstance(held, BudgetRefusal):
        raise ToolError(f"the budget of {held.scope} has no room for it")
    room = held.max_tokens if held is not None else wanted
    used = Usage()
    try:
        end = await complete(
            model, msgspec.structs.replace(request, max_tokens=room, session=run.who.session)
        )
        used = end.usage if end.usage.model_calls else end.usage + Usage(model_calls=1)
    except ModelError as error:
        raise ToolError(f"the model failed: {error}") from error
    finally:
        if held is not None and run.budget is not None:
            await run.budget.settle(held.id, used)
    report(UsageStep("tool", end.model or model.info.name, used))
    return end
