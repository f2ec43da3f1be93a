"""Python in Monty: one worker, one run, one interpreter per branch.

Must not be here: CPython in the sandbox (`cpython`, `persistent_python`).
"""
