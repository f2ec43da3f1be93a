"""How long a read waits for a database server that is away (SE-58).

Here: the value, for whoever asks for others. Not here: waiting (`postgres.py`).

A turn goes on when the server is back. Somebody who looks at a page is told to try again.
"""

import math
from contextvars import ContextVar

LOOKING_S = 5.0

READ_PATIENCE_S: ContextVar[float] = ContextVar("READ_PATIENCE_S", default=math.inf)
