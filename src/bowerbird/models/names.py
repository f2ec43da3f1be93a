"""Names of models and providers: `provider:model`, and where each prefix leads (MO-16).

Here: how a name is divided. Not here: which providers there are (`core/model_presets`), what a model can
do (`catalog`), opening it (`registry`).
"""

import re
from collections.abc import Collection
from difflib import get_close_matches

import msgspec

from bowerbird.core.errors import ConfigError
from bowerbird.core.model_presets import PRESETS, Preset

_VENDORS = {
    "anthropic": re.compile(r"claude-"),
    "openai": re.compile(r"(chat)?gpt-|o\d(-|$)"),
    "google-genai": re.compile(r"gemini-"),
    "deepseek": re.compile(r"deepseek-"),
}
"""Vendors on whose own hosts nobody else's models are, and how their models are called."""
_PREFIX = re.compile(r"[a-z0-9][a-z0-9_-]*", re.IGNORECASE)


class ModelName(msgspec.Struct, frozen=True):
    """A divided name; `str()` joins it again."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


def preset_of(provider: str) -> Preset:
    """Return the preset of `provider`; a name of one's own is an OpenAI-compatible server."""
    known = PRESETS.get(provider)
    if known is not None:
        return known
    custom = PRESETS["openai-compatible"]
    return Preset(provider, "openai", key_needed=False, reasoning_back=custom.reasoning_back)


def parse_model_name(
    text: str, default_provider: str = "anthropic", extra: Collection[str] = ()
) -> ModelName:
    """Divide `text` into provider and model.

    Args:
        text: `provider:model`, `provider/model` for known providers, or a bare model name.
        default_provider: provider of a bare name.
        extra: further known prefixes: providers that settings name with a base URL.

    Raises:
        ConfigError: unknown prefix (the known ones are listed), or an empty name.

    Example:
        >>> str(parse_model_name("ollama:qwen2:7b"))
        'ollama:qwen2:7b'
        >>> str(parse_model_name("openai/gpt-x"))
        'openai:gpt-x'
    """
    name = text.strip()
    known = {*PRESETS, *extra}
    for separator in (":", "/"):
        head, found, rest = name.partition(separator)
        if found and head.lower() in known:
            return _checked(head.lower(), rest, text)
        if separator == ":" and found and _PREFIX.fullmatch(head) and not _has_colon_names(default_provider):
            near = get_close_matches(head.lower(), sorted(known), 1)
            meant = f"did you mean {near[0]}:{rest}? " if near else ""
            raise ConfigError(
                f"no provider is called {head!r} (in the model name {text!r}); "
                f"{meant}known prefixes: {', '.join(sorted(known))}"
            )
    if default_provider not in known:
        raise ConfigError(
            f"no provider is called {default_provider!r} (LLM_PROVIDER) and no base URL is set for it; "
            f"known prefixes: {', '.join(sorted(known))}"
        )
    return _checked(default_provider, name, text)


class ForeignModel(ConfigError):
    """A bare name is another vendor's; the message names the prefix that was meant."""


def refuse_foreign(text: str, provider: str) -> None:
    """Refuse a bare name that is another vendor's: `gpt-4o` asked of Anthropic fails at the first call only.

    Raises:
        ForeignModel: naming the prefix that was meant.

    Example:
        >>> refuse_foreign("claude-sonnet-5", "anthropic")
    """
    name = text.strip()
    owner = next((vendor for vendor, names in _VENDORS.items() if names.match(name)), None)
    if provider in _VENDORS and owner is not None and owner != provider:
        raise ForeignModel(f"{name} is not a model of {provider}; did you mean {owner}:{name}?")


def _has_colon_names(provider: str) -> bool:
    preset = PRESETS.get(provider)
    return preset is not None and preset.colon_names


def _checked(provider: str, model: str, text: str) -> ModelName:
    if not model.strip():
        raise ConfigError(f"the model name {text!r} names no model; write provider:model")
    return ModelName(provider, model.strip())
