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


def starting() -> None:
    """Leave a process that starts alone. A command that ends soon never says that it has started."""
    gc.set_threshold(STARTING_OBJECTS)


def started() -> None:
    """Collect from now on, and never among what is there: it lives as long as the process."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
