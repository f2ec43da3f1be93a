"""The part that the Anthropic and the OpenAI adapter share: one call from request to `End`.

Here: reading blobs, sending the body, folding the answer, remembering refused fields. Not here: the
two wires, HTTP errors (`connection`), retries (`wrappers/retry`).
"""

from collections.abc import AsyncGenerator, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import cached_property, lru_cache
from typing import Any, Protocol

import msgspec

from bowerbird.core.errors import BowerbirdError, ConfigError, ModelError
from bowerbird.core.requests import (
    End,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
)
from bowerbird.core.threads import to_thread
from bowerbird.core.usage import Usage
from bowerbird.models.answers.answer import Answer
from bowerbird.models.catalog import Traits
from bowerbird.models.failures import PART, PICTURES, FieldRefused, error_in_stream
from bowerbird.models.providers.beginnings import not_kept
from bowerbird.models.providers.connection import LARGEST_ANSWER, Connection
from bowerbird.models.providers.content import BlobReader, images_in, with_fit_pictures
from bowerbird.models.providers.encoding import encode_body
from bowerbird.models.providers.halves import read_with_halves
from bowerbird.models.redact import Redactor

# More events than this in one read: nobody reads that fast, and each costs every viewer a message.
BURST = 32
BYTES_OF_A_TOKEN = 512  # at most, on the wire, with the event that carries it
MOST_KEPT = 1_000  # pictures, and other parts, that a server refused
MANY_MESSAGES = 500  # translated for the first time they would hold the event loop for a few milliseconds


class Refusals:
    """Optional fields, pictures and other parts that one server refused for one model."""

    def __init__(self) -> None:
        self.fields: frozenset[str] = frozenset()
        self.pictures: dict[str, None] = {}
        self.parts: dict[str, None] = {}

    def add(self, error: FieldRefused, request: ModelRequest) -> None:
        """Leave a field or part out from now on, or the pictures of `request`: not all say which it was."""
        if error.field == PICTURES:
            self.pictures |= dict.fromkeys(image.source.blob for image in images_in(request.messages))
        elif error.field == PART:
            self.parts[error.key] = None
        else:
            self.fields |= {error.field}
        for kept in (self.pictures, self.parts):
            for oldest in list(kept)[:-MOST_KEPT]:
                del kept[oldest]


@lru_cache(maxsize=1_024)
def refusals_of(base_url: str, model: str) -> Refusals:
    """Return what `model` at `base_url` refused since this process started.

    Shared by all models of the process on purpose: a server is not asked again by every session.
    """
    return Refusals()


class Fold(Protocol):
    """What makes events of payloads, per wire."""

    @property
    def complete(self) -> bool:
        """Whether the final marker came."""
        ...

    @property
    def usage(self) -> Usage | None:
        """What was reported so far."""
        ...

    def feed(self, payload: bytes) -> Sequence[ModelEvent]:
        """Events of one payload."""
        ...

    def whole(self, payload: bytes) -> Sequence[ModelEvent]:
        """Events of an answer that was not streamed."""
        ...

    def finish(self) -> Sequence[ModelEvent]:
        """Events held back until the end."""
        ...

    def end(self) -> End:
        """The final event."""
        ...


