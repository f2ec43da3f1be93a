"""Protocols that other programs speak: at present the client of MCP servers.

What lives here: translation between a protocol and our tools or sessions. What does not: state of its
own, permission rules, the HTTP server.
"""
