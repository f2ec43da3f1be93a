"""Provider agents: other vendors' agents, each run on a branch, with one registry over them.

Lives here: the catalogue, probes, the adapters (APIs, programs over ACP or headless, local), the relay of
credentials, reading what agents print, and their sessions. Must not be here: sessions and turns of
Bowerbird's own agent, doors (`protocols/`, `server/`, `cli/` ask the registry).
"""
