"""Tokens and money, counted once and added up (MO-14, AG-33).

Here: the values and their sum. Not here: prices, limits, who pays.
"""

import msgspec


class Price(msgspec.Struct, frozen=True):
    """USD per million tokens, set by hand; a missing cache price means the input price."""

    input_mtok: float
    output_mtok: float
    cache_read_mtok: float | None = None
    cache_write_mtok: float | None = None


class Usage(msgspec.Struct, frozen=True):
    """What one or several model calls used.

    Attributes:
        input_tokens: uncached input. output_tokens: includes reasoning.
        cost: USD, or None when a price is unknown (never 0 for unknown).
        repeated_tokens: the part of the input that an earlier request had sent already, cached or not.
        estimated: some figure was not reported by the provider.
        subagents: the part used by children, contained in the totals.

    Example:
        >>> (Usage(input_tokens=1, cost=0.5) + Usage(input_tokens=2, cost=0.25)).cost
        0.75
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    repeated_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    cost: float | None = 0.0
    estimated: bool = False
    subagents: "Usage | None" = None

    def __add__(self, other: "Usage") -> "Usage":
        mine, theirs = self.subagents, other.subagents
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            repeated_tokens=self.repeated_tokens + other.repeated_tokens,
            model_calls=self.model_calls + other.model_calls,
            tool_calls=self.tool_calls + other.tool_calls,
            cost=None if self.cost is None or other.cost is None else self.cost + other.cost,
            estimated=self.estimated or other.estimated,
            subagents=mine + theirs if mine and theirs else mine or theirs,
        )

    @property
    def as_subagents(self) -> "Usage":
        """This use as a caller counts it: in the totals, and again as the part of its children."""
        return msgspec.structs.replace(self, subagents=msgspec.structs.replace(self, subagents=None))

    @property
    def own_calls(self) -> int:
        """Model calls without those of children."""
        return self.model_calls - (self.subagents.model_calls if self.subagents else 0)

    @property
    def own_tool_calls(self) -> int:
        """Tool calls without those of children."""
        return self.tool_calls - (self.subagents.tool_calls if self.subagents else 0)

    @property
    def context_tokens(self) -> int:
        """Input of one call as the model saw it: uncached + cache read + cache write."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def budget_tokens(self) -> int:
        """What counts against a token budget: each token once, however often it is sent again."""
        return self.context_tokens - max(self.repeated_tokens, self.cache_read_tokens) + self.output_tokens

    def after(self, seen: int) -> "Usage":
        """Return this use of one call with what it repeats told.

        Args:
            seen: tokens of the request before, with its answer.

        Example:
            >>> Usage(input_tokens=100, output_tokens=5).after(90).budget_tokens
            15
        """
        repeated = max(self.cache_read_tokens, min(self.context_tokens, seen))
        return msgspec.structs.replace(self, repeated_tokens=repeated)
