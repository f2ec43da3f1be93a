"""Subagents as durable sessions of their own.

Must not be here: what a call of the tool means (`bowerbird.subagents`).
"""
