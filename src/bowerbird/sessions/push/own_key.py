"""Who sends: one key for each database, so that browsers know their server again (UI-95).

Here: the private key in the store. Not here: what is signed with it (`encryption.py`).
"""

from sqlalchemy import Connection

from bowerbird.sessions.push.encryption import new_key
from bowerbird.store.rows.meta import get_meta, set_meta

KEY = "push.private_key"


def own_key(connection: Connection) -> str:
    """Return the private key of this database, made when there is none."""
    found = get_meta(connection, KEY)
    if found is None:
        found = new_key()
        set_meta(connection, KEY, found)
    return found
