"""What code settles for a small model: the line that is asked for, the row that is added, the rule applied.

Here: answers and changes that follow from a task's words and a file's text, purely; each says None where they
do not. Not here: when they are asked for (`looking.py`, `changing.py`).
"""
