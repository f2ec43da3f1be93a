"""Subagents and tournaments: calls, records, budgets, checks, ranking.

Must not be here: durable children (`bowerbird.sessions.subagents`), the tools (`bowerbird.tools.together`).
"""
