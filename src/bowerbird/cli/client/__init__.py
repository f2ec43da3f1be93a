"""Whom a command works with: this machine's own records, or a server over REST and its socket (UI-85).

Lives here: one protocol and its two implementations. Must not be here: what commands ask, draw or print.
"""
