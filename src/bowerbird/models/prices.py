"""What a call costs in USD, from the price package or from settings (MO-48).

Here: the lookup and its arithmetic. Not here: budgets (`budget`), how a cost is shown. An unknown
model has no price: never 0, never another model's.
"""

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.core.model_presets import PRESETS
from bowerbird.core.requests import ModelInfo
from bowerbird.core.usage import Price, Usage
from bowerbird.models.kept_rates import KeptRates, Rates
from bowerbird.models.settings import ModelOverride

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo as PackagedModel
    from genai_prices.types import Provider

_MILLION = 1_000_000
_kept = KeptRates()


def price(
    usage: Usage,
    provider: str,
    model: str,
    at: datetime | None = None,
    overrides: Mapping[str, ModelOverride] | None = None,
    prices_as: str | None = None,
) -> float | None:
    """Return the price of `usage` in USD, None when it is unknown.

    Args:
        usage: tokens of one call.
        provider: prefix, say `openai`.
        model: its name there.
        at: when the call was made, for prices that changed; None = now.
        overrides: by `provider:model` or model name; a price there wins.
        prices_as: the provider's name in the price package, where it has no prefix here.

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
    sold_as = prices_as or (preset.prices_as if preset is not None else None)
    return _from_package(usage, sold_as, model, at) if sold_as is not None else None


def pricer(
    provider: str,
    model: str,
    overrides: Mapping[str, ModelOverride] | None = None,
    prices_as: str | None = None,
) -> Callable[[Usage], float | None]:
    """Return `price` for one model, at the time of each call."""
    return partial(price, provider=provider, model=model, overrides=overrides, prices_as=prices_as)


def pricer_of(info: ModelInfo) -> Callable[[Usage], float | None]:
    """Return `price` for a model that is open: what a person set for it, else what is known."""
    by_hand = None if info.price is None else {info.name: ModelOverride(price=info.price)}
    return pricer(info.provider, info.model, by_hand)


def is_priced(provider: str, model: str, overrides: Mapping[str, ModelOverride] | None = None) -> bool:
    """Whether the price of `model` is known."""
    return price(Usage(input_tokens=1, output_tokens=1), provider, model, overrides=overrides) is not None


def is_known(provider: str, model: str) -> bool:
    """Whether the price package has an entry for `model`, that of its family included."""
    preset = PRESETS.get(provider)
    if preset is None or preset.prices_as is None:
        return False
    if _kept.get(preset.prices_as, model) not in (None, Rates()):
        return True
    try:
        _entry(preset.prices_as, model)
    except LookupError:
        return False
    return True


def window(provider: str, model: str) -> int | None:
    """Return the tokens of context that the price package knows `model` to have, None when it knows none."""
    preset = PRESETS.get(provider)
    if preset is None or preset.prices_as is None:
        return None
    rates = _rates(preset.prices_as, model)
    try:
        return rates.window if rates is not None else _entry(preset.prices_as, model)[1].context_window
    except LookupError:
        return None


def is_at_hand(provider: str, model: str) -> bool:
    """Whether the next price of `model` costs no time: the package is imported, or not needed."""
    preset = PRESETS.get(provider)
    if preset is None or preset.prices_as is None or "genai_prices" in sys.modules:
        return True
    return _kept.get(preset.prices_as, model) is not None


def _by_hand(usage: Usage, rates: Price) -> float:
    read = rates.input_mtok if rates.cache_read_mtok is None else rates.cache_read_mtok
    write = rates.input_mtok if rates.cache_write_mtok is None else rates.cache_write_mtok
    return (
        usage.input_tokens * rates.input_mtok
        + usage.output_tokens * rates.output_mtok
        + usage.cache_read_tokens * read
        + usage.cache_write_tokens * write
    ) / _MILLION


def keep_rates_in(directory: Path) -> None:
    """Keep what the package says below `directory`, for this process and those after it.

    It is the same for every session of a process: it depends on the installed package alone.
    """
    global _kept  # noqa: PLW0603 - one place for one installed package
    _kept = KeptRates(directory)


def _from_package(usage: Usage, provider: str, model: str, at: datetime | None) -> float | None:
    rates = _rates(provider, model)
    if rates is None or (rates.most_context is not None and usage.context_tokens > rates.most_context):
        return _asked(usage, provider, model, at)
    if rates.input is None or rates.output is None:
        return None
    return _by_hand(usage, Price(rates.input, rates.output, rates.cache_read, rates.cache_write))


def _rates(provider: str, model: str) -> Rates | None:
    rates = _kept.get(provider, model)
    if rates is None:
        rates = packaged_rates(provider, model)
        if rates is not None:
            _kept.keep(provider, model, rates)
    return rates


def packaged_rates(provider: str, model: str) -> Rates | None:
    """Return the package's plain rates, None for a model that has none, say prices by the hour."""
    from genai_prices.types import ModelPrice, TieredPrices

    try:
        entry = _entry(provider, model)[1]
    except LookupError:
        return Rates()
    prices = entry.prices
    if not isinstance(prices, ModelPrice):
        return None
    starts = [v.tiers[0].start for v in vars(prices).values() if isinstance(v, TieredPrices) and v.tiers]
    most = min(starts, default=None)
    some = _MILLION if most is None else most
    few = some // 4
    parts = [_asked(usage, provider, model, None) for usage in _kinds(some)]
    together = _asked(_all_kinds(few), provider, model, None)
    if not few or together is None or _asked(Usage(), provider, model, None) != 0:
        return None
    each = [part * _MILLION / some for part in parts if part is not None]
    is_plain = len(each) == len(parts) and isclose(sum(each) * few / _MILLION, together, rel_tol=1e-9)
    return Rates(*each, most_context=most, window=entry.context_window) if is_plain else None


def _kinds(tokens: int) -> tuple[Usage, ...]:
    return (
        Usage(input_tokens=tokens),
        Usage(output_tokens=tokens),
        Usage(cache_read_tokens=tokens),
        Usage(cache_write_tokens=tokens),
    )


def _all_kinds(tokens: int) -> Usage:
    return Usage(tokens, tokens, cache_read_tokens=tokens, cache_write_tokens=tokens)


def _asked(usage: Usage, provider: str, model: str, at: datetime | None) -> float | None:
    import genai_prices  # its table is large: imported with the first price that is not kept

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
def _entry(provider: str, model: str) -> "tuple[Provider, PackagedModel]":
    """Return a model's entry in the package's table; finding one compares it with hundreds of patterns."""
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot().find_provider_model(model, None, provider, None)
