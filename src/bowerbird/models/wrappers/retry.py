"""One retry policy for every provider (MO-29, MO-30).

Here: whether opening a model's stream is tried again, and after how long. Not here: HTTP
(`providers/transport`), fallback models (`fallback`), the journal.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import msgspec

from bowerbird.core.errors import ModelError
from bowerbird.core.requests import ModelEvent, ModelInfo, ModelRequest, Retrying, is_content
from bowerbird.models.failures import FieldRefused
from bowerbird.models.protocol import Model
from bowerbird.models.settings import RetryPolicy

LONGEST_RETRY_AFTER_S = 60.0


def next_delay(policy: RetryPolicy, error: ModelError, attempt: int, jitter_s: float) -> float | None:
    """Return the seconds until the next request, None to give up.

    Args:
        policy: how often and how patiently.
        error: what the last request ended with.
        attempt: number of that request, from 0.
        jitter_s: random seconds, 0–1.

    Example:
        >>> next_delay(RetryPolicy(), ModelError("busy", kind="overloaded", retryable=True), 1, 0.5)
        2.5
    """
    if not error.retryable or attempt >= policy.retries:
        return None
    if isinstance(error, FieldRefused):
        return 0.0  # the next request differs, so there is nothing to wait for
    if error.retry_after_s is not None:
        return error.retry_after_s if error.retry_after_s <= LONGEST_RETRY_AFTER_S else None
    return min(policy.base_delay_s * 2**attempt + jitter_s, policy.max_delay_s)


# How a stream breaks off.
BREAKS = frozenset(("stream_cut", "network", "timeout", "server", "overloaded", "rate_limit"))


class RetryingModel:
    """A model asked again when its answer cannot be opened, or breaks off, in a passing way.

    Args:
        model: who is asked.
        policy: see `RetryPolicy`.
        jitter: random seconds added to each delay.
    """

    def __init__(
        self, model: Model, policy: RetryPolicy | None = None, jitter: Callable[[], float] = random.random
    ) -> None:
        self._model = model
        self._policy = policy or RetryPolicy()
        self._jitter = jitter

    @property
    def info(self) -> ModelInfo:
        """The model's own."""
        return self._model.info

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `Model.stream`; a `Retrying` stands before each further request."""
        loop = asyncio.get_running_loop()
        ends = None if request.deadline_s is None else loop.time() + request.deadline_s
        for attempt in range(1 + self._policy.retries):
            has_content = False
            try:
                async with aclosing(self._model.stream(request)) as events:
                    async for event in events:
                        has_content = has_content or is_content(event)
                        yield event
                return
            except (ModelError, ConnectionError, TimeoutError) as raised:
                error = _as_model_error(raised, self._model)
                # Nothing acts on an answer before its end, so a broken one can be replaced by another.
                again = not has_content or error.kind in BREAKS
                delay = next_delay(self._policy, error, attempt, self._jitter()) if again else None
                reason, left_out = error.kind, getattr(error, "left_out", "")
                try:
                    if delay is None or (ends is not None and loop.time() + delay >= ends):
                        raise error from raised
                finally:
                    del error  # its traceback holds this frame, and that the answer which was cut
            yield Retrying(attempt + 1, delay, reason, has_content, left_out)
            await asyncio.sleep(delay)
            if ends is not None:
                request = msgspec.structs.replace(request, deadline_s=max(0.001, ends - loop.time()))


def _as_model_error(error: Exception, model: Model) -> ModelError:
    """Give the built-in errors of models from elsewhere our form."""
    if isinstance(error, ModelError):
        return error
    info = model.info
    return ModelError(
        f"{info.name}: {error or type(error).__name__}",
        kind="timeout" if isinstance(error, TimeoutError) else "network",
        provider=info.provider,
        model=info.model,
        retryable=True,
    )
