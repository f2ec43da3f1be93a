"""How a vendor's model is reached: its preset, address and headers, from catalogue and settings.

Here, pure: those values. Not here: asking it (`agent`), the list of its models (`listing`).
"""

from dataclasses import dataclass, field, replace

import msgspec

from bowerbird.config.sections.agent import ProviderEntry
from bowerbird.core.model_presets import PRESETS, Preset
from bowerbird.models.names import preset_of
from bowerbird.models.settings import ModelSettings, ProviderSettings, Timeouts, is_loopback
from bowerbird.providers.catalogue import CatalogueEntry
from bowerbird.providers.contract.errors import AgentAuthError, AgentConfigError

_A_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Reach:
    """Where an agent is, and with what it is asked.

    Attributes:
        base_url: without a slash at its end.
        allow_remote: whether a local agent may be on another machine.
    """

    preset: Preset
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    allow_remote: bool = True

    @property
    def own_key_missing(self) -> bool:
        """Whether it needs a key and has none."""
        return self.preset.key_needed and not (self.api_key or "").strip()

    def models(self, settings: ModelSettings, silence_s: float | None) -> ModelSettings:
        """Return `settings` with this agent's key, address and waits in the place of its prefix's."""
        usual = Timeouts()
        # How long the first event may take is each request's own limit.
        waits = Timeouts(usual.connect_s, _A_DAY_S, silence_s if silence_s is not None else usual.silence_s)
        own = ProviderSettings(self.api_key, self.base_url, self.headers, waits)
        return replace(settings, providers={**settings.providers, self.preset.name: own})


def reach_of(entry: CatalogueEntry, settings: ProviderEntry) -> Reach:
    """Return how `entry` is reached; an address that may not be asked is refused when it is asked."""
    url = settings.base_url.reveal() if settings.base_url is not None else entry.base_url or ""
    url = url.rstrip("/")
    if entry.wire == "ollama":
        url = url.removesuffix("/v1")  # the address of its other wire, which the same variable names
    preset = _preset(entry)
    if preset.wire == "anthropic":
        url = url.removesuffix("/v1")
    key = settings.api_key.reveal() if settings.api_key is not None else None
    headers = {name: value.reveal() for name, value in settings.headers.items()}
    return Reach(preset, url, key, headers, entry.type != "local" or settings.allow_remote)


def check_reach(entry: CatalogueEntry, reach: Reach) -> None:
    """Raise for an agent that may not, or cannot, be asked as settings stand.

    Raises:
        AgentAuthError: no key. AgentConfigError: another machine, without leave.
    """
    if not reach.allow_remote and not is_loopback(reach.base_url):
        raise AgentConfigError(
            f"{entry.name} is set to {reach.base_url}, which is not this machine; set "
            f"providers.{entry.name}.allow_remote: true to send prompts there"
        )
    if reach.own_key_missing:
        raise AgentAuthError(f"{entry.name} has no key: {key_advice(entry)}")


def key_advice(entry: CatalogueEntry) -> str:
    """Return how its key is set; one of its vendor's is not sent to an address that only the agent has."""
    names = " or ".join(entry.key_variables)
    own = f"providers.{entry.name}.api_key"
    if not names:
        return f"set {own}"
    return f"set {names}, or {own} where it has an address of its own" if entry.shares else f"set {names}"


def _preset(entry: CatalogueEntry) -> Preset:
    known = PRESETS.get(entry.shares or entry.name)
    variable = entry.key_variables[0] if entry.key_variables else None
    if entry.wire == "ollama":
        return Preset(entry.name, "ollama", key_needed=False, colon_names=True)
    if known is None:
        sold_as = entry.prices_as[0] if entry.prices_as and entry.prices_as[0] == entry.name else None
        return msgspec.structs.replace(
            preset_of(entry.name), key_variable=variable, key_needed=variable is not None, prices_as=sold_as
        )
    if entry.wire == "responses":
        return msgspec.structs.replace(known, wire="responses")
    # The newer name of the role in which its own models take instructions.
    return msgspec.structs.replace(known, system_role="developer") if known.name == "openai" else known
