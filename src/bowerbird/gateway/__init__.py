"""The host gateway: a few commands of the host for agents that cannot reach it, each behind a token.

Lives here: which commands a bridge allows, running them, the server and its client (AS-48 … AS-57). Must not
be here: sessions, tools (`tools/host.py` is the agent's side), settings files.
"""
