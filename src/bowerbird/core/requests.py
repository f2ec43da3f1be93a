"""What is asked of a model and what it streams back (MO-9 … MO-14).

Here: provider-neutral values. Not here: the `Model` protocol and adapters (`models/`).
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from bowerbird.core.messages import Message
from bowerbird.core.tagged import Tagged
from bowerbird.core.usage import Price, Usage

StopReason = Literal[
    "end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal", "context_overflow", "paused", "other"
]
Purpose = Literal["main", "subagent", "teammate", "compact", "memory", "title", "commit"]
Effort = Literal["low", "medium", "high", "max"]


class ToolSpec(msgspec.Struct, frozen=True, dict=True):
    """A tool as a model is told of it; what a wire makes of it is kept with it."""

    name: str
    description: str
    input_schema: dict[str, Any]


class Thinking(msgspec.Struct, frozen=True):
    """Whether the model should reason, and how hard."""

    enabled: bool = False
    effort: Effort = "high"


class ModelInfo(msgspec.Struct, frozen=True):
    """What a model can do; token counts are limits of one call."""

    provider: str
    model: str
    context_window: int = 200_000
    max_output_tokens: int = 16_384
    images: bool = True
    tools: bool = True
    parallel_tools: bool = True
    constrained_output: bool = False
    thinking: bool = False
    cache: bool = False
    priced: bool = False
    price: Price | None = None  # set by hand; it wins over what is known
    small: bool = False  # marks the embedded model in every door
    checks_history: bool = False  # its reasoning counts only while all before it stays as it was

    @property
    def name(self) -> str:
        """`provider:model`, the form used in settings, records and origins."""
        return f"{self.provider}:{self.model}"


class ModelRequest(msgspec.Struct, frozen=True):
    """One call of a model.

    Attributes:
        system: text blocks in order; the last may change per turn, the others are the cached prefix.
        tool_choice: `auto`, `none`, `required`, or a tool's name.
        cache_marks: indexes of `messages` after which a provider may mark its cache.
        session: stable id of the session, for providers that key their cache; "" when none.
        dated: each message of a user is sent with its day, which never changes: nothing before the new end
            of a conversation may differ from call to call.
        read_blob: reads files that messages name; None = as the model was opened with.
    """

    messages: Sequence[Message]
    system: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    max_tokens: int = 16_384
    temperature: float | None = None
    thinking: Thinking | None = None  # None: say nothing about it
    output_schema: dict[str, Any] | None = None
    deadline_s: float | None = None
    purpose: Purpose = "main"
    cache_marks: tuple[int, ...] = ()
    session: str = ""
    dated: bool = False
    read_blob: Callable[[str], bytes] | None = None


class Start(msgspec.Struct, frozen=True, tag="start"):
    """The provider accepted the request."""

    model: str
    request_id: str | None = None


class TextDelta(msgspec.Struct, frozen=True, tag="text_delta"):
    """A piece of the answer's text."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, tag="thinking_delta"):
    """A piece of the reasoning."""

    text: str


class ToolCallStart(msgspec.Struct, frozen=True, tag="tool_call_start"):
    """A tool call begins."""

    id: str
    name: str


class ToolCallDelta(msgspec.Struct, frozen=True, tag="tool_call_delta"):
    """A piece of a call's JSON arguments, as sent."""

    id: str
    json: str


class End(msgspec.Struct, frozen=True, tag="end"):
    """The complete answer; exactly one per stream.

    Attributes:
        repairs: what was mended in call arguments, for the trace.
        model: `provider:model` that really answered.
        invalid_calls: call id → why its arguments could not be read; not to be run.
    """

    message: Message
    stop_reason: StopReason
    usage: Usage
    model: str = ""
    repairs: tuple[str, ...] = ()
    invalid_calls: dict[str, str] = {}


class Retrying(Tagged, frozen=True, tag="retrying"):
    """The request will be sent again after `delay_s` seconds.

    Attributes:
        restarts: a part of the answer was streamed already; the next one takes its place.
        left_out: a part of what was said that the next request does not hold, in words; "" for none.
    """

    attempt: int
    delay_s: float
    reason: str
    restarts: bool = False
    left_out: str = ""


class ModelFallback(Tagged, frozen=True, tag="model_fallback"):
    """Another model answers because the first could not."""

    from_model: str
    to_model: str
    reason: str


ModelEvent = (
    Start | TextDelta | ThinkingDelta | ToolCallStart | ToolCallDelta | End | Retrying | ModelFallback
)


def is_content(event: ModelEvent) -> bool:
    """Whether `event` shows a part of the answer: after it no other model answers."""
    return isinstance(event, TextDelta | ThinkingDelta | ToolCallStart | ToolCallDelta | End)
