"""One request's way through the engine: constrained steps in, ordinary blocks out.

Here: have the model say what a request is, which file, which step, each under a grammar; have long text
written in a second pass; give it as text or call blocks.
Not here: what may be chosen (`choices.py`), the order of a
change (`changing.py`), words (`prompt.py`), the engine itself.
"""

import json
import zlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from bowerbird.core.errors import ModelError
from bowerbird.core.forms import decode
from bowerbird.core.ids import new_id
from bowerbird.core.messages import Block, Message, TextBlock, ThinkingBlock, ToolUseBlock
from bowerbird.core.requests import (
    End,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolSpec,
)
from bowerbird.core.usage import Usage
from bowerbird.models.local.calls import FOLLOWED_BY, FollowUp, call_input, follow_up
from bowerbird.models.local.changing import (
    NEEDS,
    TRIES,
    Call,
    Calls,
    Command,
    Create,
    Judge,
    Move,
    Pick,
    Say,
    change_move,
    command_move,
    has_tests,
    hits_of,
    lookup,
    picked_move,
    tests_call,
)
from bowerbird.models.local.choices import (
    ACTING,
    CHANGE,
    CHANGED,
    COMMAND,
    EXISTING,
    FINAL,
    KINDS,
    NEW,
    QUESTION,
    command_steps,
    new_file_step,
    next_steps,
)
from bowerbird.models.local.engine import Engine
from bowerbird.models.local.generation import Counts, Generation
from bowerbird.models.local.grammar import SOME_TEXT, StepGrammar, fence_grammar, read_fence, schema_grammar
from bowerbird.models.local.prompt import KIND, REWRITE, ChatTurn, asking, chat, openings_of, project, put
from bowerbird.models.local.rewriting import LOST, Rewrite, edit_of, fault, parse_fault, question
from bowerbird.models.local.situation import MAX_PATHS, Situation, read_situation
from bowerbird.models.local.step_text import StepText

CHOICE_TOKENS = 300
MOST_SORTED = 100
HEAT = 0.7
"""Temperature of every try but the first."""

STEP_TOKENS = 1_600
"""More than any step the grammar allows; reached only by a model that writes one byte a token."""

ONLY_SAID = "(No file was changed and no command was run for this answer.)"
COMPUTED = "(Computed with Python; no command was run for this answer.)"
"""One of them ends what the model says by itself: whatever it claims to have done, this is what it did."""


@dataclass(slots=True)
class _Pass:
    """The text of one generation, filled while it streams, and how it ended."""

    text: str = ""
    finish: str = ""

    @property
    def cut(self) -> bool:
        """Whether the token limit ended it."""
        return self.finish == "length"


