"""The HTTP and WebSocket server over the session service.

What lives here: routes, wire forms, authentication, limits, the socket. What does not: sessions and
branches themselves, settings (`app/` binds them), any other door.
"""
