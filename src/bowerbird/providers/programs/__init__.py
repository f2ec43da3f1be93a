"""Other vendors' programs as agents: run in a branch's sandbox, over ACP or headless, keys swapped outside.

Here: what each program is called with, reading what it prints, running and ending it, its private home, the
relay of credentials. Not here: which agents there are (`catalogue`), sessions and memory of theirs.
"""
