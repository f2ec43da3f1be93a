"""What loading the settings of a running server anew did (CF-13).

Here: that value. Not here: the load (`app/reloading.py`).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What loading the settings anew did.

    Attributes:
        applied: keys that changed and apply from the next turn or connection.
        restart: keys that changed and need a restart. errors: why nothing was changed. warnings: of the load.
    """

    applied: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
