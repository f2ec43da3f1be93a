"""How thinking is asked for: efforts, and the forms of the providers (MO-20 … MO-22).

Here: the decision from a wish and a model to request fields, pure. Not here: which model takes which
form (`catalog`), reasoning in answers (the wire modules).
"""

from collections.abc import Sequence
from typing import Any, Literal, cast

import msgspec

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.model_presets import ThinkingForm
from bowerbird.core.requests import Effort, Thinking

EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "max")

_BUDGETS: dict[str, int] = {"low": 2_048, "medium": 8_192, "high": 16_384, "max": 32_768}
_LEAST_BUDGET = 1_024
_ANSWER_ROOM = 1_024  # tokens kept for the answer beside a thinking budget


def parse_effort(text: str, allowed: Sequence[Effort] = EFFORTS) -> Effort:
    """Return the effort that `text` names; `xhigh` is `max`.

    Raises:
        InvalidArgument: not one of `allowed`, which the message lists.

    Example:
        >>> parse_effort("xhigh")
        'max'
    """
    effort = "max" if text == "xhigh" else text
    if effort not in allowed:
        raise InvalidArgument(f"effort is {text!r}; use one of {', '.join(allowed)}")
    return cast("Effort", effort)


class ThinkingFields(msgspec.Struct, frozen=True):
    """What a request carries: `body` fields, whether a temperature may stand beside, notes for the trace."""

    body: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    temperature_allowed: bool = True
    notes: tuple[str, ...] = ()


def nearest_effort(effort: Effort, known: Sequence[str]) -> str | None:
    """Return `effort`, or the nearest lower one that is known; the lowest known when none is lower."""
    if effort in known or not known:
        return effort if known else None
    lower = [e for e in EFFORTS[: EFFORTS.index(effort)] if e in known]
    return lower[-1] if lower else known[0]


def thinking_fields(
    thinking: Thinking | None,
    form: ThinkingForm,
    *,
    wire: Literal["anthropic", "openai"],
    efforts: Sequence[str],
    max_tokens: int,
    off: str | None = "none",
    max_name: str = "max",
) -> ThinkingFields:
    """Return the fields that ask for `thinking`.

    Args:
        thinking: the wish; None = say nothing, and the model does what it does by itself.
        form: what the model takes.
        wire: whose request it is.
        efforts: efforts the model knows, lowest first.
        max_tokens: output limit; a thinking budget stays below it.
        off: the effort that stands for no thinking; None = the model always thinks.
        max_name: what the vendor calls the highest effort.
    """
    if thinking is None or form == "none":
        ignored = thinking is not None and thinking.enabled
        return ThinkingFields(notes=("thinking: the model does not support it",) if ignored else ())
    if not thinking.enabled:
        return _off(form, off)
    effort = nearest_effort(thinking.effort, efforts)
    notes = (
        () if effort in (thinking.effort, None) else (f"effort {thinking.effort}: not known, sent {effort}",)
    )
    named = max_name if effort == "max" else effort
    match form:
        case "effort":
            key: dict[str, Any] = {"output_config": {"effort": named}} if wire == "anthropic" else {}
            if wire == "openai":
                key = {"reasoning_effort": named}
            return ThinkingFields({"thinking": {"type": "enabled"}, **(key if named else {})}, notes=notes)
        case "adaptive":
            config = {"output_config": {"effort": named}} if named else {}
            # From 4.7 on nothing of it is shown unless that is said.
            thought = {"type": "adaptive", "display": "summarized"}
            return ThinkingFields({"thinking": thought, **config}, False, notes)
        case "budget":
            return _budget(thinking.effort, max_tokens)
        case "reasoning":
            return ThinkingFields({"reasoning": {"effort": named}}, notes=notes)
        case "reasoning_effort":
            return ThinkingFields({"reasoning_effort": named} if named else {}, notes=notes)


def _off(form: ThinkingForm, off: str | None) -> ThinkingFields:
    if off is None:
        return ThinkingFields(notes=("thinking: this model cannot go without it",))
    if form == "reasoning":
        return ThinkingFields({"reasoning": {"enabled": False}})
    if form != "reasoning_effort":
        return ThinkingFields({"thinking": {"type": "disabled"}})
    notes = () if off == "none" else (f"thinking: this model cannot go without it, sent effort {off}",)
    return ThinkingFields({"reasoning_effort": off}, notes=notes)


def _budget(effort: Effort, max_tokens: int) -> ThinkingFields:
    budget = min(_BUDGETS[effort], max_tokens - _ANSWER_ROOM)
    if budget < _LEAST_BUDGET:
        note = f"thinking: left out, {max_tokens} output tokens leave no room for it"
        return ThinkingFields(notes=(note,))
    return ThinkingFields({"thinking": {"type": "enabled", "budget_tokens": budget}}, False)
