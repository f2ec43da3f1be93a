"""Whose key and which address a model's requests go with, from settings (CF-16, CF-18).

Here: functions of names and settings alone, which a start asks; nothing that opens a model is imported.
Not here: opening one (`assembly`).
"""

from bowerbird.core.errors import ConfigError
from bowerbird.core.model_presets import Preset
from bowerbird.models.names import ModelName, preset_of
from bowerbird.models.settings import ModelSettings, ProviderSettings, is_loopback


def missing_key_of(name: ModelName, settings: ModelSettings) -> str | None:
    """Return what to say when `name` needs a key and has none; None when all is well."""
    preset, provider = preset_of(name.provider), provider_of(name, settings)
    if provider.api_key or not preset.key_needed or preset.key_variable is None:
        return None
    if preset.wire == "openai" and is_loopback(base_url_of(preset, provider)):
        return None
    return (
        f"{preset.key_variable} is not set, and {preset.name} needs it; set it, "
        "or choose another model with MODEL=provider:model"
    )


def provider_of(name: ModelName, settings: ModelSettings) -> ProviderSettings:
    """Return what is set for the provider of `name`."""
    return settings.providers.get(name.provider, ProviderSettings())


def base_url_of(preset: Preset, provider: ProviderSettings) -> str:
    """Return where requests go; raises ConfigError when nothing says so."""
    url = (provider.base_url or "").strip() or preset.base_url
    if url is None:
        raise ConfigError(f"{preset.name} needs a base URL: set providers.{preset.name}.base_url")
    url = url.rstrip("/")
    # The path of these requests does not begin there; people write the URL either way.
    return url.removesuffix("/v1") if preset.wire in ("anthropic", "ollama") else url
