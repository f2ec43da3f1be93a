"""OpenTelemetry spans of model calls, by the GenAI conventions (MO-36).

Here: one span per request to a provider. Not here: exporters (the application sets them up), the
session's own traces (`tracing`). Needs the extra `otel`; imported only when turned on.
"""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import ConfigError, ModelError
from bowerbird.core.messages import Message, block_to_data
from bowerbird.core.requests import End, ModelEvent, ModelInfo, ModelRequest, Start
from bowerbird.models.protocol import Model
from bowerbird.models.redact import Redactor

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider

_PROVIDER_NAMES = {"google-genai": "gcp.gemini", "mistral": "mistral_ai"}


class TelemetryModel:
    """A model whose calls are spans `chat {model}`.

    Args:
        model: who answers.
        content: whether messages may stand in spans; they are redacted.
        redactor: removes secrets.
        provider: where spans go; None = the application's.

    Raises:
        ConfigError: the extra `otel` is not installed.
    """

    def __init__(
        self,
        model: Model,
        *,
        content: bool = False,
        redactor: Redactor | None = None,
        provider: "TracerProvider | None" = None,
    ) -> None:
        self._model = model
        self._content = content
        self._redactor = redactor or Redactor()
        self._tracer = _tracer(provider)

    @property
    def info(self) -> ModelInfo:
        """The model's own."""
        return self._model.info

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `Model.stream`."""
        span = self._tracer.start_span(f"chat {self.info.model}", attributes=self._asked(request))
        try:
            async with aclosing(self._model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Start):
                        span.set_attribute("gen_ai.response.model", event.model)
                    elif isinstance(event, End):
                        self._answered(span, event)
                    yield event
        except ModelError as error:
            self._failed(span, error.kind, str(error))
            raise
        finally:
            span.end()

    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        info = self.info
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _PROVIDER_NAMES.get(info.provider, info.provider),
            "gen_ai.request.model": info.model,
            "gen_ai.request.max_tokens": request.max_tokens,
        }
        if request.temperature is not None:
            attributes["gen_ai.request.temperature"] = request.temperature
        if request.session:
            attributes["gen_ai.conversation.id"] = request.session
        if self._content:
            attributes["gen_ai.input.messages"] = self._messages(request.messages)
            attributes["gen_ai.system_instructions"] = self._redactor.text("\n\n".join(request.system))
        return attributes

    def _answered(self, span: "Span", end: End) -> None:
        usage = end.usage
        span.set_attributes(
            {
                "gen_ai.response.finish_reasons": (end.stop_reason,),
                # The convention counts cached tokens as a part of the input.
                "gen_ai.usage.input_tokens": usage.context_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
                "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
                "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
            }
        )
        if self._content:
            span.set_attribute("gen_ai.output.messages", self._messages((end.message,)))

    def _failed(self, span: "Span", kind: str, reason: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        span.set_attribute("error.type", kind)
        span.set_status(Status(StatusCode.ERROR, self._redactor.text(reason)))

    def _messages(self, messages: Sequence[Message]) -> str:
        told = [{"role": m.role, "parts": [block_to_data(block) for block in m.content]} for m in messages]
        return json.dumps(self._redactor.data(told), ensure_ascii=False)


def _tracer(provider: "TracerProvider | None") -> "Tracer":
    try:
        from opentelemetry import trace
    except ImportError as error:
        raise ConfigError(
            "telemetry is turned on, but OpenTelemetry is not installed: pip install 'bowerbird[otel]'"
        ) from error
    return trace.get_tracer("bowerbird.models", tracer_provider=provider)
