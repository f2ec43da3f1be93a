"""Names, types and help of the commands' options.

Must not be here: what a command does.
"""