@dataclass(slots=True)
class Exchange:
    """One request being answered. Use once.

    Args:
        engine: the weights.
        info: who answers.
        request: what is asked.
        tools: those a step may call; empty for plain text.
        sorted: what the tasks of other requests were sorted as; it is filled here.
    """

    engine: Engine
    info: ModelInfo
    request: ModelRequest
    tools: tuple[ToolSpec, ...]
    sorted: dict[str, str] = field(default_factory=dict[str, str])
    _counts: list[Counts] = field(default_factory=list[Counts])

    def events(self) -> AsyncGenerator[ModelEvent, None]:
        """Return the answer's events after `Start`."""
        return self._step() if self.tools else self._plain()

    async def warm(self) -> None:
        """Evaluate the system text and nothing else."""
        # With a grammar: the engine prepares its vocabulary for them at the first, which takes a second.
        grammar = schema_grammar({"type": "boolean"})
        async for _ in self._generate(self._put("…"), grammar, 1, _Pass()):
            pass

    # -------------------------------------------------- plain text

    async def _plain(self) -> AsyncGenerator[ModelEvent, None]:
        schema = self.request.output_schema
        said = _Pass()
        turns = chat(self.request, (), ())
        grammar = schema_grammar(schema) if schema else SOME_TEXT
        pieces = self._generate(turns, grammar, self._most_tokens(), said)
        async with aclosing(pieces):
            async for text in pieces:
                yield TextDelta(text)
        yield self._end((TextBlock(said.text),), "max_tokens" if said.cut else "end_turn")

    # -------------------------------------------------- a step

    async def _step(self) -> AsyncGenerator[ModelEvent, None]:
        situation = read_situation(self.request)
        kind = await self._kind(situation)
        move = await self._move(situation, kind)
        if move is not None:
            async for event in self._made(move):
                yield event
            return
        grammar = next_steps(situation, self.tools, self.request.tool_choice, kind)
        turns = chat(self.request, self._told_tools(), situation.files)
        while True:
            chosen, said = _Pass(), StepText(FINAL, noted=grammar.noted)
            pieces = self._generate(turns, grammar.lark(), STEP_TOKENS, chosen)
            async with aclosing(pieces):
                async for text in pieces:
                    told = said.feed(text)
                    if told and told == said.answer and said.note:  # the answer's first piece
                        yield ThinkingDelta(said.note)
                    if told:
                        yield TextDelta(told)
            noted = (ThinkingBlock(said.note, origin=self.info.name),) if said.note else ()
            if said.answer is not None:
                only_said = _only_said(situation)
                if only_said:
                    yield TextDelta(only_said)
                stop = "max_tokens" if chosen.cut else "end_turn"
                yield self._end((*noted, TextBlock(said.answer + only_said)), stop)
                return
            step = grammar.read(chosen.text)
            if step is None:
                raise self._failure(f"the model wrote no valid step: {chosen.text[:200]!r}")
            call = await self._call(situation, turns, step, chosen.text)
            if call is not None:
                break
            grammar = self._without(situation, grammar, step["tool"])
        if said.note:
            yield ThinkingDelta(said.note)
        async for event in self._called(call, noted=noted):
            yield event

    async def _kind(self, situation: Situation) -> str:
        """Return what the model sorts the task as; "" where it is not asked."""
        task = situation.task
        if not task or self.request.tool_choice != "auto" or not NEEDS.issubset(self._names()):
            return ""
        if task not in self.sorted:
            self.sorted[task] = await self._chosen(f"Task: {task}\n{KIND}", KINDS)
            if len(self.sorted) > MOST_SORTED:
                self.sorted.pop(next(iter(self.sorted)))
        return self.sorted[task]

    async def _move(self, situation: Situation, kind: str) -> Call | Calls | Say | None:
        """Return what comes next where that is settled; None where the model chooses any step."""
        offered = frozenset(self._names())
        move: Move | Command | None = None
        if kind == COMMAND:
            move = (
                command_move(situation)
                if "bash" in offered
                else Say("I ran nothing: no shell is offered here.")
            )
        elif kind == CHANGE:
            move = change_move(situation, offered)
        elif kind and situation.files and situation.last is None:
            move = lookup(situation.task)
        if isinstance(move, Judge):
            move = move.taken_back if await self._mends(situation) else move.stands
        if isinstance(move, Command):
            return await self._command(situation, move)
        if isinstance(move, Pick):
            move = await self._picked(situation, offered)
        if isinstance(move, Create):
            return await self._created(situation, move)
        if isinstance(move, Rewrite):
            # What failed before the change is no matter of most tasks; what the last try broke is.
            shown = bool(move.failure) and (move.tried > 0 or await self._mends(situation))
            return await self._rewritten(move if shown else replace(move, failure=""))
        return _settled(move)

    async def _mends(self, situation: Situation) -> bool:
        """Return whether the model says that the task is to make failing tests pass."""
        asked = "Is this task about a test that fails, or about something that does not work?"
        return await self._agrees(f"Task: {situation.task}\n{asked}")

    async def _picked(self, situation: Situation, offered: frozenset[str]) -> Move:
        """Have the model say which file is changed, or which one is created."""
        asked = f"{hits_of(situation)}Task: {situation.task}\n"
        how = await self._chosen(f"{asked}Does it {EXISTING}, or {NEW}?", CHANGED) if situation.files else NEW
        if how == NEW:
            step = await self._chosen_step(f"{asked}Say the path of the new file.", new_file_step(situation))
            path = str(step["path"]) if step is not None else ""
        else:
            path = await self._chosen(f"{asked}Which file is changed for it?", situation.files[:MAX_PATHS])
        if not path:
            return Say("I changed nothing: I found no file for it.")
        return picked_move(situation, path, is_new=how == NEW, offered=offered)

    async def _command(self, situation: Situation, wanted: Command) -> Call | Say:
        """Have the model name the command that the task asks for."""
        before = f"\n{wanted.said}\nUse another command." if wanted.said else ""
        asked = (
            f"Task: {situation.task}{before}\n"
            "Say which command is run in the project's directory for it, nothing else."
        )
        step = await self._chosen_step(asked, command_steps(tests=has_tests(situation.files) and not before))
        if step is None:
            return Say("I ran nothing: I found no command for it.")
        return tests_call("") if step["tool"] == "run_tests" else Call("bash", {"command": step["command"]})

    async def _chosen(self, asked: str, values: Sequence[str]) -> str:
        """Return the one of `values` that the model chooses, the first where it kept to no grammar."""
        said, fields = _Pass(), {"choice": {"type": "string", "enum": list(values)}}
        grammar = schema_grammar({"type": "object", "properties": fields, "required": list(fields)})
        async for _ in self._generate(self._put(asked), grammar, CHOICE_TOKENS, said, 0.0):
            pass
        try:
            return decode(said.text, dict[str, str])["choice"]
        except (msgspec.MsgspecError, KeyError):
            return values[0]

    async def _agrees(self, asked: str) -> bool:
        """Return whether the model says yes."""
        return await self._chosen(asked, ("no", "yes")) == "yes"

    async def _chosen_step(self, asked: str, grammar: StepGrammar) -> dict[str, Any] | None:
        """Return the form that the model chooses; None if it found no end."""
        said = _Pass()
        async for _ in self._generate(self._put(asked), grammar.lark(), CHOICE_TOKENS, said, 0.0):
            pass
        return grammar.read(said.text)

    def _put(self, asked: str) -> tuple[ChatTurn, ...]:
        return put(self._told_tools(), self._project(), asked)

    def _project(self) -> str:
        return project(self.request.system, read_situation(self.request).files)

    async def _called(
        self, *calls: ToolUseBlock, noted: tuple[Block, ...] = ()
    ) -> AsyncGenerator[ModelEvent, None]:
        for call in calls:
            yield ToolCallStart(call.id, call.name)
            yield ToolCallDelta(call.id, json.dumps(call.input, ensure_ascii=False))
        yield self._end((*noted, *calls), "tool_use")

    async def _made(self, move: Call | Calls | Say) -> AsyncGenerator[ModelEvent, None]:
        if isinstance(move, Say):
            yield TextDelta(move.text)
            yield self._end((TextBlock(move.text),), "end_turn")
            return
        made = move.calls if isinstance(move, Calls) else (move,)
        async for event in self._called(*(ToolUseBlock(new_id("call"), one.tool, one.input) for one in made)):
            yield event

    async def _rewritten(self, wanted: Rewrite) -> Call | Say:
        """Have lines rewritten until the result may stand; the first try at the request's temperature."""
        most = min(self._most_tokens(), sum(len(line) + 1 for line in wanted.lines) // 2 + 300)
        turns = put(self._told_tools(), "", f"{question(wanted)}\n{REWRITE}")
        why, removes = "", False
        for attempt in range(TRIES):
            body = await self._fenced(turns, wanted.fence, most, wanted.tried * TRIES + attempt)
            if body is None:
                why = "it did not end"
                continue
            new = body.split("\n")
            found = fault(wanted, new)
            if found == LOST:
                removes = removes or await self._agrees(
                    f"Task: {wanted.task}\nDoes this task ask for something to be removed or taken out?"
                )
                found = None if removes else LOST
            edit = edit_of(wanted, new) if found is None else None
            if edit is not None:
                return Call("edit_file", edit)
            why = found or "its place is not unique"
        return Say(f"I changed nothing. My rewriting of {wanted.path} cannot be right: {why}.")

    async def _created(self, situation: Situation, wanted: Create) -> Call | Say:
        """Have a file written until it parses."""
        follow = follow_up("write_file", wanted.path)
        assert follow is not None
        turns = self._put(f"{hits_of(situation)}Task: {situation.task}\n{follow.question}")
        why = ""
        for attempt in range(TRIES):
            most = min(follow.tokens, self._most_tokens())
            seed = wanted.tried * TRIES + attempt
            body = await self._fenced(turns, follow.opening, most, seed)
            found = "it did not end" if body is None else parse_fault(wanted.path, "", body + "\n")
            if body is not None and found is None:
                return Call("write_file", {"path": wanted.path, "content": body + "\n"})
            why = found or ""
        return Say(f"I wrote nothing. What I wrote for {wanted.path} cannot be right: {why}.")

    async def _fenced(self, turns: Sequence[ChatTurn], fence: str, most: int, seed: int) -> str | None:
        """Return what the model writes in a fenced block, None if it did not end; hotter after the first."""
        own = self.request.temperature or 0.0
        written = _Pass()
        pieces = self._generate(
            turns, fence_grammar(fence), most, written, max(own, HEAT) if seed else own, seed
        )
        async for _ in pieces:
            pass
        return read_fence(written.text, fence)

    def _without(self, situation: Situation, grammar: StepGrammar, tool: str) -> StepGrammar:
        """Return `grammar` for another try after a call that was the last one again, or never ended."""
        fewer = grammar.without(tool)
        if tool in fewer.tools:  # it was all that a computation may do
            fewer = next_steps(situation, self.tools, self.request.tool_choice, QUESTION).without(tool)
        if tool in fewer.tools:
            raise self._failure(f"the model found no way on after {tool}")
        return fewer

    async def _call(
        self, situation: Situation, turns: Sequence[ChatTurn], step: Mapping[str, Any], text: str
    ) -> ToolUseBlock | None:
        """Return the call that `step` asks for, its long text written; None if it cannot be made."""
        spec = next(tool for tool in self.tools if tool.name == step["tool"])
        path = str(step.get("path", ""))
        known = situation.known.get(path)
        arguments = call_input(step, spec, (known.next_offset if known else None) or 1)
        follow = None if "input" in step else follow_up(spec.name, path)
        if follow is not None:
            body = await self._body(asking(turns, text, follow), follow)
            if body is None:
                return None
            arguments[FOLLOWED_BY[spec.name]] = body
        if situation.is_repeat(spec.name, arguments):
            return None
        return ToolUseBlock(new_id("call"), spec.name, arguments)

    async def _body(self, turns: Sequence[ChatTurn], follow: FollowUp) -> str | None:
        """Return the long text of a call, or None when it did not end."""
        written = _Pass()
        most = min(follow.tokens, self._most_tokens())
        async for _ in self._generate(turns, fence_grammar(follow.opening), most, written):
            pass
        return read_fence(written.text, follow.opening)

    # -------------------------------------------------- passes and ends

    async def _generate(
        self,
        turns: Sequence[ChatTurn],
        grammar: str,
        max_tokens: int,
        into: _Pass,
        temperature: float | None = None,
        seed: int = 0,
    ) -> AsyncGenerator[str, None]:
        heat = self.request.temperature or 0.0 if temperature is None else temperature
        openings = openings_of(turns, self._told_tools(), self._project())
        # Attempts that compete must differ, one that is resumed must not: each session has its seed.
        own = zlib.crc32(self.request.session.encode()) >> 2
        beginnings = tuple(map(_as_messages, openings))
        wanted = Generation(_as_messages(turns), max_tokens, grammar, heat, own + seed, beginnings)
        async with aclosing(self.engine.generate(wanted)) as pieces:
            async for piece in pieces:
                if piece.finish:
                    into.finish = piece.finish
                    self._counts.append(piece.counts)
                else:
                    into.text += piece.text
                    yield piece.text

    def _names(self) -> list[str]:
        return [tool.name for tool in self.tools]

    def _told_tools(self) -> list[str]:
        """Return the tools that a step is told of: not those that have a way of their own."""
        names = self._names()
        sorts = self.request.tool_choice == "auto" and NEEDS.issubset(names)
        return [name for name in names if name not in ACTING] if sorts else names

    def _most_tokens(self) -> int:
        return min(self.request.max_tokens, self.info.max_output_tokens)

    def _end(self, blocks: tuple[Block, ...], stop: StopReason) -> End:
        # Evaluated tokens are input, reused ones cache reads; nothing local costs anything.
        usage = Usage(
            input_tokens=sum(c.evaluated for c in self._counts),
            cache_read_tokens=sum(c.reused for c in self._counts),
            output_tokens=sum(c.generated for c in self._counts),
            model_calls=1,
            cost=0.0,
        )
        return End(Message("assistant", blocks), stop, usage, model=self.info.name)

    def _failure(self, message: str) -> ModelError:
        return ModelError(message, kind="local", provider=self.info.provider, model=self.info.model)


def _as_messages(turns: Sequence[ChatTurn]) -> tuple[dict[str, str], ...]:
    return tuple({"role": turn.role, "content": turn.text} for turn in turns)


def _only_said(situation: Situation) -> str:
    done = {done.call.name for done in situation.calls if not done.failed}
    if done & ACTING:
        return ""
    return "\n\n" + (COMPUTED if "run_python_code" in done else ONLY_SAID)


def _settled(move: Move | Command | None) -> Call | Calls | Say | None:
    return move if isinstance(move, Call | Calls | Say) else None
