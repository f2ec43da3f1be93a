"""One run of an `Agent`: its options bound to the loop, its events folded into a result.

Here: the tools, system blocks and messages of a run, when a policy lands, the result. Not here: the
loop, how a model is opened (`agent.Agent._open_model`), sessions, which bind the loop to a journal.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.agent.branch_files import BranchStore
from bowerbird.agent.context.history import History, HistoryBuilder
from bowerbird.agent.delegates import Approver, ChildRun, Delegate
from bowerbird.agent.inputs import (
    PromptParts,
    chat_messages,
    check_given,
    data_message,
    examples_text,
    is_chat,
)
from bowerbird.agent.landing import land_by_policy
from bowerbird.agent.options import AgentOptions
from bowerbird.agent.prompt import delegation_block, get_default_instructions, hidden_names, system_blocks
from bowerbird.agent.result import AgentEvent, RunDone, RunResult
from bowerbird.agent.turn import OutputSpec, Sampling, Storage, TurnRun, Who
from bowerbird.agent.turn_loop.loop import run_turn
from bowerbird.core.errors import InvalidArgument
from bowerbird.core.events import Done, ToolIntent, ToolOutcome, taint_source
from bowerbird.core.ids import new_id
from bowerbird.core.messages import Message, message_to_data
from bowerbird.core.requests import Thinking
from bowerbird.core.threads import to_thread
from bowerbird.memory import read_memory
from bowerbird.tools.result import compact_json
from bowerbird.tools.tool import Tool
from bowerbird.tools.toolset import Toolset

if TYPE_CHECKING:
    from bowerbird.models.protocol import Model
    from bowerbird.skills import SkillLibrary
    from bowerbird.tools.processes.family import Processes
    from bowerbird.tools.processes.python_tools import PythonSessions
    from bowerbird.workspace import Branch


class Begin(msgspec.Struct, frozen=True):
    """How a run starts: what was said before, what is new, whether it is a single step, pictures to keep."""

    history: tuple[Message, ...]
    new: tuple[Message, ...]
    one_step: bool = False
    pictures: tuple[bytes, ...] = ()


def agent_tools(
    options: AgentOptions,
    skills: "SkillLibrary | None" = None,
    python: "PythonSessions | None" = None,
    processes: "Processes | None" = None,
    *,
    answerable: bool = False,
    delegation: Sequence[str] = (),
) -> Toolset:
    """Return the tools of a run: built-in ones first, then the agent's own.

    Args:
        options: of the agent. skills: its skills, None for none.
        python: the run's interpreters; None only to learn names. processes: the run's sandbox.
        answerable: a person can be asked. delegation: names of the tools for subagents.
    """
    from bowerbird.tools.files.code import code_tools
    from bowerbird.tools.files.file_tools import file_tools
    from bowerbird.tools.plan import NO_ANSWERER, plan_tools
    from bowerbird.tools.processes.python_tools import python_tools
    from bowerbird.tools.skills import skill_tools
    from bowerbird.tools.think import think_tools
    from bowerbird.tools.together.subagents import subagent_tools

    commands = processes.tools if processes is not None else ()
    built_in: list[Tool] = [
        *file_tools(), *code_tools(), *commands, *python_tools(python, options.timeout)
    ]  # fmt: skip
    built_in += think_tools() if options.think else []
    built_in += skill_tools(skills) if skills is not None else []
    wanted = {"compact"}
    if options.mode == "plan":
        wanted.add("exit_plan_mode")
    absent = dict(processes.absent) if processes is not None else {}
    if answerable:
        wanted.add("ask_user")
    else:
        absent["ask_user"] = NO_ANSWERER
    built_in += [tool for tool in plan_tools() if tool.name in wanted]
    built_in += subagent_tools(delegation) if delegation else []
    return Toolset((*built_in, *options.own_tools), absent=absent)


def begin(options: AgentOptions, inputs: Any) -> Begin | None:
    """Return how chat `inputs` begin a run; None for data, which needs a branch first."""
    check_given(inputs)
    if not is_chat(inputs):
        if not options.autonomous:
            raise InvalidArgument("step mode takes chat only: a string or messages, not data")
        return None
    return begin_chat(inputs, one_step=not options.autonomous)


def begin_chat(inputs: Any, *, one_step: bool) -> Begin:
    """Return how chat begins a run: its last message is new where a user said it."""
    pictures: list[bytes] = []
    messages = chat_messages(inputs, pictures)
    is_new = messages[-1].role == "user" and not messages[-1].tool_results
    at = len(messages) - is_new
    return Begin(messages[:at], messages[at:], one_step, tuple(pictures))


async def turn_run(
    options: AgentOptions,
    branch: "Branch",
    model: "Model",
    start: Begin,
    *,
    data: bool,
    skills: "SkillLibrary | None",
    python: "PythonSessions",
    processes: "Processes",
    approver: Approver | None,
    deadline_s: float | None,
    delegate: Delegate | None,
    child: ChildRun | None,
) -> TurnRun:
    """Return everything the loop needs for one run of an agent, perhaps as a subagent."""
    offers = delegate.offers if delegate is not None else ()
    tools = agent_tools(
        options, skills, python, processes, answerable=approver is not None, delegation=offers
    )
    if child is not None:
        tools = tools.without(*child.without)
    limits = options.effective_limits
    store = BranchStore(branch)
    for picture in start.pictures:
        await store.store_blob(picture, "")
    guidance = delegation_block(delegate.guidance, full=True) if delegate is not None else ""
    run = TurnRun(
        model=model,
        tools=tools,
        branch=branch,
        system=await _system(options, branch, tools, skills, processes.line, guidance, data=data),
        history=History(start.history),
        new=start.new,
        limits=limits if deadline_s is None else replace(limits, deadline_s=deadline_s),
        policy=options.effective_policy,
        mode=options.mode,
        approver=approver,
        delegate=delegate,
        output=_output(options),
        sampling=Sampling(
            temperature=None if options.temperature is None else float(options.temperature),
            thinking=Thinking(enabled=True, effort=options.effort) if options.effort else None,
            chain_of_thought=options.use_chain_of_thought,
        ),
        one_step=start.one_step,
        who=Who(session=branch.id, turn=new_id("t"), agent=options.name or "agent"),
        storage=Storage(
            spill=store.spill, store_blob=store.store_blob, read_blob=store.read_blob, transcripts=store
        ),
        notices=processes.notices,
    )
    if child is None:
        return run
    budget = child.budget(model) if child.budget is not None else None
    who = msgspec.structs.replace(run.who, session=child.session, purpose="subagent")
    return msgspec.structs.replace(run, who=who, stop=child.stop, budget=budget)


async def run_events(
    options: AgentOptions, run: TurnRun, inputs: Any, shown_before: int
) -> AsyncGenerator[AgentEvent[Any], None]:
    """Yield the events of `run`; the last is a `RunDone`. Lands as the agent's policy says.

    Args:
        options: of the agent. run: bound. inputs: as given, for the result.
        shown_before: how many messages of the history were there before this run.
    """
    branch = run.branch
    assert branch is not None, "a library run has a branch"
    said = HistoryBuilder(run.history)
    acting: set[str] = set()
    async with aclosing(run_turn(run)) as events:
        async for event in events:
            if isinstance(event, Done):
                if acting:
                    await to_thread(branch.end_turn, run.who.turn)
                # A turn that failed or was stopped lands nothing.
                if acting and options.landing == "turn" and event.stop_reason == "completed":
                    async for told in land_by_policy(branch):
                        yield told
                result = await _result(
                    options, branch, event, messages=said.messages, inputs=inputs, skip=shown_before
                )
                whole = (event.stop_reason, event.text, event.usage, event.steps, event.error, event.output)
                yield RunDone(*whole, result=result)
                return
            said.add(event)
            yield event
            if isinstance(event, ToolOutcome) and event.tainted:
                await to_thread(branch.taint, run.who.turn, taint_source(event))
            if isinstance(event, ToolIntent) and event.effect != "read":
                acting.add(event.call)
            elif isinstance(event, ToolOutcome) and event.call in acting and options.landing == "step":
                async for told in land_by_policy(branch):
                    yield told


async def _result(
    options: AgentOptions,
    branch: "Branch",
    done: Done,
    *,
    messages: Sequence[Message],
    inputs: Any,
    skip: int,
) -> RunResult[Any]:
    shown = list(messages)
    if not options.return_inputs_with_trajectory:
        structured = options.output is not None
        shown = shown[-1:] if structured else shown[skip:]
    return RunResult(
        text=done.text,
        output=done.output,
        messages=[message_to_data(m) for m in shown],
        inputs=inputs,
        stop_reason=done.stop_reason,
        error=done.error,
        usage=done.usage,
        steps=done.steps,
        branch=branch,
        changes=await to_thread(branch.changes),
    )


async def _system(
    options: AgentOptions,
    branch: "Branch",
    tools: Toolset,
    skills: "SkillLibrary | None",
    sandbox: str,
    subagents: str,
    *,
    data: bool,
) -> tuple[str, ...]:
    from bowerbird.skills import prompt_lines

    files = await read_memory(branch, options.memory if options.memory is not None else _default_memory())
    offered = await to_thread(skills.offered) if skills is not None else []
    blocks = list(
        system_blocks(
            options.instructions
            if options.instructions is not None
            else get_default_instructions(options.workdir, tools.names),
            workspace=options.workdir,
            sandbox=sandbox,
            hidden=await hidden_names(branch),
            memory=[(file.name, file.text) for file in files],
            skills=prompt_lines(offered) if offered else "",
            subagents=subagents,
        )
    )
    if not data and options.examples:  # data messages carry them themselves
        blocks.append(examples_text(options.examples))
    if not data and options.use_outputs_schema and options.output is not None:
        blocks.append(f"Schema of the answer:\n{compact_json(options.output.schema)}")
    return tuple(blocks)


def _default_memory() -> Sequence[str]:
    from bowerbird.memory import MEMORY_FILES

    return MEMORY_FILES


def _output(options: AgentOptions) -> OutputSpec | None:
    if options.output is None or options.final_instructions is None:
        return options.output
    return msgspec.structs.replace(options.output, system=(options.final_instructions,))


async def data_begin(options: AgentOptions, branch: "Branch", inputs: Any) -> Begin:
    """Write data `inputs` to the branch and return the run's beginning."""
    wants_schema = options.output is not None and (
        options.use_outputs_schema or "{outputs_schema}" in (options.prompt_template or "")
    )
    parts = PromptParts(
        template=options.prompt_template,
        examples=examples_text(options.examples),
        outputs_schema=compact_json(options.output.schema) if options.output and wants_schema else "",
        with_inputs_schema=options.use_inputs_schema,
    )
    return Begin((), (await data_message(inputs, branch, parts),))
