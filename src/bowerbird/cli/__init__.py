"""The `bowerbird` command: terminal in, session service underneath, terminal out.

Lives here: command line, prompt, drawing, questions to the person, exit codes. Must not be
here: what a turn does, where anything is stored, how a branch lands; `bowerbird.app` gives
these. Every heavy import is inside the command that needs it: `bowerbird --help` loads
neither the database nor a model.
"""