class Wire(Protocol):
    """One provider's form of requests and answers."""

    optional_fields: frozenset[str]

    def key(self, request: ModelRequest, traits: Traits, without: frozenset[str]) -> Hashable:
        """Everything beside a message that its translation depends on."""
        ...

    def body(
        self, request: ModelRequest, traits: Traits, blobs: Mapping[str, bytes], without: frozenset[str]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Body and notes of a request."""
        ...

    def fold(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> Fold:
        """A fold for one answer."""
        ...


class WireModel:
    """A model behind a wire. Made by `open_model`; a `Model` of its own, without retries.

    Args:
        wire: form of requests and answers.
        connection: where they go.
        traits: makes what the model takes; called on first use, as it looks up a price.
        price: USD of a usage.
        blobs: reads files that messages name where a request does not say who does; None = they are
            described only.
        redactor: for what errors quote.
        missing_key: what the first call says when a needed key is missing.
    """

    def __init__(
        self,
        wire: Wire,
        connection: Connection,
        traits: Callable[[], Traits],
        price: Callable[[Usage], float | None],
        *,
        blobs: BlobReader | None = None,
        redactor: Redactor | None = None,
        missing_key: str | None = None,
    ) -> None:
        self._wire = wire
        self._connection = connection
        self._make_traits = traits
        self._price = price
        self._blobs = blobs
        self._redactor = redactor or Redactor()
        self._missing_key = missing_key
        endpoint = connection.endpoint
        self._refusals = refusals_of(endpoint.base_url, endpoint.asked.model)

    @cached_property
    def _traits(self) -> Traits:
        return self._make_traits()

    @property
    def info(self) -> ModelInfo:
        """What the model can do."""
        return self._traits.info

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `Model.stream`. Raises ConfigError when a needed key is missing."""
        if self._missing_key is not None:
            raise ConfigError(self._missing_key)
        traits = self._traits
        refused = self._refusals.fields
        body, notes, has_pictures = await self._encoded(request, refused)
        optional = self._wire.optional_fields - refused
        if has_pictures:
            optional |= {PICTURES}
        longest = LARGEST_ANSWER + BYTES_OF_A_TOKEN * request.max_tokens
        try:
            async with self._connection.answer(body, request.deadline_s, optional, longest) as raw:
                answer = Answer(request, traits.info.name, self._price)
                answer.notes.extend(notes)
                fold = self._wire.fold(answer, self._failed, raw.request_id)
                try:
                    if raw.is_stream:
                        async with aclosing(raw.payloads()) as reads:
                            async for payloads in reads:
                                for event in _events(fold, payloads):
                                    yield event
                    else:
                        for event in read_with_halves(fold.whole, await raw.whole()):
                            yield event
                except msgspec.DecodeError as error:
                    if not raw.in_last_event:
                        raise self._unreadable(error) from error
                    raise self._cut("it ended in the middle of an event", answer, fold) from error
                except ModelError as error:
                    # A cut answer is charged with what is known of it.
                    error.usage = answer.usage(fold.usage)
                    raise
                for event in fold.finish():
                    yield event
                if not fold.complete:
                    if raw.is_page:
                        raise self._connection.page()
                    raise self._cut("the stream closed without its final marker", answer, fold)
                yield fold.end()
        except ModelError as error:
            raise self._learnt(error, request, body) from error.__cause__

    def _learnt(self, error: ModelError, request: ModelRequest, body: bytes) -> ModelError:
        """Return `error`, or what of the request it refuses, which is left out from now on."""
        if not isinstance(error, FieldRefused):
            if error.kind != "bad_request":
                return error
            from bowerbird.models.providers.refused_parts import part_named

            named = part_named(str(error), body)
            if named is None:
                return error
            error = FieldRefused(error, PART, named[1], named[0])
        self._refusals.add(error, request)
        return error

    def _cut(self, why: str, answer: Answer, fold: Fold) -> ModelError:
        """Return the error of a cut answer; no frame that it passes keeps it, nor so what was said."""
        error = self._connection.cut(why)
        error.usage = answer.usage(fold.usage)
        return error

    def _failed(self, payload: Mapping[str, Any]) -> ModelError:
        return error_in_stream(self._connection.endpoint.asked, payload, self._redactor)

    def _unreadable(self, error: msgspec.DecodeError) -> ModelError:
        asked = self._connection.endpoint.asked
        text = f"the answer of {asked.provider} cannot be read: {error}"
        return asked.error("server", text, retryable=False)

    async def _encoded(
        self, request: ModelRequest, refused: frozenset[str]
    ) -> tuple[bytes, tuple[str, ...], bool]:
        """Return the body, the notes, whether pictures are shown; made in a thread where it is long work."""
        blobs = _Blobs(request.read_blob or self._blobs)
        left_out, parts = self._refusals.pictures, self._refusals.parts
        new = not_kept(request.messages, self._wire.key(request, self._traits, refused))
        pictures = images_in(new)  # of all messages: what has some is never kept
        shows = self._traits.info.images and any(one.source.blob not in left_out for one in pictures)

        def made() -> tuple[bytes, tuple[str, ...], bool]:
            sent, why = request, ()
            if pictures and self._traits.info.images:
                messages, why = with_fit_pictures(request.messages, blobs, left_out)
                sent = msgspec.structs.replace(request, messages=messages)
            body, notes = self._wire.body(sent, self._traits, blobs, refused)
            whole = encode_body(body)
            if parts:
                from bowerbird.models.providers.refused_parts import without_parts

                whole = without_parts(whole, parts)
            return whole, notes + why, shows

        if len(new) > MANY_MESSAGES or pictures or parts:
            return await to_thread(made)
        return made()


def _events(fold: Fold, payloads: Sequence[bytes]) -> Iterator[ModelEvent]:
    """Yield the events of payloads that came together; of a burst, adjacent pieces of text as one."""
    if len(payloads) <= BURST:
        for payload in payloads:
            yield from read_with_halves(fold.feed, payload)
        return
    kind: type[TextDelta | ThinkingDelta] = TextDelta
    pieces: list[str] = []
    for payload in payloads:
        try:
            events = read_with_halves(fold.feed, payload)
        except (ModelError, msgspec.DecodeError):
            if pieces:
                yield kind("".join(pieces))  # what was said before the failure was said
            raise
        for event in events:
            if isinstance(event, TextDelta | ThinkingDelta):
                if pieces and type(event) is not kind:
                    yield kind("".join(pieces))
                    pieces.clear()
                kind = type(event)
                pieces.append(event.text)
                continue
            if pieces:
                yield kind("".join(pieces))
                pieces.clear()
            yield event
    if pieces:
        yield kind("".join(pieces))


class _Blobs(Mapping[str, bytes]):
    """The files of one request, each read when it is translated: most of a long history is not, once more.

    A lost file is not in it: it is described by its type, and must not stop the conversation.
    """

    def __init__(self, read: BlobReader | None) -> None:
        self._read = read
        self._found: dict[str, bytes | None] = {}

    def __getitem__(self, name: str) -> bytes:
        if name not in self._found:
            try:
                self._found[name] = self._read(name) if self._read is not None else None
            except (BowerbirdError, OSError):
                self._found[name] = None
        content = self._found[name]
        if content is None:
            raise KeyError(name)
        return content

    def __iter__(self) -> Iterator[str]:
        return (name for name, content in self._found.items() if content is not None)

    def __len__(self) -> int:
        return sum(content is not None for content in self._found.values())
