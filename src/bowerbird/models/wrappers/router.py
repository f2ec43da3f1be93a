"""Tiers: one model among several by a name for how much it can do (MO-41 … MO-46).

Here: the tiers, which of them answers, what `switch_model` is told. Not here: where the active tier
is recorded (the turn's run state), building models (`registry`).
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

import msgspec

from bowerbird.core.errors import ConfigError, InvalidArgument
from bowerbird.core.requests import ModelEvent, ModelInfo, ModelRequest
from bowerbird.models.protocol import Model
from bowerbird.models.settings import RouterSettings, TierSettings


class UnknownTier(InvalidArgument):
    """No tier has this name, or it could not be built; the message lists those that can be used."""


def check_router(settings: RouterSettings) -> None:
    """Check what can be seen without building a model.

    Raises:
        ConfigError: enabled with no tiers, with a blank default, or with a default not in tiers.
    """
    if not settings.enabled:
        return
    names = ", ".join(sorted(settings.tiers))
    if not settings.tiers:
        raise ConfigError("model_router is enabled but model_router.tiers is empty; name at least one tier")
    if not settings.default_tier.strip():
        raise ConfigError(f"model_router.default_tier is blank; use one of: {names}")
    if settings.default_tier not in settings.tiers:
        raise ConfigError(
            f"model_router.default_tier is {settings.default_tier!r}, not a tier; use one of: {names}"
        )


class TierModel:
    """A tier's model with the tier's own temperature and output limit.

    Args:
        model: who answers.
        tier: what differs there.
    """

    def __init__(self, model: Model, tier: TierSettings) -> None:
        self._model = model
        self._tier = tier

    @property
    def info(self) -> ModelInfo:
        """The model's own."""
        return self._model.info

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `Model.stream`."""
        tier = self._tier
        if tier.temperature is not None:
            request = msgspec.structs.replace(request, temperature=tier.temperature)
        if tier.max_tokens is not None:
            request = msgspec.structs.replace(request, max_tokens=tier.max_tokens)
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                yield event


class RoutingChatModel:
    """A model that is one of its tiers; `switch` gives the same tiers with another one active.

    The active tier belongs to a turn, so a switch changes no shared value: whoever runs the turn
    keeps what `switch` returned.

    Args:
        tiers: name → model; each gets the request's tools, so all are bound to the same ones.
        default_tier: who answers when nobody says otherwise.
        unavailable: name → why the tier could not be built.
        active: the active tier; None = the default.

    Example:
        fast = router.switch("lite")
        async with aclosing(fast.stream(request)) as events: ...
    """

    def __init__(
        self,
        tiers: Mapping[str, Model],
        default_tier: str,
        unavailable: Mapping[str, str] | None = None,
        active: str | None = None,
    ) -> None:
        if default_tier not in tiers:
            raise ConfigError(f"the default tier {default_tier!r} is not among: {', '.join(sorted(tiers))}")
        self._tiers = dict(tiers)
        self.default_tier = default_tier
        self.unavailable = dict(unavailable or {})
        self.active = active or default_tier
        self._current = self._model_of(self.active)

    @property
    def tiers(self) -> tuple[str, ...]:
        """Names of the tiers that can be used, sorted."""
        return tuple(sorted(self._tiers))

    @property
    def info(self) -> ModelInfo:
        """The active tier's."""
        return self._current.info

    def switch(self, tier: str) -> "RoutingChatModel":
        """Return this model with `tier` active from its next call on.

        Raises:
            UnknownTier: nothing changes; the message lists the available tiers, sorted.
        """
        self._model_of(tier)
        return RoutingChatModel(self._tiers, self.default_tier, self.unavailable, tier)

    def check(self, tier: str) -> None:
        """Raise UnknownTier unless `tier` can be used: for tasks and subagents when created."""
        self._model_of(tier)

    def describe(self, tier: str) -> str:
        """Return `tier` with its model, as the result of a switch says it."""
        return f"{tier} ({self._model_of(tier).info.name})"

    async def aclose(self) -> None:
        """Close every tier's model."""
        for model in self._tiers.values():
            await model.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `Model.stream`; the active tier answers."""
        async with aclosing(self._current.stream(request)) as events:
            async for event in events:
                yield event

    def _model_of(self, tier: str) -> Model:
        model = self._tiers.get(tier)
        if model is None:
            available = ", ".join(self.tiers)
            why = self.unavailable.get(tier)
            if why is not None:
                raise UnknownTier(f"tier {tier!r} is disabled: {why}. Available tiers: {available}")
            raise UnknownTier(f"unknown tier {tier!r}. Available tiers: {available}")
        return model
