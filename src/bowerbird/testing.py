"""For tests of programs that use the library: a model that answers what the test wrote.

Here: `ScriptedModel` and the calls that it makes. Not here: any other model; ours are tested over HTTP.
"""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from bowerbird.core.errors import InvalidArgument, ModelError
from bowerbird.core.ids import new_call_id
from bowerbird.core.messages import Block, Message, TextBlock, ToolUseBlock
from bowerbird.core.requests import (
    End,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Start,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from bowerbird.core.usage import Usage

__all__ = ["Answer", "Call", "ModelRequest", "ScriptedModel"]


@dataclass(frozen=True)
class Call:
    """A tool call that a scripted model makes, by the tool's name and arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


Answer = str | Call | Sequence[str | Call] | ModelError | Callable[[ModelRequest], Any]
"""A text, a call, several of both, an error to raise, or a function of the request that returns one."""


class ScriptedModel:
    """A model that gives the answers of a script in their order; needs no key, network or time.

    Args:
        answers: one for each request. A request beyond the last raises ModelError.
        info: what the model claims to be and to be able to do.

    Attributes:
        requests: what it was asked, oldest first.

    Example:
        model = ScriptedModel(Call("write_file", {"path": "a.txt", "content": "hi"}), "Written.")
        agent = Agent(workdir="project", data_dir=":memory:", language_model=model)
        result = agent.run_sync("Write a file")
        assert result.text == "Written." and result.changes.written == ("/a.txt",)
        assert len(model.requests) == 2
    """

    def __init__(self, *answers: Answer, info: ModelInfo | None = None) -> None:
        self._answers = answers
        self._info = info if info is not None else ModelInfo("test", "scripted")
        self.requests: list[ModelRequest] = []

    @property
    def info(self) -> ModelInfo:
        """See `Model`."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `Model`."""
        self.requests.append(request)
        blocks = self._blocks(self._answer(request))
        yield Start(self._info.model)
        for block in blocks:
            if isinstance(block, TextBlock):
                yield TextDelta(block.text)
            elif isinstance(block, ToolUseBlock):
                yield ToolCallStart(block.id, block.name)
                yield ToolCallDelta(block.id, json.dumps(block.input))
        calls = any(isinstance(block, ToolUseBlock) for block in blocks)
        yield End(
            Message("assistant", blocks),
            "tool_use" if calls else "end_turn",
            Usage(input_tokens=1, output_tokens=1, cost=0.0),
            self._info.name,
        )

    async def aclose(self) -> None:
        """See `Model`; there is nothing to release."""

    def _answer(self, request: ModelRequest) -> Answer:
        number = len(self.requests)
        if number > len(self._answers):
            raise ModelError(
                f"the script has {len(self._answers)} answers, and this is request {number}; add an answer",
                kind="bad_request",
                provider=self._info.provider,
                model=self._info.model,
            )
        answer = self._answers[number - 1]
        if callable(answer) and not isinstance(answer, ModelError):
            answer = answer(request)
        if isinstance(answer, ModelError):
            raise answer
        return answer

    def _blocks(self, answer: object) -> tuple[Block, ...]:
        parts = cast("Sequence[object]", answer) if isinstance(answer, list | tuple) else (answer,)
        blocks: list[Block] = []
        for part in parts:
            if isinstance(part, str):
                blocks.append(TextBlock(part))
            elif isinstance(part, Call):
                blocks.append(ToolUseBlock(new_call_id(), part.name, dict(part.arguments)))
            else:
                raise InvalidArgument(
                    f"the script has the answer {part!r}; use a text, a Call, or a list of them"
                )
        return tuple(blocks)
