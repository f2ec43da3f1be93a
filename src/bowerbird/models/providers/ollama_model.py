"""Ollama's own chat wire, for text: lines of JSON from `/api/chat`.

Here: requests with text, their streamed answers. Not here: tools and images (Ollama's compatible side in
`openai_model` has them), the call (`adapter`), which models are there.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import msgspec

from bowerbird.core.errors import ModelError
from bowerbird.core.forms import decoder
from bowerbird.core.requests import End, ModelEvent, ModelRequest, Start, StopReason, TextDelta, ThinkingDelta
from bowerbird.core.usage import Usage
from bowerbird.models.answers.answer import Answer
from bowerbird.models.catalog import Traits
from bowerbird.models.providers.adapter import Fold
from bowerbird.models.providers.connection import Connection
from bowerbird.models.providers.endpoint import Endpoint
from bowerbird.models.redact import Redactor

PATH = "/api/chat"
_STOPS: dict[str, StopReason] = {"stop": "end_turn", "length": "max_tokens"}


class _Message(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None


class _Chunk(msgspec.Struct):
    model: str | None = None
    message: _Message | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: str | None = None


_decode: Callable[[bytes], _Chunk] = decoder(_Chunk)


class OllamaFold:
    """Folds the lines of one answer into events; see `adapter.Fold`."""

    def __init__(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> None:
        self._answer = answer
        self._failed = failed
        self._request_id = request_id
        self._started = False
        self._last: _Chunk | None = None

    @property
    def complete(self) -> bool:
        """Whether the line came that says so."""
        return self._last is not None

    @property
    def usage(self) -> Usage | None:
        """What the last line reported; it leaves the input out where it was evaluated before."""
        if self._last is None or self._last.eval_count is None:
            return None
        return Usage(input_tokens=self._last.prompt_eval_count or 0, output_tokens=self._last.eval_count)

    def feed(self, payload: bytes) -> Sequence[ModelEvent]:
        """Return the events of one line; raises msgspec.DecodeError for unreadable ones."""
        chunk = _decode(payload)
        if chunk.error is not None:
            raise self._failed({"message": chunk.error})
        events: list[ModelEvent] = []
        if not self._started:
            self._started = True
            events.append(Start(chunk.model or self._answer.model, self._request_id))
        message = chunk.message or _Message()
        if message.thinking:
            self._answer.add_thinking(message.thinking)
            events.append(ThinkingDelta(message.thinking))
        if message.content:
            self._answer.add_text(message.content)
            events.append(TextDelta(message.content))
        if chunk.done:
            self._last = chunk
        return events

    def whole(self, payload: bytes) -> Sequence[ModelEvent]:
        """Return the events of an answer that was not streamed."""
        return self.feed(payload)

    def finish(self) -> Sequence[ModelEvent]:
        """Nothing is held back."""
        return ()

    def end(self) -> End:
        """Return the final event of a complete answer."""
        reason = self._last.done_reason if self._last is not None else None
        return self._answer.end(_STOPS.get(reason or "stop", "other"), self.usage)


class OllamaWire:
    """See `adapter.Wire`."""

    optional_fields: frozenset[str] = frozenset()

    def key(self, request: ModelRequest, traits: Traits, without: frozenset[str]) -> Hashable:
        """Everything beside a message that its translation depends on."""
        return ("ollama",)

    def body(
        self, request: ModelRequest, traits: Traits, blobs: Mapping[str, bytes], without: frozenset[str]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the body of a request, and no notes."""
        system = "\n\n".join(text for text in request.system if text)
        messages = [
            {"role": message.role, "content": message.text}
            for message in request.messages
            if message.text.strip()
        ]
        return {
            "model": traits.info.model,
            "messages": [{"role": "system", "content": system}, *messages] if system else messages,
            "stream": True,
            "options": {"num_predict": request.max_tokens},
        }, ()

    def fold(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> Fold:
        """A fold for one answer."""
        return OllamaFold(answer, failed, request_id)


def connect(endpoint: Endpoint, redactor: Redactor) -> Connection:
    """Return a connection to an Ollama server."""
    headers = {"authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    return Connection(endpoint, PATH, headers, redactor)
