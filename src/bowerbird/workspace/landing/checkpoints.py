"""Places of a landing at which a caller may look, or end the process.

Here: the type of what is called there. Not here: where they are (`apply.py`).
"""

from collections.abc import Callable

Checkpoint = Callable[[str], None]


def no_checkpoint(_: str) -> None:
    """The checkpoint of ordinary landings: nothing."""
