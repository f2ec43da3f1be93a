"""One request's way through the engine: constrained steps in, ordinary blocks out (MO-38).

Here: choose a step under a grammar, write long text in a second pass, give both as text or call
blocks. Not here: what may be chosen (`choices.py`), words (`prompt.py`), the engine itself.
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
from bowerbird.models.local.calls import FOLLOWED_BY, FollowUp, call_input, follow_up, indent_of
from bowerbird.models.local.changing import TRIES, Call, Calls, Choose, Say, next_move, other_file, reading_of
from bowerbird.models.local.choices import FINAL, editable, next_steps
from bowerbird.models.local.commands import command_move
from bowerbird.models.local.engine import Engine
from bowerbird.models.local.faults.checking import checking_move, without_test_runs
from bowerbird.models.local.faults.mending import NOTE_CHARS, mend_question, mended_lines, mended_part
from bowerbird.models.local.generation import Counts, Generation
from bowerbird.models.local.grammar import (
    SEEN,
    StepGrammar,
    as_step,
    fence_grammar,
    noted_fence_grammar,
    read_fence,
    schema_grammar,
)
from bowerbird.models.local.guards import doubt, fault, repaired
from bowerbird.models.local.looking import first_look
from bowerbird.models.local.prompt import ChatTurn, asking, chat, mending, openings_of, rewriting
from bowerbird.models.local.rewrite import Rewrite, edit_of, narrowed, question
from bowerbird.models.local.settled.cases import ASKED, BEGIN, MOST_TOKENS, OPENING, Case
from bowerbird.models.local.situation import Situation, read_situation
from bowerbird.models.local.sorting import KINDS, sorted_by_words, sorting_question
from bowerbird.models.local.step_text import StepText

CHOICE_TOKENS = 300
_SEEN_CHARS = 100
MOST_SORTED = 100
UNMADE = "\n\nNo file was changed."
STEP_TOKENS = 1_600
"""More than any step the grammar allows; reached only by a model that writes one byte a token."""


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
        sorted: which tasks ask for a change, as far as the model had to say; it is filled here.
    """

    engine: Engine
    info: ModelInfo
    request: ModelRequest
    tools: tuple[ToolSpec, ...]
    sorted: dict[str, bool] = field(default_factory=dict[str, bool])
    _counts: list[Counts] = field(default_factory=list[Counts])

    def events(self) -> AsyncGenerator[ModelEvent, None]:
        """Return the answer's events after `Start`."""
        return self._step() if self.tools else self._plain()

    async def warm(self) -> None:
        """Evaluate the system text and nothing else."""
        files = read_situation(self.request).files
        turns = chat(msgspec.structs.replace(self.request, messages=()), self._names(), files)
        # With a grammar: the engine prepares its vocabulary for them at the first, which takes a second.
        grammar = schema_grammar({"type": "boolean"})
        async for _ in self._generate((*turns, ChatTurn("user", "…")), grammar, 1, _Pass()):
            pass

    # -------------------------------------------------- plain text

    async def _plain(self) -> AsyncGenerator[ModelEvent, None]:
        schema = self.request.output_schema
        said = _Pass()
        turns = chat(self.request, (), ())
        pieces = self._generate(turns, schema_grammar(schema) if schema else "", self._most_tokens(), said)
        async with aclosing(pieces):
            async for text in pieces:
                yield TextDelta(text)
        yield self._end((TextBlock(said.text),), "max_tokens" if said.cut else "end_turn")

    # -------------------------------------------------- a step

    async def _step(self) -> AsyncGenerator[ModelEvent, None]:
        situation = await self._situation()
        move = None
        if self.request.tool_choice == "auto":
            checking = checking_move(situation, frozenset(self._names()))
            situation = situation if checking else without_test_runs(situation)
            move = await self._move(situation, checking)
        if isinstance(move, Call | Calls | Say):
            async for event in self._made(move):
                yield event
            return
        grammar = move or next_steps(situation, self.tools, self.request.tool_choice)
        turns = chat(self.request, self._names(), situation.files)
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
                stop = "max_tokens" if chosen.cut else "end_turn"
                unmade = UNMADE if situation.wants_change and not situation.acted else ""
                if unmade:  # whatever it said it did
                    yield TextDelta(unmade)
                yield self._end((*noted, TextBlock(said.answer + unmade)), stop)
                return
            step = grammar.read(chosen.text)
            if step is None:
                raise self._failure(f"the model wrote no valid step: {chosen.text[:200]!r}")
            call = await self._call(situation, turns, step, chosen.text)
            if call is not None:
                break
            grammar = self._without(grammar, step["tool"])
        if said.note:
            yield ThinkingDelta(said.note)
        async for event in self._called(call, noted=noted):
            yield event

    async def _move(
        self, situation: Situation, checking: Call | Say | Rewrite | None
    ) -> Call | Calls | Say | StepGrammar | None:
        """Return what comes next where that is settled; None where the model chooses any step."""
        names = frozenset(self._names())
        move = (
            checking
            or command_move(situation, names)
            or next_move(situation, names)
            or first_look(situation, names)
        )
        if isinstance(move, Rewrite):
            made = await self._rewritten(move)
            move = (isinstance(made, Say) and other_file(situation, move.path)) or made
        if isinstance(move, Choose):
            path = await self._chosen(
                move.asked, move.paths, rewriting(""), otherwise=move.likeliest, noted=True
            )
            return Call("read_file", reading_of(path, situation))
        return await self._case(move, situation) if isinstance(move, Case) else move

    async def _case(self, case: Case, situation: Situation) -> Call | None:
        """Return the run of the call that the model writes; None where it writes none."""
        turns = chat(self.request, self._names(), situation.files)
        asked = asking(turns, as_step("run_python_code"), FollowUp(ASKED, OPENING, MOST_TOKENS))
        written = _Pass()
        async for _ in self._generate(asked, fence_grammar(OPENING, BEGIN), MOST_TOKENS, written):
            pass
        body = read_fence(written.text, OPENING)
        return Call("run_python_code", {"code": case.code(body)}) if body is not None else None

    async def _situation(self) -> Situation:
        """Return the facts of the request; the model says what a task asks for that words leave open."""
        situation = read_situation(self.request)
        task = situation.task
        if not task or sorted_by_words(task) is not None or self.request.tool_choice != "auto":
            return situation
        if task not in self.sorted:
            following = chat(self.request, self._names(), situation.files)
            self.sorted[task] = (
                await self._chosen(sorting_question(task), KINDS, following, otherwise=KINDS[1]) == KINDS[0]
            )
            if len(self.sorted) > MOST_SORTED:
                self.sorted.pop(next(iter(self.sorted)))
        return replace(situation, sorted=self.sorted[task])

    async def _chosen(
        self,
        asked: str,
        values: Sequence[str],
        following: Sequence[ChatTurn],
        *,
        otherwise: str,
        noted: bool = False,
    ) -> str:
        """Return the one of `values` that the model chooses when it is told nothing but `asked`.

        Args:
            following: what it is most likely asked next, which a fresh engine makes ready.
            otherwise: what is taken where it says none of them.
            noted: it says first what it saw: deciding after that, a small model decides better.
        """
        said, chosen = _Pass(), {"type": "string", "enum": list(values)}
        note = {SEEN: {"type": "string", "maxLength": _SEEN_CHARS}} if noted else {}
        fields = {**note, "choice": chosen}
        grammar = schema_grammar({"type": "object", "properties": fields, "required": list(fields)})
        turns = (ChatTurn("user", asked),)
        async for _ in self._generate(turns, grammar, CHOICE_TOKENS, said, 0.0, following=following):
            pass
        try:
            return str(decode(said.text, dict[str, str])["choice"])
        except (msgspec.MsgspecError, KeyError):  # its note has no end, or the grammar was not kept to
            return otherwise

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
        why, whole, part, mend = "", wanted, narrowed(wanted), mended_part(wanted)
        own = self.request.temperature or 0.0
        doubtful: Call | None = None
        for attempt in range(TRIES):
            seed = whole.tried * TRIES + attempt
            if mend is not None and attempt < TRIES - 1:
                wanted = mend
                new = await self._mended(mend, max(own, 0.7) if seed else own, seed)
            else:
                # The second try is at the part that matters alone: what went wrong was mostly done elsewhere.
                wanted = part if attempt == 1 and part is not None else whole
                new = await self._lines(wanted, max(own, 0.7) if seed and wanted is whole else own, seed)
            why = fault(wanted, new) if new is not None else "it did not end"
            edit = edit_of(wanted, new) if new is not None and why is None else None
            if new is not None and edit is not None:
                made = Call("edit_file", edit)
                if doubt(wanted, new) is None:
                    return made
                doubtful = doubtful or made
            why = why or "its place is not unique"
        return doubtful or Say(f"I changed nothing. My rewriting of {wanted.path} cannot be right: {why}.")

    async def _mended(self, part: Rewrite, heat: float, attempt: int) -> list[str] | None:
        """Return the lines of a function without its fault, as the model writes them after a note."""
        most = min(self._most_tokens(), sum(len(line) + 1 for line in part.lines) // 2 + 300)
        written, turns = _Pass(), mending(mend_question(part))
        grammar = noted_fence_grammar(part.fence, NOTE_CHARS)
        async for _ in self._generate(turns, grammar, most, written, heat, attempt):
            pass
        return mended_lines(part, written.text)

    async def _lines(self, wanted: Rewrite, heat: float, attempt: int) -> list[str] | None:
        """Return the lines as the model writes them, less what it did in passing; None if it did not end."""
        most = min(self._most_tokens(), sum(len(line) + 1 for line in wanted.lines) // 2 + 300)
        written, turns = _Pass(), rewriting(question(wanted))
        async for _ in self._generate(turns, fence_grammar(wanted.fence), most, written, heat, attempt):
            pass
        body = read_fence(written.text, wanted.fence)
        return repaired(wanted, body.split("\n")) if body is not None else None

    def _without(self, grammar: StepGrammar, tool: str) -> StepGrammar:
        """Return `grammar` for another try after a call that was the last one again, or never ended."""
        fewer = grammar.without(tool)
        if fewer == grammar:
            raise self._failure(f"the model found no way on after {tool}")
        return fewer

    async def _call(
        self, situation: Situation, turns: Sequence[ChatTurn], step: Mapping[str, Any], text: str
    ) -> ToolUseBlock | None:
        """Return the call that `step` asks for, its long text written; None if it cannot be made."""
        spec = next(tool for tool in self.tools if tool.name == step["tool"])
        path = str(step.get("path", ""))
        known = situation.known.get(path)
        if spec.name == "read_file" and situation.wants_change:
            arguments = reading_of(path, situation)
        else:
            arguments = call_input(step, spec, (known.next_offset if known else None) or 1)
        if "old" in step and known is not None:
            arguments["old"] = editable(known)[step["old"]]
        follow = None if "input" in step else follow_up(spec.name, path, arguments.get("old", ""))
        if follow is not None:
            body = await self._body(asking(turns, text, follow), follow, arguments.get("old"))
            if body is None:
                return None
            arguments[FOLLOWED_BY[spec.name]] = body
        if situation.is_repeat(spec.name, arguments):
            return None
        return ToolUseBlock(new_id("call"), spec.name, arguments)

    async def _body(self, turns: Sequence[ChatTurn], follow: FollowUp, old: str | None) -> str | None:
        """Return the long text of a call, or None when it did not end.

        Args:
            turns: the conversation with the question.
            follow: the form of the block.
            old: lines to be replaced: the new ones begin with the same indentation and differ.
        """
        indent = indent_of(old or "")
        single = (old or "").removeprefix(indent)
        grammar = fence_grammar(follow.opening, indent, "" if "\n" in single else single)
        written = _Pass()
        async for _ in self._generate(turns, grammar, min(follow.tokens, self._most_tokens()), written):
            pass
        body = read_fence(written.text, follow.opening)
        return None if body == old else body

    # -------------------------------------------------- passes and ends

    async def _generate(
        self,
        turns: Sequence[ChatTurn],
        grammar: str,
        max_tokens: int,
        into: _Pass,
        temperature: float | None = None,
        seed: int = 0,
        following: Sequence[ChatTurn] = (),
    ) -> AsyncGenerator[str, None]:
        heat = self.request.temperature or 0.0 if temperature is None else temperature
        openings = openings_of(following or turns, self._names())
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
