"""Python's collector of cycles, out of the way while a process starts (D-14).

Here: how many new objects it waits for. Not here: when a process has started, which its commands know.

What is imported makes some 300,000 objects that live as long as the process. To look through them again and
again was a third of a one-turn run's time.
"""

import gc

STARTING_OBJECTS = 400_000
"""New objects before the collector looks for cycles among them; Python's own number is 700."""
YOUNG_OBJECTS = 50_000
"""The same from then on: a look at so many takes some 10 ms."""
OLDER_LOOKS = 3
"""Looks at a generation before the next older one is looked at; Python's own number is 10."""


def starting() -> None:
    """Leave a process that starts alone. A command that ends soon never says that it has started."""
    gc.set_threshold(STARTING_OBJECTS)


def started() -> None:
    """Collect from now on, and never among what is there: it lives as long as the process.

    The oldest generation is looked through after few looks at the younger ones: a server that makes few new
    objects would never come to it, and what a failed turn held would stay.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, OLDER_LOOKS, OLDER_LOOKS)
