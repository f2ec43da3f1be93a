"""What a model is to everyone above: one protocol and the plain call made from it (MO-9).

Here: `Model`, `complete`. Not here: any provider, retry, or tracing; each is a `Model` of its own module.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from bowerbird.core.errors import ModelError
from bowerbird.core.requests import End, ModelEvent, ModelInfo, ModelRequest


class Model(Protocol):
    """Something that answers a request: an adapter, or a wrapper around other models.

    Example:
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                ...
    """

    @property
    def info(self) -> ModelInfo:
        """What the model can do."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask, and yield the answer's events: exactly one `End`, or one raised `ModelError`.

        Closing the generator, or cancelling the task that reads it, closes the HTTP
        stream within 100 ms.
        """
        ...

    async def aclose(self) -> None:
        """Release connections; may be called more than once."""
        ...


async def complete(model: Model, request: ModelRequest) -> End:
    """Return the complete answer to `request`.

    Raises:
        ModelError: what `model.stream` raises.

    Example:
        end = await complete(model, ModelRequest((user_text("hello"),)))
    """
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            if isinstance(event, End):
                return event
    # A model that breaks its own contract must not look like a short success.
    raise ModelError(
        "the model's stream ended without its final event", kind="stream_cut", model=model.info.model
    )
