"""Bowerbird as an MCP server: agents, sessions and branches as tools, resources and prompts (PT-1 … PT-16).

Not here: who may come in over HTTP (`server/access`), the agents themselves (`providers`), the client of
other MCP servers (`mcp_client`). Nothing of it is imported before somebody speaks MCP.
"""
