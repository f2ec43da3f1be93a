"""An agent as plain data, and back (AG-27).

Here: the configuration form of each parameter. Not here: settings files (`bowerbird.config`), secrets,
branches.
"""

import copy
import difflib
import importlib
import inspect
import warnings
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, cast

from bowerbird.agent.limits import Limits
from bowerbird.agent.options import AgentOptions
from bowerbird.agent.policy import Policy
from bowerbird.core.errors import InvalidArgument, NotSerializable
from bowerbird.tools.tool import DEFAULT_TIMEOUT_S, Tool

if TYPE_CHECKING:
    from bowerbird.models.protocol import Model

_OPTIONS: dict[str, Any] = {
    "timeout_s": DEFAULT_TIMEOUT_S, "needs_approval": None, "aliases": (),
}  # fmt: skip


def parameter_names() -> tuple[str, ...]:
    """Return the names of all parameters but the branch, in order."""
    return tuple(f.name for f in fields(AgentOptions) if f.init)


def options_to_config(options: AgentOptions) -> dict[str, Any]:
    """Return JSON data from which `options_from_config` makes equal options.

    Raises:
        NotSerializable: a tool or type cannot be imported by a name (say a lambda); it is named.
    """
    config = {name: getattr(options, name) for name in parameter_names()}
    config["workdir"] = None if options.workdir is None else str(options.workdir)
    config["data_dir"] = None if options.data_dir is None else str(options.data_dir)
    config["skills"] = None if options.skills is None else str(options.skills)
    config["tools"] = None if options.tools is None else [_tool_to_config(t) for t in options.own_tools]
    if options.data_model is not None:
        config["data_model"] = importable_name(options.data_model, f"data_model {options.data_model!r}")
    config["language_model"] = _model_to_config(options.language_model)
    if isinstance(options.limits, Limits):
        config["limits"] = asdict(options.limits)
    if isinstance(options.permissions, Policy):
        config["permissions"] = options.permissions.to_data()
    return cast("dict[str, Any]", _plain(config))


def options_from_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments for `Agent`; `config` is not modified.

    Raises:
        InvalidArgument: a key is unknown, or a name cannot be imported.
    """
    known = parameter_names()
    for key in config:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
            raise InvalidArgument(f"config has the unknown key {key!r}{hint}")
    arguments = copy.deepcopy(dict(config))
    if arguments.get("tools") is not None:
        arguments["tools"] = [_tool_from_config(entry) for entry in arguments["tools"]]
    if isinstance(arguments.get("data_model"), str):
        arguments["data_model"] = _imported(arguments["data_model"])
    return arguments


def _model_to_config(model: "str | Model | None") -> str | None:
    if model is None or isinstance(model, str):
        return model
    name = model.info.name
    warnings.warn(
        f"language_model is a Model object: the configuration has its name {name!r} only, not its key, "
        f"address or other settings; language_model={name!r} takes those from settings",
        stacklevel=4,
    )
    return name


def importable_name(value: Any, what: str) -> str:
    """Return `module:qualname` of `value`; raises NotSerializable, naming `what`, when there is none."""
    inner = inspect.unwrap(value)
    module, qualname = getattr(inner, "__module__", None), getattr(inner, "__qualname__", "")
    if not module or not qualname or "<" in qualname:
        raise NotSerializable(f"{what} has no importable name; define it at the top of a module")
    return f"{module}:{qualname}"


def _tool_to_config(tool: Tool) -> str | dict[str, Any]:
    if tool.origin is None:
        raise NotSerializable(
            f"tool {tool.name!r} is a lambda or a local function; define it at the top of a module"
        )
    found = _imported(tool.origin)
    if found is tool:
        return tool.origin
    if isinstance(found, Tool):
        raise NotSerializable(
            f"tool {tool.name!r}: {tool.origin} is another tool; give this one its own name"
        )
    own = {name: getattr(tool, name) for name, usual in _OPTIONS.items() if getattr(tool, name) != usual}
    if tool.classed:
        own["effect"] = tool.effect
    if tool.name != getattr(found, "__name__", tool.name):
        own["name"] = tool.name
    made = _made(found, own)
    if (made.description, made.input_schema) != (tool.description, tool.input_schema):
        raise NotSerializable(
            f"tool {tool.name!r} differs from what {tool.origin} makes; name it in a module"
        )
    return {"function": tool.origin, **own} if own else tool.origin


def _tool_from_config(entry: Any) -> Tool:
    if isinstance(entry, str):
        return _made(_imported(entry), {})
    if not isinstance(entry, Mapping) or "function" not in entry:
        raise InvalidArgument(f"config names the tool {entry!r}; use 'module:name' or {{'function': …}}")
    own = dict(cast("Mapping[str, Any]", entry))
    function = str(own.pop("function"))
    for key in own:
        if key not in (*_OPTIONS, "name", "effect"):
            raise InvalidArgument(f"config of the tool {function} has the unknown key {key!r}")
    if "aliases" in own:
        own["aliases"] = tuple(own["aliases"])
    return _made(_imported(function), own)


def _made(found: Any, own: Mapping[str, Any]) -> Tool:
    if isinstance(found, Tool):
        return found.with_options(**own) if own else found
    return Tool(found, **own) if inspect.iscoroutinefunction(found) else Tool.from_sync(found, **own)


def _imported(name: str) -> Any:
    module, _, qualname = name.partition(":")
    try:
        value: Any = importlib.import_module(module)
        for part in qualname.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidArgument(f"{name!r} cannot be imported: {error}") from error
    return value


def _plain(value: Any) -> Any:
    """Return a copy of `value` as JSON has it: lists for tuples, plain dicts."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in cast("list[Any]", value)]
    return copy.deepcopy(value)
