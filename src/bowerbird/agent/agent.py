"""`Agent`: a value that says which model, tools, instructions and limits, save for one branch handle.

Here: the public class, its runs and steps. Not here: checks of its parameters (`options`), the loop,
what a run consists of (`library_run`), settings: `bowerbird.api` gives the class its models.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack, overload

import msgspec

from bowerbird.agent.busy import in_use
from bowerbird.agent.config import options_from_config, parameter_names
from bowerbird.agent.delegates import Approver, ChildRun
from bowerbird.agent.delegating import Delegating
from bowerbird.agent.handle import Handle, given_as
from bowerbird.agent.inputs import is_chat
from bowerbird.agent.library_run import Begin, begin, begin_chat, data_begin, run_events, turn_run
from bowerbird.agent.options import DEFAULT_ITERATIONS, AgentOptions, LandingPolicy
from bowerbird.agent.policy import Mode
from bowerbird.agent.result import AgentEvent, OutputT, RunDone, RunResult, StepResult
from bowerbird.agent.value import AgentChanges, AgentValue, Examples, GivenLimits, GivenTools, Permissions
from bowerbird.core.errors import InvalidArgument, NoModel
from bowerbird.core.messages import message_from_data
from bowerbird.core.threads import to_thread

if TYPE_CHECKING:
    from bowerbird.models.protocol import Model
    from bowerbird.skills import SkillLibrary
    from bowerbird.tools.processes.family import Processes, ProcessSetup
    from bowerbird.workspace import Branch, Workspace

OtherT = TypeVar("OtherT")


class Agent(AgentValue, Delegating, Generic[OutputT]):
    """An agent on a branch of a directory; nothing lands until you say so.

    All arguments are keywords; an agent never changes, see `replace`.

    Args:
        workdir: directory to work on; None = an empty branch.
        data_dir: where the branch is kept; None = where the `bowerbird` command keeps its own
            (`~/.bowerbird/data`), `":memory:"` = a temporary place that `close` removes.
        timeout: seconds per `run_python_code`/`run_python_file` call.
        tools: `Tool`s or functions, after the built-in ones; a plain one runs in a thread. They run unasked,
            unless their own `effect="outside"` or `needs_approval`, `enable_approval` or a rule asks.
        branch: ready-made branch, say `other.branch.fork()`; `sandbox` is a synonym.
        max_subagent_depth: 0 = no delegation, 1 = subagents that cannot spawn.
        schema, data_model: JSON Schema, or a pydantic, msgspec, dataclass or TypedDict type, of the output.
        language_model: `"provider:model"` or a `Model`; None = settings.
        prompt_template: of the message made from data: {inputs} {inputs_schema} {outputs_schema} {examples}.
        examples: `[{"input": …, "output": …}]` for tool rounds.
        instructions: replace `get_default_instructions(workdir)`. final_instructions: for the output.
        temperature: 0 to 2, None = not sent. reasoning_effort: low, medium, high, max.
        use_inputs_schema, use_outputs_schema: put that schema into the prompt.
        use_chain_of_thought: a thinking part each round for models without native thinking.
        autonomous: False = `run` does one step.
        return_inputs_with_trajectory: False = `result.messages` holds only what the run added.
        max_iterations: model calls per run. limits: further limits, see `Limits`.
        streaming: `run` returns the iterator of `stream`.
        name, description: who this is. landing: `review`, `turn` or `step`.
        permissions: rules, see `Policy`. mode: `normal` or `plan`.
        skills: directory of skills. memory: names of memory files; None = the usual four.
        think: offer `think`. enable_approval: ask before unsafe tools.

    Raises:
        InvalidArgument: a value is wrong; parameter and value are named.
        InvalidWorkspace: `workdir` is missing or no directory.

    Example:
        agent = Agent(workdir="project", language_model="anthropic:claude-sonnet-4-5")
        result = await agent.run("Fix the failing test")
        result.branch.land()
    """

    __slots__ = ("_handle", "_options")

    _handle: Handle
    _options: AgentOptions

    def __init__(
        self,
        *,
        workdir: str | Path | None = None,
        data_dir: str | Path | None = None,
        timeout: float = 30.0,
        tools: GivenTools = None,
        branch: "Branch | None" = None,
        sandbox: "Branch | None" = None,
        max_subagent_depth: int = 0,
        schema: Mapping[str, Any] | None = None,
        data_model: type[OutputT] | None = None,
        language_model: "str | Model | None" = None,
        prompt_template: str | None = None,
        examples: Examples = None,
        instructions: str | None = None,
        final_instructions: str | None = None,
        temperature: float | None = None,
        use_inputs_schema: bool = False,
        use_outputs_schema: bool = False,
        reasoning_effort: str | None = None,
        use_chain_of_thought: bool = False,
        autonomous: bool = True,
        return_inputs_with_trajectory: bool = True,
        max_iterations: int = DEFAULT_ITERATIONS,
        streaming: bool = False,
        name: str | None = None,
        description: str | None = None,
        landing: LandingPolicy = "review",
        limits: GivenLimits = None,
        permissions: Permissions = None,
        mode: Mode = "normal",
        skills: str | Path | None = None,
        memory: Sequence[str] | None = None,
        think: bool = True,
        enable_approval: bool = False,
    ) -> None:
        given = locals()  # the parameters by name: they are those of AgentOptions, save the branch
        if branch is not None and sandbox is not None:
            raise InvalidArgument("branch and sandbox are both given; they are two names of one parameter")
        options = AgentOptions(**{key: given[key] for key in parameter_names()})
        object.__setattr__(self, "_options", options)
        given_branch = given_as("branch", branch) or given_as("sandbox", sandbox)
        object.__setattr__(self, "_handle", Handle(options, given_branch, self._new_workspace))

    @property
    def branch(self) -> "Branch":
        """The branch of this agent's runs, opened at first use; it is the same one after `close`, too."""
        return self._handle.branch()

    @property
    def sandbox(self) -> "Branch":
        """Synonym of `branch`."""
        return self.branch

    @overload
    def replace(self, **changes: Unpack[AgentChanges]) -> Self: ...
    @overload
    def replace(
        self, *, data_model: type[OtherT] | None, **changes: Unpack[AgentChanges]
    ) -> "Agent[OtherT]": ...
    def replace(self, **changes: Any) -> "Agent[Any]":
        """Return a copy with other parameters; without `branch` it opens a branch of its own, unless one
        was given to this agent."""
        given = {key: getattr(self._options, key) for key in parameter_names()}
        if "branch" not in changes and "sandbox" not in changes:
            given["branch"] = self._handle.given
        return type(self)(**{**given, **changes})

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return the agent that `get_config` described; `config` stays as it is.

        Raises:
            InvalidArgument: a key is unknown or a value wrong.
        """
        return cls(**options_from_config(config))

    async def run(
        self,
        inputs: object,
        *,
        branch: "Branch | None" = None,
        deadline_s: float | None = None,
        approver: Approver | None = None,
    ) -> RunResult[OutputT]:
        """Run until there is an answer or a limit, and return the `RunResult`.

        Args:
            inputs: a string, messages or `{"messages": […]}` is chat; anything else is data.
            branch: to work on instead of the agent's own. deadline_s: seconds for this run.
            approver: answers questions; None = what would ask is denied.

        Returns:
            RunResult; with `streaming=True` the iterator of `stream`; with `autonomous=False` the
            StepResult of one step. Type checkers see the RunResult: where types matter, call `stream` and
            `step` for those.

        Raises:
            BranchBusy: the branch has a run. NoModel, ConfigError: no model, or no key for it.
            InvalidArgument: the inputs cannot be used.
        """
        if not self._options.streaming and not self._options.autonomous:
            one: Any = await self.step(inputs, branch=branch, deadline_s=deadline_s, approver=approver)
            return one
        events: Any = self.stream(inputs, branch=branch, deadline_s=deadline_s, approver=approver)
        return events if self._options.streaming else await self._result(events)

    def run_sync(
        self,
        inputs: object,
        *,
        branch: "Branch | None" = None,
        deadline_s: float | None = None,
        approver: Approver | None = None,
    ) -> RunResult[OutputT]:
        """Do `run` where no event loop runs; raises InvalidArgument where one does."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(inputs, branch=branch, deadline_s=deadline_s, approver=approver))
        raise InvalidArgument("run_sync is called inside a running event loop; use `await agent.run(…)`")

    async def stream(
        self,
        inputs: object,
        *,
        branch: "Branch | None" = None,
        deadline_s: float | None = None,
        approver: Approver | None = None,
    ) -> AsyncGenerator[AgentEvent[OutputT], None]:
        """Yield the events of a run; the last is `done` and has the `result`. Closing it cancels the run.

        Example:
            async with aclosing(agent.stream("hello")) as events:
                async for event in events:
                    print(event.type)
        """
        start = begin(self._options, inputs)
        async with aclosing(self._events(start, inputs, branch, deadline_s, approver)) as events:
            async for event in events:
                yield event

    async def stream_child(
        self, task: str, child: ChildRun, approver: Approver | None = None
    ) -> AsyncGenerator[AgentEvent[OutputT], None]:
        """Yield the events of a run as somebody's subagent, as `stream`; for `bowerbird.subagents`."""
        self._handle.setup = child.setup
        start = begin(self._options, task)
        async with aclosing(self._events(start, task, None, None, approver, child)) as events:
            async for event in events:
                yield event

    async def step(
        self,
        messages: object,
        *,
        branch: "Branch | None" = None,
        deadline_s: float | None = None,
        approver: Approver | None = None,
    ) -> StepResult:
        """Run the calls of the last message, if it is the assistant's, then ask the model once.

        Args:
            messages: chat, perhaps `StepResult.messages` of the step before, edited.
            branch, deadline_s, approver: as for `run`.

        Raises:
            InvalidArgument: the input is data.
        """
        if not is_chat(messages):
            raise InvalidArgument("step mode takes chat only: a string or messages, not data")
        start = begin_chat(messages, one_step=True)
        result = await self._result(self._events(start, messages, branch, deadline_s, approver))
        last = message_from_data(result.messages[-1]) if result.messages else None
        waits = result.stop_reason in ("awaiting_tools", "awaiting_approval", "awaiting_user")
        return StepResult(
            messages=result.messages,
            pending_calls=[
                {"id": use.id, "name": use.name, "input": use.input}
                for use in (last.tool_uses if last is not None and waits else ())
            ],
            stop_reason=result.stop_reason,
            usage=result.usage,
            error=result.error,
        )

    def close(self) -> None:
        """Close the branch that this agent opened; one that was given is left to its owner.

        What has not landed stays on the branch, which is opened again when it is used; `data_dir=":memory:"`
        gives it up.
        """
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_details: object) -> None:
        self.close()

    async def _events(
        self,
        start: Begin | None,
        inputs: Any,
        branch: "Branch | None",
        deadline_s: float | None,
        approver: Approver | None,
        child: ChildRun | None = None,
    ) -> AsyncGenerator[AgentEvent[OutputT], None]:
        options = self._options
        on = given_as("branch", branch) or await to_thread(self._handle.branch)
        async with AsyncExitStack() as stack:
            stack.enter_context(in_use(on))
            await to_thread(on.begin_turn)
            model, owned = await self._open_model()
            try:
                python = await stack.enter_async_context(self._handle.names.of_run(on, options.timeout))
                processes = await self._enter_sandbox(stack, on)
                mine = await self._delegate() if child is None else None
                delegate = mine if child is None else child.delegate
                first = start if start is not None else await data_begin(options, on, inputs)
                run = await turn_run(
                    options, on, model, first, data=start is None, skills=self._skills(), python=python,
                    processes=processes, approver=approver, deadline_s=deadline_s, delegate=delegate,
                    child=child,
                )  # fmt: skip
                if mine is not None:
                    stack.push_async_callback(mine.ended, run.who.turn)
                whole = options if not first.one_step else self._shown_whole()
                before = len(first.history) + len(first.new)
                async with aclosing(run_events(whole, run, inputs, before)) as events:
                    async for event in events:
                        yield event
            finally:
                if owned:
                    await model.aclose()

    async def _enter_sandbox(self, stack: AsyncExitStack, branch: "Branch") -> "Processes":
        """Give a run its sandbox; what this host gives is found out once per agent."""
        from bowerbird.tools.processes.family import processes_of_run

        setup = self._handle.setup
        if setup is None:
            setup = await self._process_setup()
        found = await stack.enter_async_context(processes_of_run(branch, setup))
        self._handle.setup = msgspec.structs.replace(setup, status=found.status)
        return found

    def _new_workspace(self) -> "Workspace":
        """Open the workspace; `bowerbird.Agent` asks settings where branches are kept. Blocks."""
        from bowerbird.workspace import Workspace

        return Workspace(self._options.workdir, data_dir=self._options.data_dir)

    async def _process_setup(self) -> "ProcessSetup":
        """Return how processes are run; `bowerbird.Agent` takes it from settings."""
        from bowerbird.tools.processes.family import ProcessSetup

        return ProcessSetup()

    async def _open_model(self) -> "tuple[Model, bool]":
        """Return the model and whether this run closes it; names need settings, see `bowerbird.Agent`."""
        model = self._options.language_model
        if model is None or isinstance(model, str):
            raise NoModel("no model is configured; give language_model=a Model, or use bowerbird.Agent")
        return model, False

    async def _result(self, events: AsyncGenerator[AgentEvent[OutputT], None]) -> RunResult[OutputT]:
        async with aclosing(events) as told:
            async for event in told:
                if isinstance(event, RunDone):
                    return event.result
        raise AssertionError("a run ends with its result")

    def _skills(self) -> "SkillLibrary | None":
        if self._options.skills is None:
            return None
        from bowerbird.skills import SkillLibrary

        return SkillLibrary(self._options.workdir, str(Path(self._options.skills).expanduser()))

    def _shown_whole(self) -> AgentOptions:
        """Return options for a step: the next one needs all messages, whatever a run would show."""
        if self._options.return_inputs_with_trajectory:
            return self._options
        return self.replace(return_inputs_with_trajectory=True)._options
