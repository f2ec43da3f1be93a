"""The embedded model: an agent that works without a key, an account or a network (MO-37 … MO-40).

Lives here: finding and fetching the weights, the engine that evaluates them, the grammar that
makes each step of a small model a valid call, and the adapter that is a `Model`.
Must not be here: tools, settings files, any download while a turn runs.

Importing this package loads neither the engine nor the weights.
"""

from typing import TYPE_CHECKING

from bowerbird.core.lazy import lazy

if TYPE_CHECKING:
    from bowerbird.models.local.adapter import LocalModel
    from bowerbird.models.local.fetch import FetchProgress, fetch_weights
    from bowerbird.models.local.opening import open_local
    from bowerbird.models.local.weights import SMALL, STANDARD, Weights, find_weights

__all__ = (
    "SMALL", "STANDARD", "FetchProgress", "LocalModel", "Weights", "fetch_weights", "find_weights",
    "open_local",
)  # fmt: skip

__getattr__, __dir__ = lazy(
    __name__,
    {
        "adapter": "LocalModel",
        "fetch": "fetch_weights FetchProgress",
        "opening": "open_local",
        "weights": "find_weights SMALL STANDARD Weights",
    },
)
