"""Alembic migrations of the store, one file per revision in `versions/`.

Lives here: the environment and the revisions; a revision is never edited after its release.
Must not be here: code that runs them (`store/migrate.py`) or imports of `store/sql/tables.py`
(a revision describes its own moment, the tables module describes today).
"""

from pathlib import Path

PLACE = Path(__file__).parent
REVISIONS = frozenset(path.name.split("_", 1)[0] for path in PLACE.glob("versions/[0-9]*_*.py"))
HEAD = max(REVISIONS)
