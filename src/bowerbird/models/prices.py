"""What a call costs in USD, from the price package or from settings (MO-48).

Here: the lookup and its arithmetic. Not here: budgets (`budget`), how a cost is shown. An unknown
model has no price: never 0, never another model's.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from bowerbird.core.model_presets import PRESETS
from bowerbird.core.usage import Usage
from bowerbird.models.settings import ModelOverride, Price

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Provider

_MILLION = 1_000_000


def price(
    usage: Usage,
    provider: str,
    model: str,
    at: datetime | None = None,
    overrides: Mapping[str, ModelOverride] | None = None,
) -> float | None:
    """Return the price of `usage` in USD, None when it is unknown.

    Args:
        usage: tokens of one call.
        provider: prefix, say `openai`.
        model: its name there.
        at: when the call was made, for prices that changed; None = now.
        overrides: by `provider:model` or model name; a price there wins.

    Example:
        >>> set_by_hand = {"x:m": ModelOverride(price=Price(1.0, 2.0))}
        >>> price(Usage(input_tokens=1_000_000), "x", "m", overrides=set_by_hand)
        1.0
    """
    if provider == "local":
        return 0.0
    table = overrides or {}
    known = table.get(f"{provider}:{model}") or table.get(model)
    if known is not None and known.price is not None:
        return _by_hand(usage, known.price)
    preset = PRESETS.get(provider)
    if preset is None or preset.prices_as is None:
        return None
    return _from_package(usage, preset.prices_as, model, at)


def pricer(
    provider: str, model: str, overrides: Mapping[str, ModelOverride] | None = None
) -> Callable[[Usage], float | None]:
    """Return `price` for one model, at the time of each call."""
    return partial(price, provider=provider, model=model, overrides=overrides)


def is_priced(provider: str, model: str, overrides: Mapping[str, ModelOverride] | None = None) -> bool:
    """Whether the price of `model` is known."""
    return price(Usage(input_tokens=1, output_tokens=1), provider, model, overrides=overrides) is not None


def _by_hand(usage: Usage, rates: Price) -> float:
    read = rates.input_mtok if rates.cache_read_mtok is None else rates.cache_read_mtok
    write = rates.input_mtok if rates.cache_write_mtok is None else rates.cache_write_mtok
    return (
        usage.input_tokens * rates.input_mtok
        + usage.output_tokens * rates.output_mtok
        + usage.cache_read_tokens * read
        + usage.cache_write_tokens * write
    ) / _MILLION


def _from_package(usage: Usage, provider: str, model: str, at: datetime | None) -> float | None:
    import genai_prices  # its table is large: imported with the first price

    # The package counts cached tokens as a part of the input.
    counted = genai_prices.Usage(
        input_tokens=usage.context_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        seller, sold = _entry(provider, model)
        found = sold.calc_price(counted, seller, genai_request_timestamp=at or datetime.now(UTC))
    except (LookupError, ValueError):
        return None
    return float(found.total_price)


@lru_cache(maxsize=256)
def _entry(provider: str, model: str) -> "tuple[Provider, ModelInfo]":
    """Return a model's entry in the package's table; finding one compares it with hundreds of patterns."""
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot().find_provider_model(model, None, provider, None)
