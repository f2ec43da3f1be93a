"""Model providers that speak a known wire: one row each (MO-16).

Here: what a prefix stands for, as data; a row added here is all that a new provider needs: its prefix can be
named, its key is taken from its variable, its errors name that. Not here: how a name is divided
(`models/names.py`), what a model can do, settings.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

Wire = Literal["anthropic", "openai", "local", "responses", "ollama"]
ThinkingForm = Literal["effort", "adaptive", "budget", "reasoning_effort", "reasoning", "none"]


class Preset(msgspec.Struct, frozen=True):
    """One provider as its prefix knows it.

    Attributes:
        base_url: the vendor's own address; None = must be set.
        key_variable: environment name of the key, named in errors; None = no key is used.
        key_needed: a missing key is an error at the first call.
        own_thinking: form on the vendor's own host; elsewhere it is `effort`.
        max_tokens_field: what the server calls the output limit.
        reasoning_back: takes `reasoning_content` on assistant messages.
        colon_names: its models have colons in their names (`qwen2:7b`).
        system_role: the role of the system text.
        short_ids: call ids are 9 letters or digits.
        reasoning_owed: takes no message of the assistant without it, and an empty one for none.
        tells_usage: the last event of an answer tells what was used, and a wish for it is refused.
        marks_claude: caches the models of Anthropic only where the request says so.
        foreign_signature: what its calls of other models are signed with: it takes none without.
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
    system_role: str = "system"
    foreign_signature: str = ""
    reasoning_owed: bool = False
    marks_claude: bool = False
    tells_usage: bool = False
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
            "ollama",
            "http://127.0.0.1:11434",
            key_needed=False,
            colon_names=True,
        ),
        Preset("vllm", "openai", key_variable="VLLM_API_KEY", key_needed=False, reasoning_back=True),
        Preset(
            "openrouter",
            "openai",
            "https://openrouter.ai/api/v1",
            "OPENROUTER_API_KEY",
            own_thinking="reasoning",
            marks_claude=True,
            prices_as="openrouter",
        ),
        Preset(
            "google-genai",
            "openai",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GOOGLE_API_KEY",
            own_thinking="reasoning_effort",
            foreign_signature="skip_thought_signature_validator",  # as the vendor's page on signatures says
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
            reasoning_owed=True,
            prices_as="deepseek",
        ),
        Preset(
            "mistral",
            "openai",
            "https://api.mistral.ai/v1",
            "MISTRAL_API_KEY",
            own_thinking="none",
            short_ids=True,
            tells_usage=True,
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
