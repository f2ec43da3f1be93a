"""Other models in place of one that cannot answer (MO-33).

Here: whether and to whom a failed call goes next. Not here: retries of one model (`retry`), the names
of fallbacks (settings).
"""

import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from bowerbird.core.errors import ConfigError, InvalidArgument, ModelError, ModelErrorKind
from bowerbird.core.messages import TextBlock
from bowerbird.core.requests import ModelEvent, ModelFallback, ModelInfo, ModelRequest, is_content
from bowerbird.models.protocol import Model

FALLBACK_KINDS: frozenset[ModelErrorKind] = frozenset(
    {"rate_limit", "overloaded", "server", "network", "timeout", "quota", "not_found", "auth"}
)
PASS_OVER_S = 60.0
FAILURES_TO_PASS_OVER = 2
_TURNS_REMEMBERED = 1_024


class Failures:
    """Which models failed lately: twice within 60 s, and a model is passed over for 60 s.

    Args:
        clock: seconds, monotonic.

    Example:
        >>> failures = Failures(clock=lambda: 0.0)
        >>> failures.add("a"), failures.add("a"), failures.passed_over("a")
        (None, None, True)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: dict[str, deque[float]] = {}

    def add(self, name: str) -> None:
        """Note that `name` failed now."""
        self._times.setdefault(name, deque(maxlen=FAILURES_TO_PASS_OVER)).append(self._clock())

    def passed_over(self, name: str) -> bool:
        """Whether `name` is left alone at present."""
        times = self._times.get(name)
        if times is None or len(times) < FAILURES_TO_PASS_OVER:
            return False
        return times[-1] - times[0] <= PASS_OVER_S and self._clock() - times[-1] < PASS_OVER_S


def turn_key(request: ModelRequest) -> str | None:
    """Return what identifies the turn of `request`: the id of its newest message from a person."""
    for message in reversed(request.messages):
        if message.role == "user" and any(isinstance(block, TextBlock) for block in message.content):
            return message.id
    return None


class FallbackModel:
    """A model with others behind it; each is asked with the same request.

    A turn stays with the model that answered in it; the next turn starts with the first again.

    Args:
        models: the first, then its fallbacks in order; each retries by itself.
        failures: shared memory of failures.
    """

    def __init__(self, models: Sequence[Model], failures: Failures | None = None) -> None:
        if not models:
            raise InvalidArgument("a FallbackModel needs at least one model")
        self._models = tuple(models)
        self._failures = failures or Failures()
        self._answered: OrderedDict[str, int] = OrderedDict()

    @property
    def info(self) -> ModelInfo:
        """The first model's."""
        return self._models[0].info

    async def aclose(self) -> None:
        """Close every model."""
        for model in self._models:
            await model.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `Model.stream`; a `ModelFallback` stands before another model's answer."""
        turn = turn_key(request)
        order = self._order(turn)
        if order[0] != 0 and (turn is None or turn not in self._answered):
            reason = f"failed {FAILURES_TO_PASS_OVER} times within {PASS_OVER_S:.0f} s"
            yield ModelFallback(self._name(0), self._name(order[0]), reason)
        errors: list[ModelError] = []
        for position, index in enumerate(order):
            has_content = False
            try:
                async with aclosing(self._models[index].stream(request)) as events:
                    async for event in events:
                        if not has_content and is_content(event):
                            has_content = True
                            self._remember(turn, index)
                        yield event
                return
            except (ModelError, ConfigError) as raised:
                if isinstance(raised, ConfigError) and index == 0:
                    raise  # the model that was chosen is not set up: said, not covered up
                error = _as_model_error(raised, self._models[index])
                errors.append(error)
                if error.kind in FALLBACK_KINDS:  # a bad request is no failure of the model
                    self._failures.add(self._name(index))
                if has_content or error.kind not in FALLBACK_KINDS or position + 1 == len(order):
                    raise _combined(errors) from raised
            yield ModelFallback(self._name(index), self._name(order[position + 1]), error.kind)

    def _name(self, index: int) -> str:
        return self._models[index].info.name

    def _order(self, turn: str | None) -> list[int]:
        """Return whom to ask, in order: from this turn's model on, without those that failed lately."""
        start = self._answered.get(turn, 0) if turn is not None else 0
        order = list(range(start, len(self._models)))
        awake = [index for index in order if not self._failures.passed_over(self._name(index))]
        return awake or order

    def _remember(self, turn: str | None, index: int) -> None:
        if turn is None or index == self._answered.get(turn, 0):
            return
        self._answered[turn] = index
        while len(self._answered) > _TURNS_REMEMBERED:
            self._answered.popitem(last=False)


def _as_model_error(error: ModelError | ConfigError, model: Model) -> ModelError:
    if isinstance(error, ModelError):
        return error
    info = model.info
    return ModelError(str(error), kind="auth", provider=info.provider, model=info.model)


def _combined(errors: Sequence[ModelError]) -> ModelError:
    """Return the last error, telling of the earlier ones too."""
    last = errors[-1]
    if len(errors) == 1:
        return last
    told = "; ".join(f"{error.provider}:{error.model}: {error}" for error in errors)
    combined = ModelError(
        f"no model could answer: {told}",
        kind=last.kind,
        provider=last.provider,
        model=last.model,
        status=last.status,
        retryable=any(error.retryable for error in errors),
        retry_after_s=last.retry_after_s,
        request_id=last.request_id,
    )
    combined.usage = last.usage
    return combined
