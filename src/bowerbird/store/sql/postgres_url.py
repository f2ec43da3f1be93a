"""The URL of a PostgreSQL database: read, named for people, its numbers as asyncpg takes them.

Here: what can be known of the URL by itself. Not here: connections (`store/postgres.py`, `notify.py`).
"""

from sqlalchemy.engine import URL, make_url

from bowerbird.core.errors import ConfigError

SECONDS = frozenset({"timeout", "command_timeout"})
NUMBERS = (
    "statement_cache_size", "prepared_statement_cache_size", "max_cached_statement_lifetime",
    "max_cacheable_statement_size", *sorted(SECONDS),
)  # fmt: skip


def postgres_url(url: str) -> URL:
    """Return the URL for asyncpg; raises ConfigError for one that cannot be used.

    Example:
        >>> postgres_url("postgresql://me:secret@db/agent?sslmode=require").render_as_string()
        'postgresql+asyncpg://me:***@db/agent?ssl=require'
    """
    try:
        parsed = make_url(url)
    except Exception as error:  # SQLAlchemy's own base class, and ValueError for ports
        raise ConfigError("store.url: not a database URL (sqlite or postgresql)") from error
    if parsed.drivername not in ("postgresql", "postgresql+asyncpg", "postgres"):
        raise ConfigError(
            f"store.url: {parsed.drivername} is not supported (sqlite, or postgresql with asyncpg)"
        )
    query = dict(parsed.query)
    mode = query.pop("sslmode", None)
    if mode is not None:
        query["ssl"] = mode
    return parsed.set(drivername="postgresql+asyncpg", query=query)


def name_of(url: URL) -> str:
    """Return the database as people know it: host and name, without user and password."""
    host = url.host or str(url.query.get("host", "")) or "localhost"
    port = f":{url.port}" if url.port else ""
    return f"postgresql {host}{port}/{url.database or ''}"


def number(name: str, value: object) -> float:
    """Return a number of the URL's query, which asyncpg takes as a number only; raises ConfigError."""
    try:
        return float(str(value)) if name in SECONDS else int(str(value))
    except ValueError as error:
        raise ConfigError(f"store.url: {name} must be a number (got {value!r})") from error
