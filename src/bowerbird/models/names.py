"""Names of models and providers: `provider:model`, and where each prefix leads (MO-16).

Here: the presets and how a name is divided. Not here: what a model can do (`catalog`), opening it
(`registry`).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from bowerbird.core.errors import ConfigError
from bowerbird.models.settings import ThinkingForm

Wire = Literal["anthropic", "openai", "local"]


@dataclass(frozen=True, slots=True)
class Preset:
    """One provider as its prefix knows it.

    Attributes:
        base_url: the vendor's own address; None = must be set.
        key_variable: environment name of the key, named in errors; None = no key is used.
        key_needed: a missing key is an error at the first call.
        own_thinking: form on the vendor's own host; elsewhere it is `effort` (MO-20).
        max_tokens_field: what the server calls the output limit.
        reasoning_back: takes `reasoning_content` on assistant messages (MO-23).
        colon_names: its models have colons in their names (`qwen2:7b`).
        short_ids: call ids are 9 letters or digits.
        prices_as: the provider's name in the price package; None = unpriced.
    """

    name: str
    wire: Wire
    base_url: str | None = None
    key_variable: str | None = None
    key_needed: bool = True
    own_thinking: ThinkingForm = "effort"
    max_tokens_field: str = "max_tokens"
    reasoning_back: bool = False
    colon_names: bool = False
    short_ids: bool = False
    prices_as: str | None = None


PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "anthropic",
            "anthropic",
            "https://api.anthropic.com",
            "ANTHROPIC_API_KEY",
            own_thinking="budget",
            prices_as="anthropic",
        ),
        Preset(
            "openai",
            "openai",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            own_thinking="reasoning_effort",
            max_tokens_field="max_completion_tokens",
            prices_as="openai",
        ),
        Preset("local", "local", key_needed=False),
        Preset(
            "ollama",
            "openai",
            "http://127.0.0.1:11434/v1",
            key_needed=False,
            reasoning_back=True,
            colon_names=True,
        ),
        Preset("vllm", "openai", key_variable="VLLM_API_KEY", key_needed=False, reasoning_back=True),
        Preset(
            "openrouter",
            "openai",
            "https://openrouter.ai/api/v1",
            "OPENROUTER_API_KEY",
            own_thinking="reasoning",
            prices_as="openrouter",
        ),
        Preset(
            "google-genai",
            "openai",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GOOGLE_API_KEY",
            own_thinking="reasoning_effort",
            prices_as="google",
        ),
        Preset(
            "groq",
            "openai",
            "https://api.groq.com/openai/v1",
            "GROQ_API_KEY",
            own_thinking="reasoning_effort",
            max_tokens_field="max_completion_tokens",
            prices_as="groq",
        ),
        Preset(
            "deepseek",
            "openai",
            "https://api.deepseek.com/v1",
            "DEEPSEEK_API_KEY",
            reasoning_back=True,
            prices_as="deepseek",
        ),
        Preset(
            "mistral",
            "openai",
            "https://api.mistral.ai/v1",
            "MISTRAL_API_KEY",
            own_thinking="none",
            short_ids=True,
            prices_as="mistral",
        ),
        Preset(
            "lmstudio",
            "openai",
            "http://127.0.0.1:1234/v1",
            key_needed=False,
            reasoning_back=True,
        ),
        Preset(
            "openai-compatible",
            "openai",
            key_variable="OPENAI_COMPATIBLE_API_KEY",
            key_needed=False,
            reasoning_back=True,
        ),
    )
}

_PREFIX = re.compile(r"[a-z0-9][a-z0-9_-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelName:
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
            raise ConfigError(
                f"no provider is called {head!r} (in the model name {text!r}); "
                f"known prefixes: {', '.join(sorted(known))}"
            )
    if default_provider not in known:
        raise ConfigError(
            f"no provider is called {default_provider!r} (LLM_PROVIDER) and no base URL is set for it; "
            f"known prefixes: {', '.join(sorted(known))}"
        )
    return _checked(default_provider, name, text)


def _has_colon_names(provider: str) -> bool:
    preset = PRESETS.get(provider)
    return preset is not None and preset.colon_names


def _checked(provider: str, model: str, text: str) -> ModelName:
    if not model.strip():
        raise ConfigError(f"the model name {text!r} names no model; write provider:model")
    return ModelName(provider, model.strip())
