"""Protocols other programs speak: the client of MCP servers (PT).

What lives here: translation between a protocol and our tools or sessions. What does not: state of its
own, permission rules, the HTTP server.
"""
