"""What Bowerbird remembers: SQL tables, migrations, the journal with group commit, blobs.

Lives here: the schema (SE §2), its migrations, the one writer of a process, and the small
functions that read and write each table inside a transaction they are given.
Must not be here: decisions about turns (`sessions`), models, branches, or anything a person sees.

Example:
    >>> from bowerbird.store import Store
    >>> Store.__name__
    'Store'
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bowerbird.store.journal.blobs import Blobs
    from bowerbird.store.journal.journal import Append, NewRecord, Record
    from bowerbird.store.store import Store, StoreOptions

__all__ = ("Append", "Blobs", "NewRecord", "Record", "Store", "StoreOptions")

_HOMES = {
    "Append": "journal.journal",
    "Blobs": "journal.blobs",
    "NewRecord": "journal.journal",
    "Record": "journal.journal",
    "Store": "store",
    "StoreOptions": "store",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: SQLAlchemy costs more than `bowerbird --help` may."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
