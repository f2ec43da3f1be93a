"""A line that a person types.

Here: asking for it where they look. Not here: which question, whether somebody sits there.
"""

import sys


def typed(question: str) -> str:
    """Return the line that answers; blocks.

    Raises:
        EOFError: the input has ended.
    """
    if sys.stdout.isatty():
        return input(question)  # as its prompt: editing the line keeps it
    # `input` would ask in the file or the pipe that the output goes to, and wait unseen.
    sys.stderr.write(question)
    sys.stderr.flush()
    return input()
