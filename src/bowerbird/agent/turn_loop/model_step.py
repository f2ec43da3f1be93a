"""One call of the model: the request as this iteration builds it, the stream, the answer's record.

Here: what is sent, live deltas, the assistant step, what is kept of a cut stream (AG-45, MO-32). Not
here: when to call (`loop`), tools, retry and fallback (`models`), whether there is budget.
"""

from contextlib import aclosing
from typing import Any

import msgspec

from bowerbird.agent.context.compaction import estimate_tokens, introduced, sent_view, text_tokens
from bowerbird.agent.context.history import PARTIAL
from bowerbird.agent.prompt import FILES_HEAD, PLANNING, files_block, identity_block
from bowerbird.agent.stop import Stopped
from bowerbird.agent.turn_loop.flow import Flow
from bowerbird.agent.turn_loop.state import Turn
from bowerbird.core.errors import ModelError
from bowerbird.core.events import (
    AssistantStep,
    MessageRestart,
    Notice,
    RunEvent,
    TextLive,
    ThinkingLive,
    UsageStep,
)
from bowerbird.core.ids import new_call_id, new_id
from bowerbird.core.messages import Block, Message, TextBlock, ThinkingBlock, ToolUseBlock
from bowerbird.core.requests import (
    End,
    ModelFallback,
    ModelRequest,
    Retrying,
    TextDelta,
    Thinking,
    ThinkingDelta,
)
from bowerbird.core.usage import Usage
from bowerbird.models.providers.think_tags import Piece, ThinkTags

MOST_CALLS = 128
"""Calls of one answer that are looked at."""
TOO_MANY_CALLS = (
    "this answer asked for {calls} calls at once, and of one answer the first {most} count; the others, this "
    "one among them, were left out. Ask again for what is still needed, at most {most} at a time"
)

THINK_ALOUD = (
    "Begin every reply with your reasoning between <think> and </think>: what is known, what is missing, "
    "what to do next. After </think> call tools or write the answer. The reasoning is not shown as part "
    "of the answer."
)


class Ask(msgspec.Struct, frozen=True):
    """How one request differs from the ordinary one of an iteration.

    Attributes:
        tools: False = named all the same, so that the beginning stays equal; none may be called.
    """

    tools: bool = True
    system: tuple[str, ...] | None = None
    output_schema: dict[str, Any] | None = None


async def build_request(turn: Turn, ask: Ask) -> ModelRequest:
    """Return the next request: the sent view, the system blocks, the tools of the present mode."""
    run, info = turn.run, turn.model.info
    view = introduced(sent_view(turn.view()), run.who.identity)
    turn.sent_tokens = view.tokens
    system = list(turn.system if ask.system is None else ask.system)
    by_text = run.sampling.chain_of_thought and not info.thinking and ask.output_schema is None
    if by_text:
        system.append(THINK_ALOUD)
    if info.small and run.branch is not None:
        # Anew for each call: the paths it may choose from include the files it has just written.
        system = [block for block in system if not block.startswith(FILES_HEAD)]
        system.append(await files_block(run.branch))
    if run.mode == "plan":
        system.append(PLANNING)
    system.append(identity_block(run.who.agent, info.name, turn.tier))
    # A small model, and decoding under a schema at most providers, know no tools that must not be called.
    is_bare = not ask.tools and (info.small or (ask.output_schema is not None and info.constrained_output))
    thinking = run.sampling.thinking
    if run.sampling.chain_of_thought and info.thinking and thinking is None:
        thinking = Thinking(enabled=True)
    return ModelRequest(
        messages=view.messages,
        system=tuple(system),
        tools=() if is_bare else turn.specs(),
        tool_choice="auto" if ask.tools else "none",
        max_tokens=min(run.limits.max_output_tokens, info.max_output_tokens),
        temperature=run.sampling.temperature,
        thinking=thinking,
        output_schema=ask.output_schema if info.constrained_output else None,
        deadline_s=turn.seconds_left(),
        purpose=run.who.purpose,
        cache_marks=view.cache_marks,
        session=run.who.session,
        dated=run.dated,
        read_blob=run.storage.read_blob,
    )


