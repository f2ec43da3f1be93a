"""Bring a database to the newest schema, or refuse it, inside one transaction (SE-6, CF-14).

Here: which revision a database has, what follows from it, and running Alembic. Not here:
the revisions themselves, opening files, PostgreSQL or SQLite peculiarities.

A new database gets today's tables at once: that they are what the revisions make is a test
(`tests/store/test_opening.py`), and Alembic is for databases that were made before.
"""

from sqlalchemy import Column, Connection, MetaData, String, Table, inspect, text

from bowerbird.core.errors import ConfigError, StoreTooNew
from bowerbird.core.timestamps import now_iso
from bowerbird.store.migrations import HEAD, PLACE, REVISIONS
from bowerbird.store.sql.tables import metadata

_VERSION_TABLE = "alembic_version"


def revision_of(connection: Connection) -> str | None:
    """Return the schema revision of the database, None when it has none."""
    if not inspect(connection).has_table(_VERSION_TABLE):
        return None
    row = connection.execute(text(f"SELECT version_num FROM {_VERSION_TABLE}")).first()
    return None if row is None else str(row[0])


def is_current(connection: Connection) -> bool:
    """Whether nothing needs to be done; imports nothing heavy."""
    return revision_of(connection) == HEAD


def upgrade(connection: Connection, *, adopt: bool = False) -> None:
    """Run every missing migration in the transaction that `connection` is in.

    Args:
        connection: open and inside a transaction; the caller commits.
        adopt: accept a database that holds foreign tables (`store.adopt`).

    Raises:
        StoreTooNew: a newer program wrote this database; nothing was changed.
        ConfigError: the database holds tables of something else.

    Example:
        >>> from sqlalchemy import create_engine
        >>> with create_engine("sqlite://").begin() as connection:
        ...     upgrade(connection)
        ...     revision_of(connection) == HEAD
        True
    """
    revision = revision_of(connection)
    if revision == HEAD:
        return
    is_new = not inspect(connection).has_table(_VERSION_TABLE)
    if revision is None:
        _refuse_foreign(connection, adopt)
    elif revision not in REVISIONS:
        raise StoreTooNew(
            f"the database has revision {revision}, this program knows up to {HEAD}; nothing was changed. "
            "Start the newer program, or point store.url at another database"
        )
    if is_new:
        _create(connection)
    else:
        run_revisions(connection)
    if revision is None:
        connection.execute(metadata.tables["meta"].insert(), {"key": "created_at", "value": now_iso()})


def _refuse_foreign(connection: Connection, adopt: bool) -> None:
    names = sorted(set(inspect(connection).get_table_names()) - {_VERSION_TABLE})
    if "meta" in names and "sessions" in names:
        raise ConfigError(
            f"store.url: the database holds Bowerbird's tables, but not {_VERSION_TABLE}, which says "
            "of which version they are; nothing was changed. Restore a backup (`bowerbird restore DIR`)"
        )
    if names and "meta" not in names and not adopt:
        shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        raise ConfigError(
            f"store.url: the database holds {len(names)} tables that are not Bowerbird's ({shown}); "
            "name an empty database, or set store.adopt: true"
        )


def _create(connection: Connection) -> None:
    metadata.create_all(connection, checkfirst=False)  # a foreign table of the same name is an error
    name = Column("version_num", String(32), primary_key=True)
    version = Table(_VERSION_TABLE, MetaData(naming_convention={"pk": f"{_VERSION_TABLE}_pkc"}), name)
    version.create(connection)
    connection.execute(version.insert(), {"version_num": HEAD})


def run_revisions(connection: Connection) -> None:
    """Run every missing revision; a database without any gets all of them."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(PLACE))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
