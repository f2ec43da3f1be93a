"""Models opened by name: which adapter, with which wrappers (MO-16, MO-33, MO-41).

Here: how the pieces of this package become one `Model`. Not here: reading settings (`config`), any
wire. No HTTP library is imported before the first call.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import BowerbirdError, ConfigError, NoModel
from bowerbird.models.names import ModelName, parse_model_name, refuse_foreign
from bowerbird.models.protocol import Model
from bowerbird.models.providers.content import BlobReader
from bowerbird.models.redact import redactor_of
from bowerbird.models.settings import ModelSettings, ProviderSettings, TierSettings
from bowerbird.models.wrappers.retry import RetryingModel

if TYPE_CHECKING:
    from bowerbird.models.wrappers.router import RoutingChatModel

_NO_MODEL = (
    "no model is configured: set MODEL=provider:model and that provider's key (such as ANTHROPIC_API_KEY), "
    "or MODEL=local:default for the embedded model"
)


def resolve_name(name: str | None, settings: ModelSettings) -> ModelName:
    """Return the model that `name` means under `settings`; None or blank = the configured one.

    Raises:
        NoModel: nothing is named and nothing configured.
        ConfigError: unknown prefix, or a bare name of another vendor's.
    """
    text = (name or "").strip() or settings.model.strip()
    if not text:
        raise NoModel(_NO_MODEL)
    extra = [prefix for prefix, provider in settings.providers.items() if provider.base_url]
    # A proxy at another address may have every vendor's models, and a name that settings hold is meant.
    if settings.provider not in extra and text not in settings.overrides:
        refuse_foreign(text, settings.provider)
    return parse_model_name(text, settings.provider, extra)


def open_model(name: str | None, settings: ModelSettings, *, blobs: BlobReader | None = None) -> Model:
    """Return the model called `name`, ready to be asked: with retries and its fallbacks.

    Args:
        name: `provider:model`, `provider/model`, or a bare name; None = the configured model.
        settings: see `ModelSettings`.
        blobs: reads files that messages name.

    Raises:
        NoModel: nothing is named and nothing configured.
        ConfigError: unknown prefix, missing base URL, TLS turned off for another host. A missing key
            is said at the first call.

    Example:
        model = open_model("ollama:qwen2:7b", ModelSettings())
        end = await complete(model, ModelRequest((user_text("hello"),)))
    """
    resolved = resolve_name(name, settings)
    first = _with_retries(resolved, settings, blobs)
    names = settings.override_of(resolved.provider, resolved.model).fallback
    if not names:
        return first
    others = [_with_retries(resolve_name(other, settings), settings, blobs) for other in names]
    from bowerbird.models.wrappers.fallback import FallbackModel

    return FallbackModel([first, *others])


def open_router(settings: ModelSettings, *, blobs: BlobReader | None = None) -> "RoutingChatModel":
    """Return the router that settings describe; `unavailable` names tiers that could not be built.

    Raises:
        ConfigError: no tiers, no such default, or a default tier that cannot be built.
    """
    from bowerbird.models.wrappers.router import RoutingChatModel, check_router

    router = settings.router
    check_router(msgspec.structs.replace(router, enabled=True))
    tiers: dict[str, Model] = {}
    unavailable: dict[str, str] = {}
    for name, tier in router.tiers.items():
        try:
            tiers[name] = _open_tier(tier, settings, blobs)
        except BowerbirdError as error:
            if name == router.default_tier:
                raise ConfigError(
                    f"model_router.tiers.{name}, the default tier, cannot be built: {error}"
                ) from error
            unavailable[name] = str(error)
    return RoutingChatModel(tiers, router.default_tier, unavailable)


class ModelPool:
    """Models opened once per process and shared: connections, failures and prices are kept.

    Args:
        settings: see `ModelSettings`.
        blobs: reads files that messages name.

    Example:
        pool = ModelPool(settings)
        model = pool.get("anthropic:claude-sonnet-5")
        await pool.aclose()
    """

    def __init__(self, settings: ModelSettings, blobs: BlobReader | None = None) -> None:
        self.settings = settings
        self._blobs = blobs
        self._open: dict[str, Model] = {}
        self._router: RoutingChatModel | None = None

    def get(self, name: str | None = None) -> Model:
        """Return the model called `name`; raises what `open_model` raises."""
        key = str(resolve_name(name, self.settings))
        if key not in self._open:
            self._open[key] = open_model(key, self.settings, blobs=self._blobs)
        return self._open[key]

    @property
    def router(self) -> "RoutingChatModel | None":
        """The router, None when it is turned off; raises what `open_router` raises."""
        if self._router is None and self.settings.router.enabled:
            self._router = open_router(self.settings, blobs=self._blobs)
        return self._router

    async def aclose(self) -> None:
        """Close every model; may be called more than once."""
        models: list[Model] = [*self._open.values(), *([self._router] if self._router else [])]
        self._open, self._router = {}, None
        for model in models:
            await model.aclose()


def _with_retries(name: ModelName, settings: ModelSettings, blobs: BlobReader | None) -> Model:
    if name.provider == "local":
        from bowerbird.models.local import open_local

        return open_local(name.model, settings.local)
    from bowerbird.models.assembly import open_wire

    model: Model = open_wire(name, settings, blobs)
    if settings.telemetry.enabled:
        from bowerbird.models.wrappers.telemetry import TelemetryModel

        model = TelemetryModel(model, content=settings.telemetry.content, redactor=redactor_of(settings))
    return RetryingModel(model, settings.retry)


def _open_tier(tier: TierSettings, settings: ModelSettings, blobs: BlobReader | None) -> Model:
    """Open a tier; one without its key cannot be built, so that a switch never leads to an error."""
    from bowerbird.models.keys import missing_key_of
    from bowerbird.models.wrappers.router import TierModel

    name = resolve_name(f"{tier.name}:{tier.model}", settings)
    provider = settings.providers.get(name.provider, ProviderSettings())
    if tier.base_url and tier.base_url != provider.base_url:
        # Another address: the provider's key belongs to its own host.
        provider = replace(provider, base_url=tier.base_url, api_key=None)
    if tier.api_key:
        provider = replace(provider, api_key=tier.api_key)
    own = replace(settings, providers={**settings.providers, name.provider: provider})
    if name.provider != "local" and (missing := missing_key_of(name, own)):
        raise ConfigError(missing)
    return TierModel(_with_retries(name, own, blobs), tier)
