"""Which models can be chosen here, and what a name that fits none of them may have meant (UI-75).

Here: the list from settings and from the price package's table, each with price and window; the nearest name.
Not here: whether a provider really has a model, which shows at the first call; how a list is shown.
"""

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from functools import cache
from typing import Any

import msgspec

from bowerbird.core.errors import ConfigError
from bowerbird.core.model_presets import PRESETS
from bowerbird.core.usage import Usage
from bowerbird.models.catalog import traits_of
from bowerbird.models.keys import base_url_of, missing_key_of, provider_of
from bowerbird.models.names import ForeignModel, ModelName, preset_of
from bowerbird.models.prices import is_known, price, window
from bowerbird.models.registry import resolve_name
from bowerbird.models.settings import ModelSettings

MOST = 500
_NEAR = 0.8
_OTHER_WORK = re.compile(
    r"audio|computer-use|embed|ft:|guard|image|instruct$|live|moderation|ocr|realtime|search|speech|transcri|tts|voxtral|whisper"
)
"""Names of models that do not hold a conversation with tools."""


class OfferedModel(msgspec.Struct, frozen=True):
    """A model that can be chosen.

    Attributes:
        name: `provider:model`. window: tokens of context.
        input_usd, output_usd: of a million tokens; None = unknown.
        configured: settings name it; the others are those that a provider with a key is known to have.
    """

    name: str
    window: int
    input_usd: float | None
    output_usd: float | None
    configured: bool

    def record(self) -> dict[str, Any]:
        """Return the form of REST."""
        return {
            "name": self.name, "window": self.window, "input_usd": self.input_usd,
            "output_usd": self.output_usd, "configured": self.configured,
        }  # fmt: skip


def offered_models(settings: ModelSettings, more: Collection[str] = ()) -> list[OfferedModel]:
    """Return what can be used: first what settings name, then what providers with a key are known to have.

    Blocks for some tenths of a second at the first call: the table of prices is large.

    Args:
        more: further names that settings hold, say of a model for subagents.
    """
    own = [name for name in _configured(settings, more) if _is_usable(name, settings)]
    known = (
        ModelName(provider, model)
        for provider in PRESETS
        if _answers(provider, settings)
        for model in _table().get(PRESETS[provider].prices_as or "", ())
    )
    rows = {str(name): _row(name, settings, configured=True) for name in own}
    for name in known:
        if len(rows) >= MOST:
            break
        rows.setdefault(str(name), _row(name, settings, configured=False))
    return list(rows.values())


def doubt_about(text: str, settings: ModelSettings) -> str | None:
    """Return what to ask instead of using `text`, None when nothing speaks against it.

    A name that no table has may be new; one that is nearly another is a slip, and a bare name that another
    provider has was meant for that one.

    Raises:
        ConfigError: there is no such provider.
    """
    try:
        name = resolve_name(text, settings)
    except ForeignModel as error:
        return f"{error} {_INSISTING}"
    prices_as = preset_of(name.provider).prices_as
    if prices_as is None or _is_own(name, settings) or is_known(name.provider, name.model):
        return None
    near = nearest(name, settings)
    if near is None:
        return None
    return f"{name.provider} is not known to have {name.model!r}; did you mean {near}? {_INSISTING}"


_INSISTING = "A name under `models:` in the settings is used as it stands."


def nearest(name: ModelName, settings: ModelSettings) -> str | None:
    """Return the known model whose name is closest to `name`: of its provider, else of any.

    A kind alone (`sonnet`) means its newest.
    """
    own = _table().get(preset_of(name.provider).prices_as or "", ())
    found = get_close_matches(name.model, own, 1, _NEAR)
    kind = name.model.lower() if name.model.isalpha() else ""
    found = found or [model for model in own if kind in model.split("-")]
    if found:
        return f"{name.provider}:{found[0]}"
    others = [provider for provider in PRESETS if PRESETS[provider].prices_as and provider != name.provider]
    for provider in sorted(others, key=lambda each: not _answers(each, settings)):
        if name.model in _table().get(PRESETS[provider].prices_as or "", ()):
            return f"{provider}:{name.model}"
    return None


def _configured(settings: ModelSettings, more: Collection[str]) -> Iterator[ModelName]:
    tiers = settings.router.tiers.values() if settings.router.enabled else ()
    texts = [None, *settings.overrides, *more, *(f"{tier.name}:{tier.model}" for tier in tiers)]
    for text in texts:
        try:
            yield resolve_name(text, settings)
        except ConfigError:
            continue  # said by whoever uses it


def _is_usable(name: ModelName, settings: ModelSettings) -> bool:
    try:
        if name.provider != "local":
            base_url_of(preset_of(name.provider), provider_of(name, settings))
    except ConfigError:
        return False
    return missing_key_of(name, settings) is None


def _answers(provider: str, settings: ModelSettings) -> bool:
    """Whether the provider itself is asked, with a key: a server of one's own has models of its own."""
    set_here = settings.providers.get(provider)
    return set_here is not None and bool(set_here.api_key) and not set_here.base_url


def _is_own(name: ModelName, settings: ModelSettings) -> bool:
    here = settings.providers.get(name.provider)
    return bool(here is not None and here.base_url) or bool({str(name), name.model} & set(settings.overrides))


def _row(name: ModelName, settings: ModelSettings, *, configured: bool) -> OfferedModel:
    preset, override = preset_of(name.provider), settings.override_of(name.provider, name.model)
    most = settings.context_window
    traits = traits_of(
        preset,
        name.model,
        own_host=True,
        override=override,
        context_window=most,
        known_window=window(name.provider, name.model),
    )
    million = 1_000_000
    rates = [
        _per_million(usage, name, settings)
        for usage in (Usage(input_tokens=million // 10), Usage(output_tokens=million // 10))
    ]
    return OfferedModel(str(name), traits.info.context_window, rates[0], rates[1], configured)


def _per_million(usage: Usage, name: ModelName, settings: ModelSettings) -> float | None:
    cost = price(usage, name.provider, name.model, overrides=settings.overrides)
    return None if cost is None else round(cost * 10, 6)


def conversing(seller: str) -> tuple[str, ...]:
    """Return the models of a seller, by its name in the price package, that converse and are still sold."""
    return _table().get(seller, ())


@cache
def _table() -> dict[str, tuple[str, ...]]:
    """Return by the package's name of a provider the models that converse, newest names of a kind first."""
    from genai_prices.data_snapshot import get_snapshot

    return {
        provider.id: tuple(
            model.id
            for model in sorted(provider.models, key=lambda each: each.id, reverse=True)
            if model.context_window and not model.deprecated and not _OTHER_WORK.search(model.id)
        )
        for provider in get_snapshot().providers
    }
