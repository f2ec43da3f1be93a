"""The database URL as settings give it, and as the store takes it (CF-43). Pure."""

import re
from pathlib import Path

ASYNC_DRIVERS = ("sqlite", "postgresql")
_SQLITE = re.compile(r"sqlite(\+[a-z0-9_]+)?://(?P<path>/[^?]*)?(?P<query>\?.*)?", re.DOTALL)


def driver_of(url: str) -> str:
    """Return the kind of database: `sqlite`, `postgresql`, or whatever else stands there.

    Example:
        >>> driver_of("postgres://db/x")
        'postgresql'
    """
    name = url.partition(":")[0].partition("+")[0].lower()
    return "postgresql" if name == "postgres" else name


def database_url(url: str, data_dir: str) -> str:
    """Return `url` with its asynchronous driver, a relative SQLite path starting at `data_dir`.

    Example:
        >>> database_url("sqlite+aiosqlite:///./agent.db", "/var/bower")
        'sqlite+aiosqlite:////var/bower/agent.db'
    """
    if driver_of(url) == "postgresql":
        return re.sub(r"^[^:]*", "postgresql+asyncpg", url, count=1)
    match = _SQLITE.fullmatch(url)
    if match is None:
        return url
    name = (match["path"] or "")[1:]
    query = match["query"] or ""
    if name in ("", ":memory:") or name.startswith("file:"):
        return f"sqlite+aiosqlite:///{name}{query}"
    return f"sqlite+aiosqlite:///{Path(data_dir, name).expanduser()}{query}"


def database_file(url: str) -> Path | None:
    """Return the file of an absolute SQLite URL, None for another database or memory.

    Example:
        >>> database_file("sqlite+aiosqlite:////var/bower/agent.db")
        PosixPath('/var/bower/agent.db')
    """
    match = _SQLITE.fullmatch(url)
    name = (match["path"] or "")[1:] if match else ""
    return Path(name) if name.startswith("/") else None
