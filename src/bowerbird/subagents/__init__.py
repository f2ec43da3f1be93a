"""Subagents and tournaments: what a call may ask, their records, shared budgets, checks and ranking.

Must not be here: durable children (`bowerbird.sessions.subagents`), the tools (`bowerbird.tools.together`).
"""
