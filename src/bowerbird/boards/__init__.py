"""Task boards and lists: what they may hold, their changes, their readable copies.

Must not be here: the tools (`bowerbird.tools.together`), who may see a board (`bowerbird.sessions`).
"""
