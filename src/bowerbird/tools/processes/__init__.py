"""The tools that run commands and Python, and how a shell line is read.

Must not be here: sandboxes (`bowerbird.sandbox`).
"""
