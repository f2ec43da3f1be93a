"""An agent as a value: its parameters, readable and never changed (AG-1).

Here: one property per parameter, what `replace` takes, the configuration form. Not here: checks of the
parameters (`options`), branches and runs (`agent`).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from bowerbird.agent.config import options_to_config
from bowerbird.agent.library_run import agent_tools
from bowerbird.agent.limits import Limits
from bowerbird.agent.options import AgentOptions, LandingPolicy
from bowerbird.agent.policy import Mode, Policy
from bowerbird.agent.prompt import get_default_instructions
from bowerbird.tools.tool import Tool

if TYPE_CHECKING:
    from bowerbird.models.protocol import Model
    from bowerbird.workspace import Branch

GivenTools = Sequence[Tool | Callable[..., Any]] | None
Examples = Sequence[Mapping[str, Any]] | None
GivenLimits = Limits | Mapping[str, Any] | None
Permissions = Policy | Mapping[str, Any] | Sequence[str] | None


class AgentChanges(TypedDict, total=False):
    """What `Agent.replace` takes beside `data_model`: the parameters of `Agent`."""

    workdir: str | Path | None
    data_dir: str | Path | None
    timeout: float
    tools: GivenTools
    branch: "Branch | None"
    sandbox: "Branch | None"
    max_subagent_depth: int
    schema: Mapping[str, Any] | None
    language_model: "str | Model | None"
    prompt_template: str | None
    examples: Examples
    instructions: str | None
    final_instructions: str | None
    temperature: float | None
    use_inputs_schema: bool
    use_outputs_schema: bool
    reasoning_effort: str | None
    use_chain_of_thought: bool
    autonomous: bool
    return_inputs_with_trajectory: bool
    max_iterations: int
    streaming: bool
    name: str | None
    description: str | None
    landing: LandingPolicy
    limits: GivenLimits
    permissions: Permissions
    mode: Mode
    skills: str | Path | None
    memory: Sequence[str] | None
    think: bool
    enable_approval: bool


class AgentValue:
    """The part of `Agent` that never changes; each property is the parameter as it was given."""

    __slots__ = ()

    _options: AgentOptions

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an Agent does not change; use agent.replace({name}=…)")

    def __repr__(self) -> str:
        return f"Agent(name={self.name!r}, workdir={str(self.workdir) if self.workdir else None!r})"

    def get_config(self) -> dict[str, Any]:
        """Return all parameters but the branch as JSON data; never a secret.

        Raises:
            NotSerializable: a tool, type or `Model` has no form in a configuration; it is named.
        """
        return options_to_config(self._options)

    @property
    def name(self) -> str:
        """The agent's name, `agent` when none was given."""
        return self._options.name or "agent"

    @property
    def instructions(self) -> str:
        """The instructions, `get_default_instructions(workdir)` when none were given."""
        options = self._options
        if options.instructions is not None:
            return options.instructions
        return get_default_instructions(options.workdir, agent_tools(options).names)

    @property
    def workdir(self) -> Path | None:
        """The directory, resolved; None = branches of nothing."""
        return self._options.workdir

    @property
    def data_dir(self) -> str | Path | None:
        """Where the branch is kept, absolute; None = as settings say."""
        return self._options.data_dir

    @property
    def timeout(self) -> float:
        """Seconds per Python call."""
        return self._options.timeout

    @property
    def tools(self) -> GivenTools:
        """The agent's own tools."""
        return self._options.tools

    @property
    def max_subagent_depth(self) -> int:
        """How deep subagents may go."""
        return self._options.max_subagent_depth

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """JSON Schema of the output."""
        return self._options.schema

    @property
    def data_model(self) -> Any:
        """Type of the output."""
        return self._options.data_model

    @property
    def language_model(self) -> "str | Model | None":
        """The model, or its name; None = settings."""
        return self._options.language_model

    @property
    def prompt_template(self) -> str | None:
        """Of the message made from data."""
        return self._options.prompt_template

    @property
    def examples(self) -> Examples:
        """For tool rounds."""
        return self._options.examples

    @property
    def final_instructions(self) -> str | None:
        """For the output."""
        return self._options.final_instructions

    @property
    def temperature(self) -> float | None:
        """0 to 2, None = not sent."""
        return self._options.temperature

    @property
    def use_inputs_schema(self) -> bool:
        """Whether the prompt has the inputs' schema."""
        return self._options.use_inputs_schema

    @property
    def use_outputs_schema(self) -> bool:
        """Whether the prompt has the output's schema."""
        return self._options.use_outputs_schema

    @property
    def reasoning_effort(self) -> str | None:
        """low, medium, high, max."""
        return self._options.reasoning_effort

    @property
    def use_chain_of_thought(self) -> bool:
        """Whether each round has a thinking part."""
        return self._options.use_chain_of_thought

    @property
    def autonomous(self) -> bool:
        """False = `run` does one step."""
        return self._options.autonomous

    @property
    def return_inputs_with_trajectory(self) -> bool:
        """Whether results have all messages."""
        return self._options.return_inputs_with_trajectory

    @property
    def max_iterations(self) -> int:
        """Model calls per run."""
        return self._options.max_iterations

    @property
    def streaming(self) -> bool:
        """Whether `run` returns the iterator of `stream`."""
        return self._options.streaming

    @property
    def description(self) -> str | None:
        """What this agent is for."""
        return self._options.description

    @property
    def landing(self) -> LandingPolicy:
        """When the branch lands by itself."""
        return self._options.landing

    @property
    def limits(self) -> GivenLimits:
        """Further limits."""
        return self._options.limits

    @property
    def permissions(self) -> Permissions:
        """Rules of what tools may do."""
        return self._options.permissions

    @property
    def mode(self) -> Mode:
        """`normal` or `plan`."""
        return self._options.mode

    @property
    def skills(self) -> str | Path | None:
        """Directory of skills."""
        return self._options.skills

    @property
    def memory(self) -> Sequence[str] | None:
        """Names of memory files."""
        return self._options.memory

    @property
    def think(self) -> bool:
        """Whether `think` is offered."""
        return self._options.think

    @property
    def enable_approval(self) -> bool:
        """Whether unsafe tools ask."""
        return self._options.enable_approval
