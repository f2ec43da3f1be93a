"""The limits of one run, checked once and then only compared.

Here: the numbers of AG-40 and what is refused as one. Not here: who counts (the loop),
settings that supply other defaults (`config`), budgets shared between runs (`turn.Budget`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from bowerbird.core.errors import InvalidArgument

KEEP_RESULTS = 0.6
LEAST_OUTPUT_TOKENS = 1024  # a call is not sent with less room for its answer (MO-50)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use; None (or 0 for `max_tokens_total`) means no limit.

    Args:
        max_iterations: model calls per run; one summary without tools may follow.
        max_tokens_total: of the run: what each request adds to the one before it, and answers; what is sent
            again counts once.
        max_output_tokens: `max_tokens` of one model call.
        max_cost: USD of the run. deadline_s: seconds from the start of the run.
        max_parallel_tools: calls of one batch that run at the same time.
        max_tool_calls: calls per run. tool_result_chars: characters of one result.
        context_window: tokens; the model's own window wins when it is smaller.
        compact_threshold: the part of the window that may fill before history is summarised.
        keep_results: the part of the window that may fill before results of tools are replaced by one line
            each, in one large step; 0 = all but the newest three always are.
        allow_unpriced: run a model of unknown price although `max_cost` is set.

    Raises:
        InvalidArgument: a value is out of range; names parameter and value.

    Example:
        >>> Limits(max_iterations=3).max_output_tokens
        16384
    """

    max_iterations: int = 10
    max_tokens_total: int | None = 200_000
    max_output_tokens: int = 16_384
    max_cost: float | None = None
    deadline_s: float | None = None
    max_parallel_tools: int = 16
    max_tool_calls: int = 500
    tool_result_chars: int = 50_000
    context_window: int = 200_000
    compact_threshold: float = 0.7
    keep_results: float = KEEP_RESULTS
    allow_unpriced: bool = False

    def __post_init__(self) -> None:
        for name in (
            "max_iterations", "max_output_tokens", "max_parallel_tools", "max_tool_calls",
            "tool_result_chars", "context_window",
        ):  # fmt: skip
            _whole(name, getattr(self, name), least=1)
        if self.max_tokens_total is not None:
            _whole("max_tokens_total", self.max_tokens_total, least=0)
        for name in ("max_cost", "deadline_s"):
            if getattr(self, name) is not None:
                positive_number(name, getattr(self, name))
        if not 0 < self.compact_threshold < 1:
            raise InvalidArgument(
                f"compact_threshold is {self.compact_threshold!r}; use a fraction between 0 and 1"
            )
        if not 0 <= self.keep_results < 1:
            raise InvalidArgument(f"keep_results is {self.keep_results!r}; use 0, or a fraction below 1")

    @classmethod
    def of(cls, value: "Limits | Mapping[str, Any] | None") -> "Limits":
        """Return `value` as limits; a mapping holds the fields that differ from the defaults."""
        if value is None:
            return cls()
        if isinstance(value, Limits):
            return value
        if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise InvalidArgument(f"limits is {value!r}; use Limits(...) or a mapping of its fields")
        known = {f.name for f in fields(cls)}
        for name in value:
            if name not in known:
                raise InvalidArgument(f"limits has no field {name!r}; known: {', '.join(sorted(known))}")
        return cls(**dict(value))


def positive_number(name: str, value: object) -> float:
    """Return `value` as float; refuses bool, NaN, infinity, zero and below."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgument(f"{name} is {value!r}; use a positive number")
    if not math.isfinite(value) or value <= 0:
        raise InvalidArgument(f"{name} is {value!r}; use a positive finite number")
    return float(value)


def _whole(name: str, value: object, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgument(f"{name} is {value!r}; use an integer of at least {least}")
