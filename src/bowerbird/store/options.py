"""How a store behaves, and how it is read: what its two kinds of database have in common.

Here: the options of settings, the protocol of readers. Not here: the store (`store.py`), opening one
(`opening.py`).
"""

from collections.abc import Callable
from typing import Literal, Protocol, TypeVar

import msgspec
from sqlalchemy import Connection

T = TypeVar("T")


class StoreOptions(msgspec.Struct, frozen=True):
    """How the store behaves; names as in settings.

    Attributes:
        durability: `full` flushes important batches; `normal` leaves flushing to checkpoints.
        busy_timeout_s: seconds to wait for another process's lock, then `StoreBusy`.
        min_free_mb: below this much free disk, new work is refused with `StorageFull`.
        adopt: accept a database that holds foreign tables.
        inline_max_kb: larger record bodies go to the blobs.
    """

    durability: Literal["full", "normal"] = "full"
    busy_timeout_s: float = 30.0
    min_free_mb: int = 256
    adopt: bool = False
    inline_max_kb: int = 256


class Reads(Protocol):
    """Runs queries, each on one consistent view of the database."""

    async def run(self, query: Callable[[Connection], T]) -> T:
        """Return what `query` returns."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
