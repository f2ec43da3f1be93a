"""Options and arguments of groups of commands: their names, types and help; `cli/parser.py` has the others.

Must not be here: what a command does.
"""
