"""Every parameter of an `Agent`, checked once (AG-2 … AG-25).

Here: the values, their refusals, what follows from them without I/O. Not here: running, branches,
settings, the configuration form (`config`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bowerbird.agent.inputs import check_template
from bowerbird.agent.limits import Limits, positive_number
from bowerbird.agent.policy import Mode, Policy
from bowerbird.agent.turn import OutputSpec
from bowerbird.agent.turn_loop.structured import output_spec
from bowerbird.core.errors import InvalidArgument, InvalidWorkspace, ToolNameCollision
from bowerbird.core.requests import Effort
from bowerbird.tools.names import builtin_owner
from bowerbird.tools.tool import Tool, as_tool
from bowerbird.tools.toolset import Toolset

if TYPE_CHECKING:
    from bowerbird.models.protocol import Model

LandingPolicy = Literal["review", "turn", "step"]
DEFAULT_ITERATIONS = 10
MEMORY = ":memory:"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_EFFORTS = ("low", "medium", "high", "max", "xhigh")


@dataclass(frozen=True, kw_only=True, eq=False)
class AgentOptions:
    """The parameters of an agent as given, and the values derived from them."""

    workdir: Path | None = None
    data_dir: str | Path | None = None
    timeout: float = 30.0
    tools: Sequence[Tool | Callable[..., Any]] | None = None
    max_subagent_depth: int = 0
    schema: Mapping[str, Any] | None = None
    data_model: Any = None
    language_model: "str | Model | None" = None
    prompt_template: str | None = None
    examples: Sequence[Mapping[str, Any]] | None = None
    instructions: str | None = None
    final_instructions: str | None = None
    temperature: float | None = None
    use_inputs_schema: bool = False
    use_outputs_schema: bool = False
    reasoning_effort: str | None = None
    use_chain_of_thought: bool = False
    autonomous: bool = True
    return_inputs_with_trajectory: bool = True
    max_iterations: int = DEFAULT_ITERATIONS
    streaming: bool = False
    name: str | None = None
    description: str | None = None
    landing: LandingPolicy = "review"
    limits: Limits | Mapping[str, Any] | None = None
    permissions: Policy | Mapping[str, Any] | Sequence[str] | None = None
    mode: Mode = "normal"
    skills: str | Path | None = None
    memory: Sequence[str] | None = None
    think: bool = True
    enable_approval: bool = False

    own_tools: tuple[Tool, ...] = field(init=False)
    output: OutputSpec | None = field(init=False)
    effective_limits: Limits = field(init=False)
    policy: Policy = field(init=False)

    def __post_init__(self) -> None:
        derived: dict[str, Any] = {
            "workdir": _directory(self.workdir),
            "data_dir": _data_dir(self.data_dir),
            "timeout": positive_number("timeout", self.timeout),
            "own_tools": _own_tools(self.tools),
            "output": output_spec(self.schema, self.data_model),
            "effective_limits": _limits(self.limits, self.max_iterations),
        }
        derived["policy"] = Policy.of(self.permissions, enable_approval=self.enable_approval)
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        self._check_numbers()
        self._check_choices()
        self._check_texts()
        if self.streaming and self.output is not None:
            raise InvalidArgument("streaming=True with a schema is refused; use agent.stream(inputs) instead")

    @property
    def effective_policy(self) -> Policy:
        """`policy`, with the tools that the program handed over without saying what they do."""
        return replace(self.policy, given=frozenset(t.name for t in self.own_tools if not t.classed))

    @property
    def effort(self) -> Effort | None:
        """`reasoning_effort` as models know it: `xhigh` is `max`."""
        known: dict[str, Effort] = {
            "low": "low", "medium": "medium", "high": "high", "max": "max", "xhigh": "max",
        }  # fmt: skip
        return known[self.reasoning_effort] if self.reasoning_effort is not None else None

    def _check_numbers(self) -> None:
        _integer("max_subagent_depth", self.max_subagent_depth, least=0)
        given = self.temperature
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        if given is not None and not (is_number and 0 <= given <= 2):
            raise InvalidArgument(f"temperature is {self.temperature!r}; use a number from 0 to 2")

    def _check_choices(self) -> None:
        _one_of("landing", self.landing, ("review", "turn", "step"))
        _one_of("mode", self.mode, ("normal", "plan"))
        if self.reasoning_effort is not None:
            _one_of("reasoning_effort", self.reasoning_effort, _EFFORTS)
        for flag in (
            "use_inputs_schema", "use_outputs_schema", "use_chain_of_thought", "autonomous",
            "return_inputs_with_trajectory", "streaming", "think", "enable_approval",
        ):  # fmt: skip
            if not isinstance(getattr(self, flag), bool):
                raise InvalidArgument(f"{flag} is {getattr(self, flag)!r}; use True or False")

    def _check_texts(self) -> None:
        if self.name is not None and not _NAME.fullmatch(str(self.name)):
            raise InvalidArgument(
                f"name is {self.name!r}; use a letter, then up to 63 letters, digits, '_' or '-'"
            )
        for name in ("instructions", "final_instructions", "prompt_template", "description"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InvalidArgument(f"{name} is {value!r}; use a string")
        if self.prompt_template is not None:
            check_template(self.prompt_template)
        for at, example in enumerate(self.examples or ()):
            if not isinstance(example, Mapping) or set(example) != {"input", "output"}:  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
                raise InvalidArgument(f"examples[{at}] is {example!r}; use {{'input': …, 'output': …}}")
        if isinstance(self.memory, str):
            raise InvalidArgument(f"memory is {self.memory!r}; use a list of file names")
        _check_model(self.language_model)
        _check_skills(self.skills, self.workdir)


def _directory(workdir: object) -> Path | None:
    if workdir is None:
        return None
    if not isinstance(workdir, str | Path) or not str(workdir).strip():
        raise InvalidWorkspace(f"workdir is {workdir!r}; use the path of a directory")
    path = Path(workdir).resolve()
    if not path.exists():
        raise InvalidWorkspace(f"workdir does not exist: {path}")
    if not path.is_dir():
        raise InvalidWorkspace(f"workdir is not a directory: {path}")
    return path


def _data_dir(given: object) -> str | Path | None:
    if given is None or given == MEMORY:
        return MEMORY if given is not None else None
    if not isinstance(given, str | Path) or not str(given).strip():
        raise InvalidArgument(f"data_dir is {given!r}; use the path of a directory, or {MEMORY!r}")
    return Path(given).expanduser().absolute()


def _check_model(model: object) -> None:
    if model is None or (not isinstance(model, str) and hasattr(model, "stream")):
        return
    named = isinstance(model, str) and bool(model.strip())
    if not named or not set(":/") & set(str(model)):
        example = f", say 'anthropic:{model}'" if named else ""
        raise InvalidArgument(
            f"language_model is {model!r}; use 'provider:model'{example}, a Model, or None: as settings say"
        )


def _check_skills(skills: object, workdir: Path | None) -> None:
    if skills is None:
        return
    if not isinstance(skills, str | Path) or not str(skills).strip():
        raise InvalidArgument(f"skills is {skills!r}; use the path of a directory")
    path = Path(skills).expanduser()
    if workdir is None and not path.is_absolute():
        raise InvalidArgument(f"skills is {str(skills)!r}, which starts at workdir, and there is none")
    if not ((workdir or Path("/")) / path).is_dir():
        raise InvalidArgument(f"skills is {str(skills)!r}; there is no such directory (it starts at workdir)")


def _own_tools(given: Sequence[Tool | Callable[..., Any]] | None) -> tuple[Tool, ...]:
    if given is None:
        return ()
    if isinstance(given, Tool) or callable(given):
        raise InvalidArgument(f"tools is {given!r}; use a list of tools")
    own = tuple(as_tool(each) for each in given)
    for one in own:
        for name in (one.name, *one.aliases):
            owner = builtin_owner(name)
            if owner is not None:
                what = f"built-in tool {owner!r}" + ("" if owner == name else f" (its alias {name!r})")
                raise ToolNameCollision(
                    f"tool {one.name!r} and the {what} share the name {name!r}; rename it"
                )
    Toolset(own)  # refuses two of the same name
    return own


def _limits(given: Limits | Mapping[str, Any] | None, max_iterations: int) -> Limits:
    _integer("max_iterations", max_iterations, least=1)
    limits = Limits.of(given)
    if DEFAULT_ITERATIONS not in (max_iterations, limits.max_iterations):
        if max_iterations != limits.max_iterations:
            raise InvalidArgument(
                f"max_iterations is {max_iterations}, limits.max_iterations {limits.max_iterations}; give one"
            )
        return limits
    wanted = limits.max_iterations if max_iterations == DEFAULT_ITERATIONS else max_iterations
    return replace(limits, max_iterations=wanted)


def _integer(name: str, value: object, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgument(f"{name} is {value!r}; use an integer of at least {least}")


def _one_of(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise InvalidArgument(f"{name} is {value!r}; use one of {', '.join(known)}")
