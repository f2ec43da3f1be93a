"""What is said between the engine (`engine.py`) and the process that evaluates (`native.py`).

Here: a request and its counts, the messages of both directions, how they are framed on a pipe. Not here: who
sends what when.
"""

import os
import select
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

FailureKind = Literal["local", "context_overflow"]
STOP_BYTES = 8
"""Of the number of a request, where nobody waits for its answer any more."""

_LENGTH = 4
_LOOK_MS = 500


@dataclass(frozen=True, slots=True)
class Generation:
    """One request: `messages` as `{"role", "content"}`, and what bounds the answer.

    Attributes:
        grammar: in the engine's notation; empty = free text.
        max_tokens: most tokens of the answer.
        temperature: 0 is deterministic.
        seed: for temperatures over 0.
        beginnings: what such requests begin with, the shortest first, each the beginning of the next:
            whole messages, the last of them perhaps cut. The first request after loading finds the longest
            evaluated, if a process before this one did that.
    """

    messages: Sequence[Mapping[str, str]]
    max_tokens: int
    grammar: str = ""
    temperature: float = 0.0
    seed: int = 0
    beginnings: Sequence[Sequence[Mapping[str, str]]] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens of one generation."""

    evaluated: int = 0
    reused: int = 0
    generated: int = 0


class Load(msgspec.Struct, frozen=True):
    """The first message to the process; it answers `Loaded` or `Failed`.

    Attributes:
        path: the weights.
        context: tokens.
        threads: how many evaluate.
        batch: tokens of a prompt between two looks whether the request was stopped.
        kept: directory of evaluated beginnings; empty = nowhere.
        number: of the request that it is loaded for; 0 = of none.
        beginnings: of that request.
    """

    path: str
    context: int
    threads: int
    batch: int
    kept: str
    number: int
    beginnings: Sequence[Sequence[Mapping[str, str]]] = ()


class Ask(msgspec.Struct, frozen=True):
    """A request, numbered upwards; it is answered by any number of `Said`, then `Ended` or `Failed`."""

    number: int
    generation: Generation


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The weights are in memory."""


class Said(msgspec.Struct, frozen=True, tag=True):
    """A piece of the answer."""

    text: str


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The answer is complete, or was stopped; `finish` is `stop` or `length`."""

    finish: str
    counts: Counts


class Failed(msgspec.Struct, frozen=True, tag=True):
    """It cannot be done; `kind` as in `ModelError`."""

    message: str
    kind: FailureKind = "local"


Answer = Loaded | Said | Ended | Failed


def send(pipe: int, message: object) -> None:
    """Write one message whole.

    Raises:
        OSError: nobody reads.
    """
    body = msgspec.json.encode(message)
    left = memoryview(len(body).to_bytes(_LENGTH, "big") + body)
    while left:
        left = left[os.write(pipe, left) :]


def receive(pipe: int, goes_on: Callable[[], bool] = lambda: True) -> bytes | None:
    """Read one message; None when the other side has ended, or `goes_on` says False while nothing comes."""
    head = _exactly(pipe, _LENGTH, goes_on)
    return _exactly(pipe, int.from_bytes(head, "big"), goes_on) if head is not None else None


def _exactly(pipe: int, length: int, goes_on: Callable[[], bool]) -> bytes | None:
    ready, found = select.poll(), bytearray()
    ready.register(pipe, select.POLLIN)
    while len(found) < length:
        if not ready.poll(_LOOK_MS):
            if not goes_on():
                return None
            continue
        piece = os.read(pipe, length - len(found))
        if not piece:
            return None
        found += piece
    return bytes(found)
