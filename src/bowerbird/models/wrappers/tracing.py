"""Every request and answer of a session, recorded for people (MO-34).

Here: the wrapper and its two record forms. Not here: where records are stored or shown, counting
`seq` over restarts (the caller's counter does), OpenTelemetry (`telemetry`).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import msgspec

from bowerbird.core.errors import BowerbirdError
from bowerbird.core.messages import block_to_data
from bowerbird.core.requests import End, ModelEvent, ModelInfo, ModelRequest, Retrying, TextDelta, is_content
from bowerbird.core.usage import Usage
from bowerbird.models.protocol import Model
from bowerbird.models.redact import Redactor

Record = dict[str, Any]
Sink = Callable[[Record], None]


class TracingModel:
    """A model whose every call leaves an `llm_request` and an `llm_response` record.

    A failed or cancelled call leaves its response record too.

    Args:
        model: who answers.
        sink: takes each record, redacted; must not block.
        next_seq: returns the session's next number: 1, 2, … going on after a restart.
        agent: who asks: `main`, a subagent's or a teammate's name.
        redactor: removes secrets.
        clock: seconds, monotonic.

    Example:
        records: list[Record] = []
        model = TracingModel(model, records.append, count(1).__next__)
    """

    def __init__(
        self,
        model: Model,
        sink: Sink,
        next_seq: Callable[[], int],
        *,
        agent: str = "main",
        redactor: Redactor | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._model = model
        self._sink = sink
        self._next_seq = next_seq
        self._agent = agent
        self._redactor = redactor or Redactor()
        self._clock = clock

    @property
    def info(self) -> ModelInfo:
        """The model's own."""
        return self._model.info

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `Model.stream`."""
        call = _Call(self._next_seq(), self._clock())
        self._emit(request_record(call.seq, request, self.info, self._agent))
        try:
            async with aclosing(self._model.stream(request)) as events:
                async for event in events:
                    if call.first is None and is_content(event):
                        call.first = self._clock()
                    if isinstance(event, Retrying) and event.restarts:
                        call.text.clear()  # what comes next takes its place
                    if isinstance(event, TextDelta):
                        call.text.append(event.text)
                    elif isinstance(event, End):
                        self._emit(_response(call, self._clock(), event))
                        call.answered = True
                    yield event
        except (GeneratorExit, asyncio.CancelledError):
            self._failed(call, "cancelled")
            raise
        except BowerbirdError as error:
            self._failed(call, str(error), getattr(error, "usage", None))
            raise
        except Exception as error:  # recorded, then raised again: no call stays without its record
            self._failed(call, f"{type(error).__name__}: {error}")
            raise

    def _failed(self, call: "_Call", reason: str, usage: Usage | None = None) -> None:
        if not call.answered:
            call.answered = True
            self._emit(_failure(call, self._clock(), reason, usage))

    def _emit(self, record: Record) -> None:
        self._sink(self._redactor.data(record))


class _Call(msgspec.Struct):
    """One call as it goes."""

    seq: int
    began: float
    first: float | None = None
    answered: bool = False
    text: list[str] = msgspec.field(default_factory=list[str])

    def times(self, now: float) -> Record:
        first = None if self.first is None else round((self.first - self.began) * 1000)
        return {"ms": round((now - self.began) * 1000), "first_token_ms": first}


def request_record(seq: int, request: ModelRequest, info: ModelInfo, agent: str = "main") -> Record:
    """Return the `llm_request` record of `request`."""
    thinking = request.thinking
    messages = [
        {"role": message.role, "content": [block_to_data(block) for block in message.content]}
        for message in request.messages
    ]
    return {
        "type": "llm_request",
        "seq": seq,
        "model": info.name,
        "messages": messages,
        "tools": msgspec.to_builtins(request.tools),
        "max_tokens": request.max_tokens,
        "system": list(request.system),
        "temperature": request.temperature,
        "thinking_enabled": thinking is not None and thinking.enabled,
        "thinking_effort": thinking.effort if thinking is not None and thinking.enabled else None,
        "message_count": len(messages),
        "tool_count": len(request.tools),
        "agent": agent,
        "purpose": request.purpose,
    }


def _response(call: _Call, now: float, end: End) -> Record:
    message = end.message
    record = {
        "type": "llm_response",
        "seq": call.seq,
        "content": message.text,
        "tool_calls": [{"id": use.id, "name": use.name, "input": use.input} for use in message.tool_uses],
        "done": True,
        "usage": _usage(end.usage),
        "error": None,
        "stop_reason": end.stop_reason,
        **call.times(now),
    }
    # What was mended in arguments, and wishes that the model could not take.
    return {**record, "repairs": list(end.repairs)} if end.repairs else record


def _failure(call: _Call, now: float, reason: str, usage: Usage | None) -> Record:
    return {
        "type": "llm_response",
        "seq": call.seq,
        "content": "".join(call.text),
        "tool_calls": [],
        "done": False,
        "usage": _usage(usage) if usage is not None else None,
        "error": reason,
        "stop_reason": None,
        **call.times(now),
    }


def _usage(usage: Usage) -> Record:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost": usage.cost,
        "estimated": usage.estimated,
    }
