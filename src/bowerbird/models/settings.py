"""What models need to know, as small frozen values; `config` maps its tree onto them.

Here: values and their own range checks. Not here: reading files or the environment
(`config`), names of providers (`names`), what a model can do (`catalog`).

Keys and prices are values here; nothing in this package logs or prints them, and `repr` hides keys.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.model_presets import ThinkingForm
from bowerbird.core.usage import Price


def is_loopback(url: str) -> bool:
    """Whether `url` names this machine."""
    host = (urlsplit(url).hostname or "").lower()
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name: one that begins like an address may be anybody's
        return host == "localhost"


class RetryPolicy(msgspec.Struct, frozen=True):
    """At most `1 + retries` requests per call.

    Args:
        retries: further requests after the first, 0–20 (`LLM_MAX_RETRIES`).
        base_delay_s: seconds before the second request, doubled for each further one.
        max_delay_s: longest delay in seconds.

    Example:
        >>> RetryPolicy(retries=0).retries
        0
    """

    retries: int = 3
    base_delay_s: float = 1.0
    max_delay_s: float = 30.0

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise InvalidArgument(f"retries is {self.retries}; use 0 to ask once (LLM_MAX_RETRIES)")
        if self.base_delay_s < 0 or self.max_delay_s < 0:
            raise InvalidArgument(f"delays are {self.base_delay_s} and {self.max_delay_s} s; use 0 or more")


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds to wait for a provider: connection, first event, silence between events."""

    connect_s: float = 10.0
    first_event_s: float = 300.0
    silence_s: float = 120.0

    def __post_init__(self) -> None:
        if min(self.connect_s, self.first_event_s, self.silence_s) <= 0:
            raise InvalidArgument("timeouts must be more than 0 seconds")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """How to reach one provider.

    Args:
        api_key: sent to `base_url` only.
        base_url: http(s) URL; None = the provider's own host.
        headers: further headers of every request.
        timeouts: see `Timeouts`.
        verify_tls: may be False for loopback hosts only.
    """

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    timeouts: Timeouts = field(default_factory=Timeouts)
    verify_tls: bool = True


class ModelOverride(msgspec.Struct, frozen=True):
    """What a person knows better than the catalogue about one model; None = the catalogue's.

    Args:
        thinking_form: how thinking is asked for: `effort`, `adaptive`, `budget`,
            `reasoning_effort`, `reasoning`, or `none`.
        efforts: efforts the model knows, lowest first.
        temperature: False when the model refuses one.
        price: replaces the price package's.
        fallback: `provider:model` names tried after this one.
    """

    context_window: int | None = None
    max_output_tokens: int | None = None
    images: bool | None = None
    constrained_output: bool | None = None
    thinking_form: ThinkingForm | None = None
    efforts: tuple[str, ...] | None = None
    temperature: bool | None = None
    price: Price | None = None
    fallback: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TierSettings:
    """One tier of the router: a provider's `name`, its `model`, and what differs there."""

    name: str
    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


class RouterSettings(msgspec.Struct, frozen=True):
    """Tiers by name and the one that answers when nobody says otherwise."""

    enabled: bool = False
    default_tier: str = "standard"
    tiers: Mapping[str, TierSettings] = msgspec.field(default_factory=dict[str, TierSettings])


class LocalSettings(msgspec.Struct, frozen=True):
    """The embedded model.

    Args:
        data_dir: weights lie in `data_dir/models`; None = the caller has none, only paths work.
        context_window: tokens; None = the model's own, bounded by memory.
        threads: processor threads; None = the engine's choice.
        all_tools: offer every tool instead of the eight of MO-39.
        small: `local:default` is the 0.5B model.
    """

    data_dir: Path | None = None
    context_window: int | None = None
    threads: int | None = None
    all_tools: bool = False
    small: bool = False


class TelemetrySettings(msgspec.Struct, frozen=True):
    """OpenTelemetry spans of model calls; `content` allows prompts in them."""

    enabled: bool = False
    content: bool = False


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Everything `open_model` needs.

    Args:
        provider, model: what a name without prefix means.
        providers: by prefix; a name of one's own with a `base_url` is OpenAI-compatible.
        overrides: by `provider:model` or bare model name.
        context_window: tokens to plan with at most; None = what the model has.
        secrets: further values that never appear in an error or trace.

    Example:
        >>> ModelSettings(providers={"openai": ProviderSettings(base_url="http://127.0.0.1:9/v1")}).provider
        'anthropic'
    """

    provider: str = "anthropic"
    model: str = "claude-sonnet-5"
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict[str, ProviderSettings])
    overrides: Mapping[str, ModelOverride] = field(default_factory=dict[str, ModelOverride])
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    router: RouterSettings = field(default_factory=RouterSettings)
    local: LocalSettings = field(default_factory=LocalSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    context_window: int | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def override_of(self, provider: str, model: str) -> ModelOverride:
        """Return what is set for `provider:model`, or for the bare model name."""
        return self.overrides.get(f"{provider}:{model}") or self.overrides.get(model) or ModelOverride()
