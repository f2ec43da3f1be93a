"""The one registry of tools, for both transports: who is offered what, arguments, faults (PT-2, PT-7, PT-11).

Here: finding and calling a tool. Not here: the tools, the SDK's types (`server.py`).
"""

import difflib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema_rs

from bowerbird.core.errors import BowerbirdError
from bowerbird.core.ids import new_id
from bowerbird.protocols.mcp_server import results
from bowerbird.protocols.mcp_server.agent_tools import agent_tools
from bowerbird.protocols.mcp_server.branch_tools import branch_tools
from bowerbird.protocols.mcp_server.ground import McpCaller, McpGround
from bowerbird.protocols.mcp_server.session_tools import session_tools
from bowerbird.protocols.mcp_server.tool import Call, McpTool, Result

LONGEST_REASON = 300

_log = logging.getLogger(__name__)


class BadCall(Exception):
    """The request itself is wrong: no such tool, or arguments that do not fit."""


class Fault(Exception):
    """A defect of ours; the text names the lines of the log and nothing else."""


class McpTools:
    """Every tool of the server.

    Args:
        ground: what they use.
    """

    def __init__(self, ground: McpGround) -> None:
        self._ground = ground
        every = (*agent_tools(ground), *session_tools(ground), *branch_tools(ground))
        self._tools = {tool.name: tool for tool in every}
        self._checks = {tool.name: jsonschema_rs.validator_for(tool.parameters) for tool in every}

    def offered(self, caller: McpCaller) -> Sequence[McpTool]:
        """Return the tools that this caller may call."""
        rules = self._ground.rules()
        return [
            tool
            for tool in self._tools.values()
            if caller.may(tool.needs) and rules.exposes(tool.name) and (rules.allow_land or not tool.lands)
        ]

    def parameters(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments, None for an unknown one."""
        found = self._tools.get(name)
        return None if found is None else found.parameters

    async def call(self, name: str, call: Call) -> Result:
        """Call a tool and return its result, also where it failed.

        Raises:
            BadCall: there is no such tool for this caller, or its arguments do not fit. Fault: a defect.
        """
        offered = {tool.name: tool for tool in self.offered(call.caller)}
        tool = offered.get(name)
        if tool is None:
            near = difflib.get_close_matches(name[:200], offered, n=3)
            hint = f"; nearest: {', '.join(near)}" if near else ""
            raise BadCall(f"Unknown tool: {name[:200]}{hint}")
        problem = self._problem(name, call.arguments)
        if problem is not None:
            raise BadCall(f"{name}: {problem}")
        try:
            return await tool.run(call)
        except BowerbirdError as error:
            words = results.words_of(error, self._ground.redact)
            if words is None:
                raise self._fault(name, error) from error
            return results.failure(words)
        except Exception as error:  # a defect: its text is for the log
            raise self._fault(name, error) from error

    def _problem(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """Return why arguments do not fit, None where they do."""
        for error in self._checks[name].iter_errors(dict(arguments)):
            where = ".".join(str(part) for part in error.instance_path)
            # Long values are not said back.
            reason = str(error.message)[-LONGEST_REASON:]
            return f"{where}: {reason}" if where else reason
        return None

    def _fault(self, name: str, error: Exception) -> Fault:
        reference = new_id("ref")
        _log.error("MCP tool %s failed [reference %s]", name, reference, exc_info=error)
        return Fault(f"something went wrong in the server; its log has the details under {reference}")
