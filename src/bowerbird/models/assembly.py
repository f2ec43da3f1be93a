"""One model behind a wire, put together from settings.

Here: address, key, traits and wire of one `provider:model`. Not here: wrappers and names
(`registry`), the call itself (`providers/adapter`). Imported when the first model is opened; HTTP is not
imported before the first call.
"""

from functools import partial
from urllib.parse import urlsplit

from bowerbird.core.model_presets import Preset
from bowerbird.models.catalog import Traits, needs_responses, traits_of
from bowerbird.models.failures import Asked
from bowerbird.models.keys import base_url_of, missing_key_of, provider_of
from bowerbird.models.names import ModelName, preset_of
from bowerbird.models.prices import is_priced, pricer, window
from bowerbird.models.providers import anthropic_model
from bowerbird.models.providers.adapter import Wire, WireModel
from bowerbird.models.providers.connection import Connection
from bowerbird.models.providers.content import BlobReader
from bowerbird.models.providers.endpoint import Endpoint, is_azure
from bowerbird.models.redact import Redactor, redactor_of
from bowerbird.models.settings import ModelSettings


def open_wire(name: ModelName, settings: ModelSettings, blobs: BlobReader | None) -> WireModel:
    """Return the model `name`, without retries.

    Raises:
        ConfigError: no base URL, one that is none, or TLS turned off for another host.
    """
    return open_at(preset_of(name.provider), name, settings, blobs)


def open_at(
    preset: Preset, name: ModelName, settings: ModelSettings, blobs: BlobReader | None = None
) -> WireModel:
    """Return the model `name` as `preset` says that its server is asked, without retries.

    A preset need not be one of the known ones: a provider agent may want another wire of the same vendor.

    Raises:
        ConfigError: as `open_wire` raises it.
    """
    provider = provider_of(name, settings)
    base_url, redactor = base_url_of(preset, provider), redactor_of(settings)
    own_host = _is_own_host(preset, base_url)
    endpoint = Endpoint(
        asked=Asked(name.provider, name.model, base_url, preset.key_variable),
        base_url=base_url,
        api_key=provider.api_key,
        headers=provider.headers,
        timeouts=provider.timeouts,
        verify_tls=provider.verify_tls,
    )
    wire, connection = _wire(preset, endpoint, redactor, own_host=own_host)
    return WireModel(
        wire,
        connection,
        partial(_traits, preset, name, settings, own_host),
        pricer(name.provider, name.model, settings.overrides, preset.prices_as),
        blobs=blobs,
        redactor=redactor,
        missing_key=missing_key_of(name, settings),
    )


def _wire(
    preset: Preset, endpoint: Endpoint, redactor: Redactor, *, own_host: bool
) -> tuple[Wire, Connection]:
    moved = preset.name == "openai" and own_host and needs_responses(endpoint.asked.model)
    moved = moved and "/deployments/" not in endpoint.base_url  # Azure's older addresses have no other wire
    match "responses" if moved else preset.wire:
        case "anthropic":
            return anthropic_model.AnthropicWire(), anthropic_model.connect(endpoint, redactor)
        case "responses":
            from bowerbird.models.providers import responses_model

            return responses_model.ResponsesWire(), responses_model.connect(endpoint, redactor)
        case "ollama":
            from bowerbird.models.providers import ollama_model

            return ollama_model.OllamaWire(), ollama_model.connect(endpoint, redactor)
        case "openai" | "local":
            from bowerbird.models.providers import openai_model

            wire = openai_model.OpenAIWire(preset, own_host=own_host)
            return wire, openai_model.connect(endpoint, redactor)


def _traits(preset: Preset, name: ModelName, settings: ModelSettings, own_host: bool) -> Traits:
    return traits_of(
        preset,
        name.model,
        own_host=own_host,
        override=settings.override_of(name.provider, name.model),
        context_window=settings.context_window,
        known_window=window(name.provider, name.model),
        priced=is_priced(name.provider, name.model, settings.overrides),
    )


def _is_own_host(preset: Preset, base_url: str) -> bool:
    if preset.name == "openai" and is_azure(base_url):
        return True
    return preset.base_url is not None and urlsplit(base_url).hostname == urlsplit(preset.base_url).hostname
