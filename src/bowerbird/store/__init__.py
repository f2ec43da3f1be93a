"""What Bowerbird remembers: SQL tables, migrations, the journal with group commit, blobs.

Lives here: the schema (SE §2), its migrations, the one writer of a process, and the small
functions that read and write each table inside a transaction they are given.
Must not be here: decisions about turns (`sessions`), models, branches, or anything a person sees.

Example:
    >>> from bowerbird.store import Store
    >>> Store.__name__
    'Store'
"""

from typing import TYPE_CHECKING

from bowerbird.core.lazy import lazy

if TYPE_CHECKING:
    from bowerbird.store.journal.blobs import Blobs
    from bowerbird.store.journal.journal import Append, NewRecord, Record
    from bowerbird.store.options import StoreOptions
    from bowerbird.store.store import Store

__all__ = ("Append", "Blobs", "NewRecord", "Record", "Store", "StoreOptions")

__getattr__, __dir__ = lazy(
    __name__,
    {
        "journal.blobs": "Blobs",
        "journal.journal": "Append NewRecord Record",
        "options": "StoreOptions",
        "store": "Store",
    },
)
