"""Tools that ask the loop for something: compact, plan mode, a question, another model (TO-34 … 36, 47).

Here: the requests. Not here: what comes of them: the loop acts on `ToolResult.control`.
"""

from collections.abc import Sequence

from bowerbird.core.errors import ToolError
from bowerbird.tools.control import AskUser, CompactNow, EnterPlan, ExitPlan, SwitchModel
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool

NO_ANSWERER = "nobody can answer questions in this run; decide yourself and say what you assumed"
"""Why there is no `ask_user`, for a model that calls it: a run may be resumed where nobody is."""


async def compact(focus: str = "") -> ToolResult:
    """Shorten the conversation so far to a summary, to make room.

    Args:
        focus: What the summary must keep in detail.
    """
    return ToolResult("The conversation will be summarised after these calls.", control=CompactNow(focus))


async def enter_plan_mode() -> ToolResult:
    """Go to plan mode: from now on only look and plan, change nothing, then call exit_plan_mode."""
    return ToolResult("Plan mode is on: look and plan, then call exit_plan_mode.", control=EnterPlan())


async def exit_plan_mode(plan: str) -> ToolResult:
    """Hand in the finished plan; a person approves it or asks for changes.

    Args:
        plan: The whole plan, in Markdown.
    """
    if not plan.strip():
        raise ToolError("plan is empty; write what will be done")
    return ToolResult("The plan waits for approval.", data={"plan": plan}, control=ExitPlan(plan))


async def ask_user(question: str, options: list[str] = []) -> ToolResult:  # noqa: B006 - never changed; the schema shows []
    """Ask the person a question and wait for the answer. Only for what cannot be found out otherwise.

    Args:
        question: The question.
        options: Answers to choose from; none for a free answer.
    """
    if not question.strip():
        raise ToolError("question is empty; say what you need to know")
    return ToolResult("The question waits for an answer.", control=AskUser(question, tuple(options)))


def plan_tools() -> list[Tool]:
    """Return `compact`, `enter_plan_mode`, `exit_plan_mode` and `ask_user`."""
    return [Tool(fn, effect="plan") for fn in (compact, enter_plan_mode, exit_plan_mode, ask_user)]


def model_tools(tiers: Sequence[str]) -> list[Tool]:
    """Return `switch_model`, for a run whose model router knows `tiers`."""
    known = tuple(tiers)

    async def switch_model(tier: str = "expert") -> ToolResult:
        """Answer from the next model call on with another model, until the end of this turn.

        Args:
            tier: Name of the model tier.
        """
        if tier not in known:
            raise ToolError(f"there is no model tier {tier!r}; there are {', '.join(known)}")
        return ToolResult(f"From the next answer on: {tier}.", data={"tier": tier}, control=SwitchModel(tier))

    return [Tool(switch_model, effect="session")]
