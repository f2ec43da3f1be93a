"""`Tool`: a function, what a model is told of it, and how a call of it runs.

Here: making a tool from a function or a handler (TO-1, TO-3), running one call with its
time limit and result form (TO-5, TO-8). Not here: sets of tools and aliases between
them (`toolset.py`), permission (`agent/`), any tool of ours.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Self, cast, overload

from bowerbird.core.errors import InvalidArgument, ToolDefinitionError, ToolError, WorkspaceError
from bowerbird.core.events import EffectClass
from bowerbird.core.requests import ToolSpec
from bowerbird.core.schema import ArgumentBinder, parameters_schema
from bowerbird.core.threads import to_thread
from bowerbird.tools.context import ToolContext
from bowerbird.tools.limits import bound
from bowerbird.tools.names import check_name
from bowerbird.tools.result import ToolResult, to_result

DEFAULT_TIMEOUT_S = 120.0

Arguments = dict[str, Any]
Runner = Callable[[Arguments, ToolContext], Awaitable[object]]
Serial = str | Callable[[Mapping[str, Any]], tuple[str, ...]] | None
Adapter = Callable[[Arguments], Arguments]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Tool:
    """Something a model may call.

    Args:
        fn: An async function with docstring and hints; or leave it out and give the rest.
        name: Default: the function's name.
        description: Default: the function's docstring up to its arguments.
        input_schema: JSON Schema of the arguments (with `handler`).
        handler: `async handler(args: dict, **context) -> str | dict | ToolResult`; it is
            given those of branch, session, turn, call, agent, cancel, progress, secret,
            config, context that its signature takes.
        effect: `read`, `plan`, `session`, `branch` or `outside`; None = `outside`, and `classed`
            is False: nobody said so, it is the cautious guess.
        timeout_s: Seconds a call may take; default 120.
        needs_approval: True or False overrides the policy's class default; None leaves it.
        aliases: Other names that are accepted when called.
        parameters: Other names of parameters, alias → parameter.
        adapters: Alias of the tool → function that turns its arguments into this tool's.
        hidden: Parameters that are accepted but not shown to models.
        serial: Key, or function of the arguments to keys, of calls that run in sequence.
        keyed: The tool takes an idempotency key, so its effect is `keyed` in the ledger.
        process: It changes the branch through processes, so a mark of the whole branch is taken before
            a call.
        recorded: The effect that the ledger is told in place of `effect`, where a call may reach further
            than its class for permission says; None = `effect`.
        variants: Parameter → the tool that a call is of where the parameter is true: it is judged, recorded
            and run as that one's, without the parameter.
        foreign: The schema is another program's word: it was checked, and arguments are, within a deadline.

    Raises:
        ToolDefinitionError: a bad name, or a docstring, hint or parameter line is missing.
        TypeError: the function is not async.

    Example:
        >>> async def add(a: int, b: int) -> int:
        ...     '''Add two numbers.
        ...
        ...     Args:
        ...         a: First.
        ...         b: Second.
        ...     '''
        ...     return a + b
        >>> Tool(add).name
        'add'
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    effect: EffectClass
    classed: bool
    timeout_s: float
    needs_approval: bool | None
    aliases: tuple[str, ...]
    parameters: Mapping[str, str]
    adapters: Mapping[str, Adapter]
    hidden: frozenset[str]
    serial: Serial
    keyed: bool
    process: bool
    recorded: EffectClass
    variants: Mapping[str, str]
    foreign: bool
    origin: str | None
    run: Runner

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        input_schema: Mapping[str, Any] | None = None,
        handler: Callable[..., Awaitable[object]] | None = None,
        effect: EffectClass | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        needs_approval: bool | None = None,
        aliases: tuple[str, ...] = (),
        parameters: Mapping[str, str] | None = None,
        adapters: Mapping[str, Adapter] | None = None,
        hidden: frozenset[str] = frozenset(),
        serial: Serial = None,
        keyed: bool = False,
        process: bool = False,
        recorded: EffectClass | None = None,
        variants: Mapping[str, str] | None = None,
        foreign: bool = False,
    ) -> None:
        if (fn is None) == (handler is None):
            raise ToolDefinitionError("a tool needs either a function, or name, input_schema and handler")
        source = cast("Callable[..., Any]", fn or handler)
        called = getattr(source, "__name__", "") if name is None else name
        check_name(called)
        if not inspect.iscoroutinefunction(source):
            raise TypeError(f"{called} is not async; use `async def`, or Tool.from_sync({called})")
        if timeout_s <= 0:
            raise InvalidArgument(f"{called}: timeout_s is {timeout_s}; use seconds above 0")
        if fn is not None:
            made = parameters_schema(fn)
            schema, text = made.schema, description or made.description
            runner = _function_runner(fn, made.injected)
        else:
            schema, text = _given_schema(called, input_schema, foreign=foreign), description or ""
            runner = _handler_runner(source)
        if not text.strip():
            raise ToolDefinitionError(f"{called} has no description; it tells the model what the tool does")
        values: dict[str, Any] = {
            "name": called, "description": text, "input_schema": schema,
            "effect": effect or "outside", "classed": effect is not None,
            "timeout_s": timeout_s, "needs_approval": needs_approval,
            "aliases": tuple(check_name(a) for a in aliases), "parameters": dict(parameters or {}),
            "adapters": dict(adapters or {}), "hidden": hidden, "serial": serial, "keyed": keyed,
            "process": process, "recorded": recorded or effect or "outside",
            "variants": dict(variants or {}), "foreign": foreign, "origin": _origin(source), "run": runner,
        }  # fmt: skip
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @classmethod
    def from_sync(cls, fn: Callable[..., Any], **options: Any) -> Self:
        """Return a tool of a plain function, which runs in a thread.

        Args:
            fn: A function with docstring and hints. A cancelled call stops waiting for
                the thread; the thread itself runs to its end.
            options: As for `Tool`.
        """
        if inspect.iscoroutinefunction(fn):
            return cls(fn, **options)

        @wraps(fn)
        async def in_thread(*args: Any, **kwargs: Any) -> Any:
            return await to_thread(fn, *args, **kwargs)

        return cls(in_thread, **options)

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, effect={self.effect!r})"

    @property
    def spec(self) -> ToolSpec:
        """The tool as models and `GET /api/tools` are told of it."""
        if not self.hidden:
            return ToolSpec(self.name, self.description, self.input_schema)
        shown = {k: v for k, v in self.input_schema["properties"].items() if k not in self.hidden}
        return ToolSpec(self.name, self.description, {**self.input_schema, "properties": shown})

    @property
    def ledger_effect(self) -> str:
        """The effect as the ledger names it: read, store, branch, external or keyed."""
        named = {"read": "read", "plan": "store", "session": "store", "branch": "branch"}
        return named.get(self.recorded, "keyed" if self.keyed else "external")

    def serial_keys(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Keys that this call shares with those it must not run beside."""
        if self.serial is None or isinstance(self.serial, str):
            return (self.serial,) if self.serial else ()
        return self.serial(arguments)

    def canonical_arguments(self, called_as: str, arguments: Mapping[str, Any]) -> Arguments:
        """Return `arguments` under this tool's own parameter names.

        Args:
            called_as: The name the model used, perhaps an alias.
            arguments: As the model sent them. A parameter given under both its names
                stays under both, and is then refused as unknown.
        """
        known: Mapping[str, Any] = self.input_schema.get("properties") or {}
        adapter = self.adapters.get(called_as)
        given = adapter(dict(arguments)) if adapter else dict(arguments)
        renamed: Arguments = {}
        for key, value in given.items():
            proper = self.parameters.get(key, key) if key not in known else key
            renamed[key if proper in given and proper != key else proper] = value
        return renamed

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Run one call, its arguments already fitting the schema.

        Refusals made on purpose (ToolError, WorkspaceError, InvalidArgument), a value
        that does not fit its hint and running out of time become error results.

        Raises:
            Exception: whatever else the tool raises; the loop reports type and message.
        """
        clock = asyncio.timeout(self.timeout_s)
        try:
            async with clock:
                result = to_result(await self.run(dict(arguments), context))
        except TimeoutError:
            if not clock.expired():
                raise
            return ToolResult.error(f"{self.name} did not finish within {self.timeout_s:g} s and was stopped")
        except (ToolError, WorkspaceError, InvalidArgument) as error:
            return ToolResult.error(str(error))
        return await bound(result, context.result_chars, context.call or self.name, context.spill)

    def with_options(self, **changes: Any) -> "Tool":
        """Return a copy with other `effect`, `timeout_s`, `needs_approval`, `aliases` or `description`."""
        changes = {**changes, "classed": self.classed or "effect" in changes}
        if "effect" in changes:
            changes.setdefault("recorded", changes["effect"])
        copy = object.__new__(Tool)
        for key in self.__dataclass_fields__:
            object.__setattr__(copy, key, changes.get(key, getattr(self, key)))
        return copy


@overload
def tool(fn: Callable[..., Any], /) -> Tool: ...
@overload
def tool(**options: Any) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    fn: Callable[..., Any] | None = None, /, **options: Any
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a `Tool` of the async function below, with `Tool`'s options if any are given.

    Example:
        >>> @tool(effect="read")
        ... async def now() -> str:
        ...     '''Say what time it is.'''
        ...     return "noon"
        >>> now.effect
        'read'
    """
    if fn is not None:
        return Tool(fn, **options)
    return lambda function: Tool(function, **options)


def as_tool(value: "Tool | Callable[..., Any]") -> Tool:
    """Return `value` as a tool: a `Tool` as it is, a function wrapped; a plain one runs in a thread.

    Raises:
        InvalidArgument: it is neither.
    """
    if isinstance(value, Tool):
        return value
    if not callable(value) or not hasattr(value, "__name__"):
        raise InvalidArgument(f"tools has {value!r}; use functions, or Tool(…)")
    return Tool.from_sync(value)


def _function_runner(fn: Callable[..., Any], injected: frozenset[str]) -> Runner:
    # Made at the first call: a turn is offered thirty tools and calls few of them.
    binder: ArgumentBinder | None = None

    async def run(arguments: Arguments, context: ToolContext) -> object:
        nonlocal binder
        binder = binder or ArgumentBinder(fn)
        try:
            positional, named = binder.bind(arguments)
        except (TypeError, ValueError) as error:
            raise ToolError(f"wrong arguments: {error}") from error
        return await fn(*positional, **named, **dict.fromkeys(injected, context))

    return run


_OFFERED_TO_HANDLERS = (
    "branch", "session", "turn", "call", "agent", "cancel", "progress", "secret", "config",
)  # fmt: skip


def _handler_runner(handler: Callable[..., Any]) -> Runner:
    parameters = list(inspect.signature(handler).parameters.values())[1:]
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    names = {p.name for p in parameters}
    wanted = [n for n in (*_OFFERED_TO_HANDLERS, "context") if takes_all or n in names]

    async def run(arguments: Arguments, context: ToolContext) -> object:
        given = {n: context if n == "context" else getattr(context, n) for n in wanted}
        return await handler(arguments, **given)

    return run


def _given_schema(name: str, schema: Mapping[str, Any] | None, *, foreign: bool) -> dict[str, Any]:
    if schema is None:
        raise ToolDefinitionError(f"{name}: input_schema is missing; without arguments: {{'type': 'object'}}")
    if schema.get("type") != "object":
        raise ToolDefinitionError(f"{name}: input_schema must have 'type': 'object'")
    if foreign:  # found good by whoever heard it, where that can be stopped: its patterns may take minutes
        return {"properties": {}, **schema}
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(dict(schema))
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise ToolDefinitionError(f"{name}: input_schema is not a JSON Schema: {error}") from error
    return {"properties": {}, **schema}


def _origin(fn: Callable[..., Any]) -> str | None:
    inner = inspect.unwrap(fn)
    module = getattr(inner, "__module__", None)
    qualname = getattr(inner, "__qualname__", "")
    return None if not module or not qualname or "<" in qualname else f"{module}:{qualname}"
