"""OpenAI's Responses wire, for text: what some of its models are only offered by.

Here: requests with text, their streamed answers, how a request proves who asks. Not here: tools and images,
which no caller of this wire has (Chat Completions in `openai_model` does), the call (`adapter`).
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

PATH = "/responses"
OPTIONAL_FIELDS = frozenset({"max_output_tokens", "stream", "store"})


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None


class _Content(msgspec.Struct):
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct):
    type: str = ""
    content: list[_Content] | None = None


class _Why(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    model: str | None = None
    status: str | None = None
    output: list[_Item] | None = None
    usage: _Usage | None = None
    error: dict[str, Any] | None = None
    incomplete_details: _Why | None = None


class _Event(msgspec.Struct):
    type: str = ""
    delta: str | dict[str, Any] | None = None
    response: _Response | None = None
    code: str | None = None
    message: str | None = None


_decode_event: Callable[[bytes], _Event] = decoder(_Event)
_decode_response: Callable[[bytes], _Response] = decoder(_Response)


class ResponsesFold:
    """Folds the events of one answer into ours; see `adapter.Fold`."""

    def __init__(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> None:
        self._answer = answer
        self._failed = failed
        self._request_id = request_id
        self._started = False
        self._stop: StopReason | None = None
        self._usage: _Usage | None = None

    @property
    def complete(self) -> bool:
        """Whether the final event came."""
        return self._stop is not None

    @property
    def usage(self) -> Usage | None:
        """What was reported; the cached part of the input is no input of ours."""
        reported = self._usage
        if reported is None:
            return None
        cached = (reported.input_tokens_details or _Details()).cached_tokens or 0
        return Usage(
            input_tokens=max(0, reported.input_tokens - cached),
            output_tokens=reported.output_tokens,
            cache_read_tokens=cached,
            reasoning_tokens=(reported.output_tokens_details or _Details()).reasoning_tokens or 0,
        )

    def feed(self, payload: bytes) -> Sequence[ModelEvent]:
        """Return the events of one payload; raises msgspec.DecodeError for unreadable ones."""
        if payload == b"[DONE]":
            return ()
        event = _decode_event(payload)
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                if event.type == "response.refusal.delta":
                    self._answer.notes.append("refusal")
                return self._text(event.delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                if isinstance(event.delta, str) and event.delta:
                    self._answer.add_thinking(event.delta)
                    return (ThinkingDelta(event.delta),)
                return ()
            case "response.created" if event.response is not None:
                return self._start(event.response)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._finish(event.response or _Response())
                return ()
            case "error":
                raise self._failed({"message": event.message or "it failed", "code": event.code})
            case _:
                return ()

    def whole(self, payload: bytes) -> Sequence[ModelEvent]:
        """Return the events of an answer that was not streamed."""
        response = _decode_response(payload)
        events = list(self._start(response))
        for item in response.output or ():
            for part in item.content or ():
                events += self._text(part.text or part.refusal)
        self._finish(response)
        return events

    def finish(self) -> Sequence[ModelEvent]:
        """Nothing is held back."""
        return ()

    def end(self) -> End:
        """Return the final event of a complete answer."""
        return self._answer.end(self._stop or "other", self.usage)

    def _start(self, response: _Response) -> Sequence[ModelEvent]:
        if self._started:
            return ()
        self._started = True
        return (Start(response.model or self._answer.model, self._request_id),)

    def _text(self, text: object) -> Sequence[ModelEvent]:
        if not isinstance(text, str) or not text:
            return ()
        self._answer.add_text(text)
        return (TextDelta(text),)

    def _finish(self, response: _Response) -> None:
        self._usage = response.usage
        if response.error is not None or response.status in ("failed", "cancelled"):
            raise self._failed(response.error or {"message": f"the answer is {response.status}"})
        why = (response.incomplete_details or _Why()).reason
        if "refusal" in self._answer.notes or why == "content_filter":
            self._stop = "refusal"
        elif why == "max_output_tokens":
            self._stop = "max_tokens"
        else:
            self._stop = "end_turn" if why is None else "other"


class ResponsesWire:
    """See `adapter.Wire`."""

    optional_fields = OPTIONAL_FIELDS

    def key(self, request: ModelRequest, traits: Traits, without: frozenset[str]) -> Hashable:
        """Everything beside a message that its translation depends on."""
        return ("responses",)

    def body(
        self, request: ModelRequest, traits: Traits, blobs: Mapping[str, bytes], without: frozenset[str]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the body of a request, and no notes."""
        limit = traits.output_limit
        body: dict[str, Any] = {
            "model": traits.info.model,
            "input": [
                {"role": message.role, "content": message.text}
                for message in request.messages
                if message.text.strip()
            ],
            "max_output_tokens": min(request.max_tokens, limit) if limit else request.max_tokens,
            "stream": True,
            "store": False,  # what is said here is kept here, not at the vendor
        }
        if system := "\n\n".join(text for text in request.system if text):
            body["instructions"] = system
        return {key: value for key, value in body.items() if key not in without}, ()

    def fold(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> Fold:
        """A fold for one answer."""
        return ResponsesFold(answer, failed, request_id)


def connect(endpoint: Endpoint, redactor: Redactor) -> Connection:
    """Return a connection to a server that speaks OpenAI Responses."""
    headers = {"authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    return Connection(endpoint, PATH, headers, redactor)
