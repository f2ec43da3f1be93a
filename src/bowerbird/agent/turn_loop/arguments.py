"""From a call as the model wrote it to a call that may run, or the reason why not (AG-48, MO-26, MO-27).

Here: which tool is meant, fitting and checking its arguments. Not here: permission, running,
decoding of argument text (adapters).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.core.events import ApprovalAnswer
from bowerbird.core.messages import ToolUseBlock
from bowerbird.models.answers.bounded_fitting import fit_within
from bowerbird.models.answers.fitting import expected_parameters, fit_to_schema

if TYPE_CHECKING:
    from bowerbird.tools import Tool, Toolset

_MOST_REASONS = 8


class Prepared(msgspec.Struct, frozen=True):
    """A call with its tool and fitted arguments; `problem` says why it is not run."""

    call: ToolUseBlock
    tool: "Tool | None" = None
    arguments: Mapping[str, Any] | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        """The canonical name if the tool is known, else what the model called it."""
        return self.tool.name if self.tool else self.call.name


def resolve(call: ToolUseBlock, tools: "Toolset", unreadable: str | None) -> Prepared:
    """Return `call` with the tool that is meant and its arguments as the model wrote them.

    Args:
        call: as in the assistant message.
        tools: everything this run has, offered now or not.
        unreadable: why its arguments could not be decoded, from the adapter.
    """
    found = tools.get(call.name)
    if found is None:
        absent = tools.why_absent(call.name)
        if absent is not None:
            return Prepared(call, problem=f"{call.name} is not available: {absent}")
        near = tools.nearest(call.name, 3)
        hint = f"; nearest: {', '.join(near)}" if near else "; this run has no tools"
        return Prepared(call, problem=f"no tool is named {call.name!r}{hint}")
    if unreadable is not None:
        return Prepared(call, found, problem=f"{found.name} was not run: {unreadable}. {_expected(found)}")
    resolved = tools.resolve(call.name, call.input)
    return Prepared(call, *(resolved or (found, call.input)))


def edited_arguments(call: str, arguments: Mapping[str, Any], said: ApprovalAnswer | None) -> dict[str, Any]:
    """Return the arguments of a call with the command that a person put in place of the model's (UI-71)."""
    own = said.calls.get(call) if said is not None else None
    return dict(arguments) if own is None or own.command is None else {**arguments, "command": own.command}


def edited(prepared: Prepared, said: ApprovalAnswer | None) -> Prepared:
    """Return a prepared call as a person's answer has it run."""
    call, arguments = prepared.call.id, prepared.arguments or {}
    now = edited_arguments(call, arguments, said)
    return prepared if now == arguments else msgspec.structs.replace(prepared, arguments=now)


async def prepare(resolved: Prepared) -> Prepared:
    """Return a resolved call with its arguments fitted, or the reason why it cannot run.

    A schema that another program gave is evaluated where it can be stopped: it must hold up nobody else.
    """
    call, found, arguments = resolved.call, resolved.tool, resolved.arguments or {}
    if found is None or resolved.problem is not None:
        return resolved
    if found.foreign:
        fitted = await fit_within(arguments, found.input_schema)
    else:
        fitted = fit_to_schema(arguments, found.input_schema)
    if fitted.problems:
        why = "; ".join(fitted.problems[:_MOST_REASONS])
        return Prepared(call, found, fitted.value, f"{found.name} was not run: {why}. {_expected(found)}")
    return Prepared(call, found, fitted.value)


def _expected(tool: "Tool") -> str:
    return f"Parameters: {expected_parameters(tool.spec.input_schema)}"