def expected_usage(request: ModelRequest, cached_before: int, message_tokens: int | None = None) -> Usage:
    """Return the input that `request` will probably be charged for; what was cached stays cheap.

    Args:
        message_tokens: roughly, of its messages; None = they are counted.
    """
    said = estimate_tokens(request.messages) if message_tokens is None else message_tokens
    total = said + text_tokens(*request.system)
    cached = min(cached_before, total)
    return Usage(input_tokens=total - cached, cache_read_tokens=cached)


class _Partial(msgspec.Struct):
    """What has been streamed so far, in case the stream is cut."""

    message_id: str = msgspec.field(default_factory=lambda: new_id("msg"))
    texts: list[str] = msgspec.field(default_factory=list[str])
    said: int = 0
    thoughts: int = 0
    accepted: bool = False
    left_out: tuple[str, ...] = ()

    def text(self, content: str) -> TextLive:
        """Return a piece of the answer in its place."""
        live = TextLive(content, self.message_id, self.said)
        self.texts.append(content)
        self.said += len(content)
        return live

    def thought(self, content: str) -> ThinkingLive:
        """Return a piece of the reasoning in its place."""
        live = ThinkingLive(content, self.message_id, self.thoughts)
        self.thoughts += len(content)
        return live


async def stream_reply(turn: Turn, request: ModelRequest) -> Flow:
    """Stream one answer: live deltas, then its `AssistantStep`.

    Raises:
        Stopped: the run was stopped; what was said so far has been yielded as a partial step.
        ModelError: the provider failed; likewise.
    """
    partial = _Partial()
    splitter = ThinkTags() if turn.run.sampling.chain_of_thought and not turn.model.info.thinking else None
    cut: Stopped | ModelError
    try:
        async with aclosing(turn.model.stream(request)) as stream:
            guard = turn.stop.guard
            while True:
                event = await guard(anext(stream))
                if isinstance(event, Retrying) and event.restarts and partial.accepted:
                    yield MessageRestart(partial.message_id, event.reason)
                    yield _lost(turn, request, partial)
                    # A message of its own: what was shown of the broken one is kept nowhere.
                    partial = _Partial(left_out=partial.left_out)
                    splitter = ThinkTags() if splitter is not None else None
                if isinstance(event, Retrying) and event.left_out:
                    partial.left_out += (event.left_out,)
                    yield Notice("left_out", event.left_out)
                if isinstance(event, Retrying | ModelFallback):
                    yield event
                    continue
                partial.accepted = True
                if isinstance(event, TextDelta):
                    pieces = [Piece("text", event.text)] if splitter is None else splitter.feed(event.text)
                    for live in _split(pieces, partial):
                        yield live
                elif isinstance(event, ThinkingDelta):
                    yield partial.thought(event.text)
                elif isinstance(event, End):
                    if splitter is not None:
                        for live in _split(splitter.finish(), partial):
                            yield live
                    yield _finished(turn, event, partial)
                    return
    except StopAsyncIteration:
        cut = ModelError(
            "the model's stream ended without its final event", kind="stream_cut",
            model=turn.model.info.model, retryable=True,
        )  # fmt: skip
    except (Stopped, ModelError) as error:
        cut = error
    try:
        if partial.accepted:  # a request that no provider took costs nothing
            yield _cut_short(turn, request, partial)
        raise cut
    finally:
        del cut  # its traceback holds this frame, and that all that was streamed


def _split(pieces: list[Piece], partial: _Partial) -> list[RunEvent]:
    return [partial.thought(text) if kind == "thinking" else partial.text(text) for kind, text in pieces]


