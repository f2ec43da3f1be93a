"""How long tests wait for what should come: limits are for hangs, never part of what is proven.

`patience(3)` allows for what takes three seconds on an idle machine; a machine that is slower than five times
that, say an emulated one, sets BOWERBIRD_TEST_PATIENCE to a factor.
"""

import os

_SPARE = 5.0
_FACTOR = float(os.environ.get("BOWERBIRD_TEST_PATIENCE", "1"))


def patience(idle_s: float) -> float:
    """Return the seconds to wait for what takes `idle_s` on an idle machine."""
    return idle_s * _SPARE * _FACTOR


HANG_S = patience(12)  # for whatever takes seconds at most
