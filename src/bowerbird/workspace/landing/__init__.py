"""Bringing a branch's changes into the user's directory and back: plan, apply, record, undo.

Must not be here: what changed (`compare`), how paths are marked (`marks`), when to land (`policy`).
"""
