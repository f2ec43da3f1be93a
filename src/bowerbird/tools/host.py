"""The tool `host_execute`: a command of the host, through a bridge of the gateway (TO-46).

Here: what a model asks for and is shown. Not here: the gateway and its client (`gateway/`), which bridges are
configured, who is asked (`agent/permissions.py`).
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from bowerbird.core.errors import ToolError
from bowerbird.tools.limits import cut_middle
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool

OUTPUT_CHARS = 15_000
LONGEST_S = 600.0


class Answered(Protocol):
    """How a command ended."""

    @property
    def stdout(self) -> str: ...
    @property
    def stderr(self) -> str: ...
    @property
    def returncode(self) -> int: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def timed_out(self) -> bool: ...


class BridgeClient(Protocol):
    """What the tool needs of a bridge."""

    async def execute(self, cmd: Sequence[str], timeout_s: float) -> Answered:
        """Run a command; raises ToolError."""
        ...


class HostBridges(msgspec.Struct, frozen=True):
    """The bridges of a gateway.

    Attributes:
        usable: those that agents may use, by name. closed: names of those that they may not.
        default_timeout_s: of a call that names none.
    """

    usable: Mapping[str, BridgeClient]
    closed: frozenset[str] = frozenset()
    default_timeout_s: float = 30.0


def host_tools(bridges: HostBridges) -> list[Tool]:
    """Return `host_execute` over these bridges."""
    known = ", ".join(sorted(bridges.usable)) or "none"

    async def host_execute(bridge: str, command: str, timeout: float = 0) -> ToolResult:
        """Run one allowed command on the host, outside of the sandbox and of the branch.

        What it does takes effect at once and cannot be taken back. Only commands that the bridge allows run;
        the line is split into words, and nothing of a shell (pipes, variables, globs) is interpreted.

        Args:
            bridge: Name of the bridge.
            command: The command and its arguments.
            timeout: Seconds it may run, at most 600; 0 is the default.
        """
        if bridge in bridges.closed:
            raise ToolError(f"bridge {bridge!r} is not for agents; bridges: {known}")
        client = bridges.usable.get(bridge)
        if client is None:
            raise ToolError(f"there is no bridge {bridge!r}; bridges: {known}")
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ToolError(f"the command cannot be split into words: {error}") from None
        if not words:
            raise ToolError("the command is empty")
        wanted = timeout if timeout > 0 else bridges.default_timeout_s
        return shown(await client.execute(words, min(wanted, LONGEST_S)))

    return [Tool(host_execute, effect="outside", timeout_s=LONGEST_S + 30)]


def shown(answer: Answered) -> ToolResult:
    """Return what a model sees of an answer."""
    data = {"exit_code": answer.returncode, "stdout": answer.stdout, "stderr": answer.stderr}
    out, err = answer.stdout.strip(), answer.stderr.strip()
    if answer.returncode == 0 and not answer.timed_out:
        text = cut_middle(out or "(no output)", OUTPUT_CHARS)
        return ToolResult(text, data=data, truncated=answer.truncated or text != (out or text), tainted=True)
    how = (
        "was killed when its time was over"
        if answer.timed_out
        else f"ended with exit code {answer.returncode}"
    )
    parts = [f"the command {how}", err, f"stdout:\n{out}" if out else ""]
    text = cut_middle("\n".join(part for part in parts if part), OUTPUT_CHARS)
    return ToolResult(
        text, data=data | {"error": text}, is_error=True, truncated=answer.truncated, tainted=True
    )