def _finished(turn: Turn, end: End, partial: _Partial) -> AssistantStep:
    known, taken = turn.history.calls, set[str]()
    content, invalid = _with_few_calls(end)
    blocks: list[Block] = []
    for block in content:
        if isinstance(block, ToolUseBlock):
            fresh = block
            if not block.id or block.id in known or block.id in taken:
                fresh = ToolUseBlock(new_call_id(), block.name, block.input)  # no other of the session has it
            taken.add(fresh.id)
            if fresh.id != block.id and block.id in invalid:
                invalid[fresh.id] = invalid.pop(block.id)
            blocks.append(_canonical(turn, fresh) if fresh.id not in invalid else fresh)
        elif isinstance(block, TextBlock) and turn.run.sampling.chain_of_thought:
            blocks += _told_apart(block.text)
        else:
            blocks.append(block)
    usage = end.usage if end.usage.model_calls else end.usage + Usage(model_calls=1)
    return AssistantStep(
        message=Message("assistant", tuple(blocks), partial.message_id, end.message.ts),
        stop_reason=end.stop_reason,
        model=end.model or turn.model.info.name,
        usage=usage,
        invalid_calls=invalid,
        left_out=partial.left_out,
    )


def _with_few_calls(end: End) -> tuple[list[Block], dict[str, str]]:
    """Return an answer's blocks and unreadable calls; of too many calls one stands for all the others.

    Each call that is kept is judged, recorded, shown and sent again with every later request.
    """
    blocks: list[Block] = []
    calls = 0
    for block in end.message.content:
        calls += isinstance(block, ToolUseBlock)
        if calls <= MOST_CALLS or not isinstance(block, ToolUseBlock):
            blocks.append(block)
        elif calls == MOST_CALLS + 1:
            blocks.append(ToolUseBlock(block.id or new_call_id(), block.name, {}))
    if calls <= MOST_CALLS:
        return blocks, dict(end.invalid_calls)
    uses = [block.id for block in blocks if isinstance(block, ToolUseBlock)]
    invalid = {use: end.invalid_calls[use] for use in uses if use in end.invalid_calls}
    return blocks, invalid | {uses[-1]: TOO_MANY_CALLS.format(calls=calls, most=MOST_CALLS)}


def _told_apart(text: str) -> list[Block]:
    """Return reasoning that was written as text as its own block."""
    tags = ThinkTags()
    pieces = (*tags.feed(text), *tags.finish())
    thought = "".join(p.text for p in pieces if p.kind == "thinking").strip()
    said = "".join(p.text for p in pieces if p.kind == "text")
    blocks: list[Block] = [ThinkingBlock(thought)] if thought else []
    return [*blocks, TextBlock(said)] if said else blocks


def _canonical(turn: Turn, use: ToolUseBlock) -> ToolUseBlock:
    """Return the call as its canonical tool and parameters: that is how it is recorded."""
    resolved = turn.run.tools.resolve(use.name, use.input)
    if resolved is None or resolved[0].name == use.name:
        return use
    return ToolUseBlock(use.id, resolved[0].name, dict(resolved[1]))


def _cut_short(turn: Turn, request: ModelRequest, partial: _Partial) -> RunEvent:
    """Return the record of an answer that was cut: its text; its calls are dropped."""
    lost, text = _lost(turn, request, partial), "".join(partial.texts)
    if not text:
        return lost
    message = Message("assistant", (TextBlock(text),), partial.message_id)
    return AssistantStep(message, PARTIAL, lost.model, lost.usage)


def _lost(turn: Turn, request: ModelRequest, partial: _Partial) -> UsageStep:
    """Return what an answer that was cut probably cost."""
    text = "".join(partial.texts)
    expected = expected_usage(request, 0, turn.sent_tokens)
    usage = Usage(
        input_tokens=expected.input_tokens,
        output_tokens=text_tokens(text) + partial.thoughts // 4,
        model_calls=1,
        estimated=True,
    )
    usage = msgspec.structs.replace(usage, cost=turn.price()(usage))
    return UsageStep(turn.run.who.purpose, turn.model.info.name, usage)
