"""The client of MCP servers: their tools become tools of a turn (PT-17 … PT-24).

What lives here: starting and reaching servers, calls, results, the server's questions. What does not:
settings files, permission, the list of a turn's tools (`agent/` and `app/` have these), the MCP server
that Bowerbird itself is.

Importing this package is cheap: the SDK comes with the first turn that has servers.
"""

from bowerbird.protocols.mcp_client.client import McpClient
from bowerbird.protocols.mcp_client.spec import Approval, ServerSpec, Transport

__all__ = ("Approval", "McpClient", "ServerSpec", "Transport")
