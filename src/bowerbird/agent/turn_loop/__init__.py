"""The loop of a turn: model, tools, model …, until there is an answer or a limit.

Must not be here: persistence, settings, what a program hands in (`agent`, `library_run`).
"""
