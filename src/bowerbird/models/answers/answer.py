"""One answer put together from its pieces, the same for every wire (MO-2 … MO-8, MO-12, MO-26).

Here: pieces in, the final `End` out: blocks in order, calls decoded, ids made unique, the stop
reason, usage. Not here: what the pieces look like on a wire.
"""

from collections.abc import Callable, Mapping

import msgspec

from bowerbird.core.ids import new_call_id
from bowerbird.core.messages import (
    Block,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from bowerbird.core.requests import End, ModelRequest, StopReason
from bowerbird.core.usage import Usage
from bowerbird.models.tokens import estimate_request, estimate_text

MOST_TOKENS = 1_000_000_000  # of one call; what exceeds it is no count, and no database holds every number


class Call(msgspec.Struct):
    """A tool call whose arguments are still coming."""

    id: str
    name: str
    pieces: list[str] = msgspec.field(default_factory=list[str])


class _Text(msgspec.Struct):
    pieces: list[str] = msgspec.field(default_factory=list[str])


class _Thinking(msgspec.Struct):
    pieces: list[str] = msgspec.field(default_factory=list[str])
    signature: str = ""


class Answer:
    """Collects the pieces of one answer to `request`.

    Args:
        request: what was asked; its messages tell which call ids are taken.
        origin: `provider:model`, kept with reasoning.
        price: USD of a usage, or None.
    """

    def __init__(
        self, request: ModelRequest, origin: str, price: Callable[[Usage], float | None] | None = None
    ) -> None:
        self._request = request
        self._origin = origin
        self._price = price
        self._parts: list[_Text | _Thinking | RedactedThinkingBlock | Call] = []
        self._text: list[str] | None = None
        self._ids: set[str] | None = None
        self.model = origin.partition(":")[2]
        self.notes: list[str] = []

    def add_text(self, piece: str) -> None:
        """Append to the answer's text."""
        if self._text is None:
            part = _Text()
            self._parts.append(part)
            self._text = part.pieces
        self._text.append(piece)

    def add_thinking(self, piece: str, *, begin: bool = False) -> None:
        """Append to the reasoning; `begin` opens a further block of it."""
        self._last_thinking(begin=begin).pieces.append(piece)

    def add_signature(self, signature: str) -> None:
        """Sign the reasoning block at hand."""
        self._last_thinking().signature += signature

    def add_redacted(self, data: str) -> None:
        """Append a block of reasoning that only its provider reads."""
        self._text = None
        self._parts.append(RedactedThinkingBlock(data, self._origin))

    def begin_text(self) -> None:
        """Open a further text block."""
        self._text = None

    def begin_call(self, call_id: str | None, name: str) -> Call:
        """Begin a call; a missing or repeated id is replaced."""
        if self._ids is None:
            self._ids = {use.id for message in self._request.messages for use in message.tool_uses}
        if not call_id or call_id in self._ids:
            call_id = new_call_id()
        self._ids.add(call_id)
        call = Call(call_id, name)
        self._parts.append(call)
        self._text = None
        return call

    def end(self, stop: StopReason, usage: Usage | None) -> End:
        """Return the complete answer.

        Args:
            stop: the provider's reason, in our words.
            usage: as reported; None = estimate it.
        """
        cut = stop == "max_tokens"
        blocks: list[Block] = []
        repairs = list(self.notes)
        invalid: dict[str, str] = {}
        last = self._parts[-1] if self._parts else None
        for part in self._parts:
            if isinstance(part, Call):
                from bowerbird.models.answers.repair import repair_arguments

                # Cut by the output limit, no arguments may mean "none yet": not run as `{}`.
                repaired = repair_arguments("".join(part.pieces), complete=not (cut and part is last))
                blocks.append(ToolUseBlock(part.id, part.name, repaired.input))
                repairs += [f"{part.name} ({part.id}): {name}" for name in repaired.repairs]
                if repaired.error is not None:
                    invalid[part.id] = self._why_invalid(part.name, repaired.error)
            elif block := self._block(part):
                blocks.append(block)
        if not cut and any(isinstance(block, ToolUseBlock) for block in blocks):
            stop = "tool_use"
        message = Message("assistant", tuple(blocks))
        known = self.usage(usage)
        return End(message, stop, known, self._origin, tuple(repairs), invalid)

    def usage(self, reported: Usage | None) -> Usage:
        """Return what the answer used so far, priced; estimated where nothing is reported."""
        usage = reported
        if usage is None:
            written = sum(estimate_text("".join(self._pieces_of(part))) for part in self._parts)
            usage = Usage(input_tokens=estimate_request(self._request), output_tokens=written, estimated=True)
        counted = Usage(
            input_tokens=_believable(
                usage.input_tokens
            ),  # some servers report nonsense; nobody is paid by it
            output_tokens=_believable(usage.output_tokens),
            cache_read_tokens=_believable(usage.cache_read_tokens),
            cache_write_tokens=_believable(usage.cache_write_tokens),
            reasoning_tokens=_believable(usage.reasoning_tokens),
            model_calls=1,
            estimated=usage.estimated,
        )
        return msgspec.structs.replace(counted, cost=self._price(counted) if self._price else None)

    def _last_thinking(self, *, begin: bool = False) -> _Thinking:
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Thinking) and not begin:
            return last
        part = _Thinking()
        self._parts.append(part)
        self._text = None
        return part

    def _block(self, part: "_Text | _Thinking | RedactedThinkingBlock") -> Block | None:
        if isinstance(part, RedactedThinkingBlock):
            return part
        text = "".join(part.pieces)
        if isinstance(part, _Thinking):
            signature = part.signature or None
            return ThinkingBlock(text, signature, self._origin) if text or signature else None
        return TextBlock(text) if text else None

    @staticmethod
    def _pieces_of(part: "_Text | _Thinking | RedactedThinkingBlock | Call") -> list[str]:
        return [] if isinstance(part, RedactedThinkingBlock) else part.pieces

    def _why_invalid(self, name: str, error: str) -> str:
        from bowerbird.models.answers.fitting import expected_parameters

        schemas: Mapping[str, dict[str, object]] = {t.name: t.input_schema for t in self._request.tools}
        if name not in schemas:
            return error
        return f"{error}; {name} expects: {expected_parameters(schemas[name])}"


def _believable(tokens: int) -> int:
    return min(max(0, tokens), MOST_TOKENS)
