"""How long a read waits for a database server that is away (SE-58).

Here: the value, for whoever asks for others. Not here: waiting (`postgres.py`).

A turn goes on when the server is back. Somebody who looks at a page is told to try again.
"""

import math
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

LOOKING_S = 5.0

READ_PATIENCE_S: ContextVar[float] = ContextVar("READ_PATIENCE_S", default=math.inf)


@contextmanager
def only_looking() -> Generator[None]:
    """Have the reads within wait no longer than those of a page; what begins in it must end in it."""
    before = READ_PATIENCE_S.set(LOOKING_S)
    try:
        yield
    finally:
        READ_PATIENCE_S.reset(before)
