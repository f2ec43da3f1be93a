"""An agent that is a vendor's or a local model: one request over an existing wire, answered as events.

Here: execute, stream and probe of the types `api` and `local`. Not here: the wires (`models/providers`),
sessions and their history (`registry` hands it in).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from bowerbird.config.sections.agent import ProviderEntry
from bowerbird.core.errors import BowerbirdError, ConfigError, ModelError
from bowerbird.core.messages import Message, TextBlock
from bowerbird.core.requests import End, ModelRequest, Retrying, TextDelta, ThinkingDelta
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.models.names import ModelName
from bowerbird.models.protocol import Model
from bowerbird.models.redact import redactor_of
from bowerbird.models.settings import ModelSettings
from bowerbird.providers.api.listing import NotListed, listed_models
from bowerbird.providers.api.reaching import check_reach, key_advice, reach_of
from bowerbird.providers.catalogue import CatalogueEntry
from bowerbird.providers.choosing import model_of, timeout_of
from bowerbird.providers.contract.errors import (
    AgentAuthError,
    AgentConfigError,
    AgentContextError,
    AgentError,
    AgentExecutionError,
    AgentRateLimited,
    AgentTimeout,
    AgentUnavailable,
    shown,
)
from bowerbird.providers.contract.types import (
    AgentCapabilities,
    AgentEvent,
    AgentInfo,
    AgentProbe,
    AgentRequest,
    AgentResponse,
    check_prompt,
)
from bowerbird.providers.outcomes import answered, failed, lacking, last_of, prompt_text
from bowerbird.providers.secrecy import Masker

NAMES_SHOWN = 5
MOST_OPEN = 8  # models with their connections; a caller may name any
_STANDARD_TOKENS = 16_384


class ApiAgent:
    """See `ProviderAgent`.

    Args:
        entry: of the catalogue, with a `wire`.
        settings: what holds for it (`choosing.settings_of`).
        models: for retries, prices and the secrets that no error shows.
    """

    def __init__(self, entry: CatalogueEntry, settings: ProviderEntry, models: ModelSettings) -> None:
        self._entry = entry
        self._settings = settings
        self._models = models
        self._reach = reach_of(entry, settings)
        self._redactor = redactor_of(models)
        self._masker = Masker((self._reach.api_key,))
        self._open: dict[str, Model] = {}

    @property
    def info(self) -> AgentInfo:
        """What lists show."""
        return self._entry.info(self._settings.model)

    def get_capabilities(self) -> frozenset[AgentCapabilities]:
        """What it can do."""
        return frozenset(self._entry.capabilities)

    def supports_capability(self, capability: AgentCapabilities) -> bool:
        """Whether it can do that."""
        return capability in self._entry.capabilities

    async def execute(self, request: AgentRequest) -> AgentResponse:
        """Ask and wait for the whole answer; see `ProviderAgent.execute`."""
        return await last_of(self.stream(request))

    async def stream(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """Ask, and yield the answer's pieces; see `ProviderAgent.stream`.

        Raises:
            InvalidArgument: a prompt that nobody may be asked.
        """
        check_prompt(request.prompt)
        run = _Run(request, time.monotonic())
        try:
            if (missing := lacking(self.info, request)) is not None:
                raise AgentExecutionError(f"{self._entry.name} does not support {missing.value}")
            check_reach(self._entry, self._reach)
            timeout_s = timeout_of(self._entry, self._settings, request)
            ends = asyncio.get_running_loop().time() + timeout_s
            run.model = await self._model_name(request)
            model = await self._opened(run.model)
            asked = _model_request(request, timeout_s)
            async with aclosing(model.stream(asked)) as events:
                while True:
                    # Each step has the limit, not the block: it must not end who reads the events.
                    async with asyncio.timeout_at(ends):
                        event = await anext(events, None)
                    if event is None:
                        break
                    for said in run.take(event):
                        yield said
        except (BowerbirdError, TimeoutError) as error:
            ended = self._error(error, request)
            yield AgentEvent("error", str(ended), {"error_type": type(ended).__name__})
            yield AgentEvent("done", response=run.failed(ended))
            return
        response = run.response()
        if response.error is not None:
            yield AgentEvent("error", response.error, {"error_type": response.metadata["error_type"]})
        yield AgentEvent("done", response=response)

    async def probe(self, *, live: bool = False) -> AgentProbe:
        """Find out whether it can be asked; see `ProviderAgent.probe`."""
        name = self._entry.name
        try:
            check_reach(self._entry, self._reach)
        except AgentAuthError:
            return self._probed("key_missing", f"no key: {key_advice(self._entry)}")
        except AgentConfigError as error:
            return self._probed("unavailable", str(error))
        if self._entry.type == "api" and not live:
            return self._probed("operative", "the key is set; it was not tried")
        began = time.monotonic()
        try:
            names = await listed_models(self._reach)
        except NotListed as error:
            return self._not_listed(error)
        took_ms = (time.monotonic() - began) * 1000
        if self._entry.type == "api":
            return self._probed("operative", f"{name} accepted the key", took_ms)
        if not names:
            return self._probed("operative", "no models pulled", took_ms)
        more = ", …" if len(names) > NAMES_SHOWN else ""
        count = f"{len(names)} model{'s' if len(names) > 1 else ''}"
        return self._probed("operative", f"{count}: {', '.join(names[:NAMES_SHOWN])}{more}", took_ms)

    async def test_connection(self) -> bool:
        """Whether a live probe says `operative`."""
        return (await self.probe(live=True)).status == "operative"

    async def close(self) -> None:
        """Close the connections."""
        opened, self._open = list(self._open.values()), {}
        for model in opened:
            await model.aclose()

    async def _model_name(self, request: AgentRequest) -> str:
        chosen = model_of(self._entry, self._settings, request)
        if chosen is not None:
            return chosen
        try:
            names = await listed_models(self._reach)
        except NotListed as error:
            raise AgentUnavailable(f"{self._entry.name}: {error}{_if_local(self._entry)}") from error
        if not names:
            raise AgentUnavailable(
                f"{self._entry.name} has no models pulled; run `ollama pull MODEL`, or name one with "
                f"providers.{self._entry.name}.model"
            )
        return names[0]

    async def _opened(self, name: str) -> Model:
        """Return the model, opened once."""
        if name not in self._open:
            while len(self._open) >= MOST_OPEN:
                await self._open.pop(next(iter(self._open))).aclose()
            self._open[name] = await to_thread(self._made, name)
        return self._open[name]

    def _made(self, name: str) -> Model:
        """Return a new model; blocks while the wires are imported."""
        from bowerbird.models.assembly import open_at
        from bowerbird.models.wrappers.retry import RetryingModel

        preset = self._reach.preset
        settings = self._reach.models(self._models, self._settings.idle_timeout)
        return RetryingModel(open_at(preset, ModelName(preset.name, name), settings), self._models.retry)

    def _error(self, error: Exception, request: AgentRequest) -> AgentError:
        """Return what went wrong as one of our errors, without any piece of a key."""
        name = self._entry.name
        if isinstance(error, TimeoutError):
            limit = timeout_of(self._entry, self._settings, request)
            return AgentTimeout(f"{name} did not answer within {limit:g} s")
        if isinstance(error, ModelError):
            return self._of_model(error)
        said = shown(self._masker.text(self._redactor.text(str(error))))
        if isinstance(error, AgentError):
            return type(error)(said)
        return AgentConfigError(said) if isinstance(error, ConfigError) else AgentExecutionError(said)

    def _of_model(self, error: ModelError) -> AgentError:
        name, status = self._entry.name, f" (HTTP {error.status})" if error.status else ""
        said = shown(self._masker.text(self._redactor.text(str(error))))
        match error.kind:
            case "auth":  # what vendors say here quotes the key
                return AgentAuthError(f"{name} refused the key{status}; {key_advice(self._entry)}")
            case "rate_limit" | "quota":
                return AgentRateLimited(f"{name}: {said}", error.retry_after_s)
            case "timeout":
                return AgentTimeout(f"{name}: {said}")
            case "network" | "overloaded" | "not_found":
                return AgentUnavailable(f"{name}: {said}")
            case "context_overflow":
                return AgentContextError(f"{name}: {said}")
            case _:
                return AgentExecutionError(f"{name}: {said}")

    def _not_listed(self, error: NotListed) -> AgentProbe:
        said = self._masker.text(str(error))
        if error.status in (401, 403):
            return self._probed("key_missing", f"key rejected; {key_advice(self._entry)}")
        if self._entry.type == "api" and error.status is not None and error.status < 500:
            return self._probed("operative", "it answers; it has no list of models to try the key on")
        return self._probed("unreachable", said + _if_local(self._entry))

    def _probed(self, status: Any, detail: str, latency_ms: float | None = None) -> AgentProbe:
        rounded = None if latency_ms is None else round(latency_ms, 1)
        return AgentProbe(self._entry.name, status, detail, rounded, None, now_iso())


class _Run:
    """One request while it is answered."""

    def __init__(self, request: AgentRequest, began: float) -> None:
        self._request = request
        self._began = began
        self._text: list[str] = []
        self._end: End | None = None
        self.model = ""

    def take(self, event: object) -> Sequence[AgentEvent]:
        """Return what is shown of a model's event."""
        if isinstance(event, TextDelta):
            self._text.append(event.text)
            return (AgentEvent("text", event.text),)
        if isinstance(event, ThinkingDelta):
            return (AgentEvent("thinking", event.text),)
        if isinstance(event, Retrying) and event.restarts:
            # What was shown cannot be taken back, and twice the same words would be wrong.
            raise AgentExecutionError(f"the answer broke off: {event.reason}")
        if isinstance(event, End):
            self._end = event
            return (AgentEvent("usage", data={"tokens": _tokens(event), "cost": event.usage.cost}),)
        return ()

    def response(self) -> AgentResponse:
        end = self._end
        if end is None:
            return self.failed(AgentExecutionError("the answer ended without its last event"))
        why = {"max_tokens": "it reached its limit of tokens", "refusal": "it refused"}.get(end.stop_reason)
        if why is not None or not end.message.text.strip():
            said = f"the answer is not complete: {why}" if why else "the answer has no text"
            return self.failed(AgentExecutionError(said))
        return answered(self._request, end.message.text, **self._figures())

    def failed(self, error: AgentError) -> AgentResponse:
        return failed(self._request, error, content="".join(self._text), **self._figures())

    def _figures(self) -> dict[str, Any]:
        end = self._end
        metadata: dict[str, Any] = {"transport": "http", **({"model": self.model} if self.model else {})}
        if self._request.max_cost is not None:  # one call: what it costs is known when it is over
            metadata["ignored"] = ["max_cost"]
        return {
            "metadata": {**metadata, **({"stop_reason": end.stop_reason} if end is not None else {})},
            "execution_time": time.monotonic() - self._began,
            "tokens_used": _tokens(end) if end is not None else None,
            "cost": end.usage.cost if end is not None else None,
        }


def _tokens(end: End) -> int:
    return end.usage.context_tokens + end.usage.output_tokens


def _if_local(entry: CatalogueEntry) -> str:
    return "; is it running?" if entry.type == "local" else ""


def _model_request(request: AgentRequest, timeout_s: float) -> ModelRequest:
    system = tuple(log.content for log in request.history if log.role == "system")
    said = [log for log in request.history if log.role != "system"]
    messages = [
        Message("user" if log.role == "user" else "assistant", (TextBlock(log.content),)) for log in said
    ]
    return ModelRequest(
        (*messages, Message("user", (TextBlock(prompt_text(request)),))),
        system,
        max_tokens=request.max_tokens or _STANDARD_TOKENS,
        deadline_s=timeout_s,
    )


def api_maker(models: Callable[[], ModelSettings]) -> Callable[[CatalogueEntry, ProviderEntry], ApiAgent]:
    """Return what makes agents of the types `api` and `local`."""
    return lambda entry, settings: ApiAgent(entry, settings, models())
