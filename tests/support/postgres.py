"""A real PostgreSQL server for tests: made, started and stopped by them; a database per test."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
from sqlalchemy import make_url
from support.patience import HANG_S

USER = "bower"
TEMPLATE = "bower_template"
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")


def binary(name: str) -> Path | None:
    """Where a program of PostgreSQL is; Debian keeps them out of the PATH."""
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    places = [place for pattern in _PLACES for place in sorted(Path("/").glob(pattern[1:]), reverse=True)]
    return next((place / name for place in places if (place / name).exists()), None)


class PostgresServer:
    """A server on a socket and a loopback port of its own; nothing it writes is flushed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._data = directory / "data"
        self._account = _account()
        if self._account is not None:
            os.chown(directory, self._account.pw_uid, self._account.pw_gid)
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0
        self._free: list[str] = []
        self._run(
            "initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"
        )

    def start(self) -> None:
        """Start the server and wait until it answers."""
        server = binary("postgres")
        assert server is not None
        log = (self._directory / "server.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [server, "-D", self._data, "-p", str(self.port), "-k", self._directory, "-F",
                 "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=300",
                 "-c", "shared_buffers=32MB", "-c", "full_page_writes=off", "-c", "autovacuum=off"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._identity(),
            )  # fmt: skip
        deadline = time.monotonic() + HANG_S
        while True:
            try:
                self._run("pg_isready", "-h", self._directory, "-p", str(self.port), "-U", USER)
            except subprocess.CalledProcessError:
                assert self._process.poll() is None, (self._directory / "server.log").read_text()
                assert time.monotonic() < deadline, "the server does not answer"
                time.sleep(0.02)
            else:
                return

    def stop(self, *, crash: bool = False) -> None:
        """Stop the server at once; `crash` gives it no chance to write anything more."""
        process, self._process = self._process, None
        if process is not None:
            # QUIT is an immediate shutdown: sessions are cut, the next start recovers. INT is a fast one.
            process.send_signal(3 if crash else 2)
            process.wait(HANG_S)

    def url(self, database: str) -> str:
        return f"postgresql://{USER}@/{database}?host={self._directory}&port={self.port}"

    async def database(self) -> str:
        """Return the URL of a database with today's schema and nothing in it."""
        if self._free:
            return self.url(self._free.pop())
        if self._made == 0:
            await self.fill_template()
        self._made += 1
        name = f"test_{os.getpid()}_{self._made}"
        await self.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        return self.url(name)

    async def give_back(self, url: str) -> None:
        """Empty a database for the next test: cheaper than making one."""
        from bowerbird.store.sql.tables import metadata

        name = make_url(url).database or ""
        tables = ", ".join(f'"{table}"' for table in metadata.tables if table != "meta")
        await self.execute(f"TRUNCATE {tables} RESTART IDENTITY", name)
        await self.execute("DELETE FROM meta WHERE key <> 'created_at'", name)
        self._free.append(name)

    async def empty(self) -> str:
        """Make an empty database and return its URL."""
        name = f"empty_{os.getpid()}_{time.monotonic_ns()}"
        await self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    async def fill_template(self) -> None:
        from bowerbird.store import Store, StoreOptions

        await self.execute(f"CREATE DATABASE {TEMPLATE}")
        with tempfile.TemporaryDirectory() as directory:
            options = StoreOptions(min_free_mb=0)
            store = await Store.open(self.url(TEMPLATE), data_dir=Path(directory), options=options)
            await store.aclose()

    async def execute(self, statement: str, database: str = "postgres") -> None:
        connection = await self.connect(database)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def connect(self, database: str) -> "asyncpg.Connection[asyncpg.Record]":
        return await asyncpg.connect(host=str(self._directory), port=self.port, user=USER, database=database)

    def _identity(self) -> dict[str, int]:
        # The server refuses to run as root.
        return {} if self._account is None else {"user": self._account.pw_uid, "group": self._account.pw_gid}

    def _run(self, program: str, *arguments: object) -> None:
        path = binary(program)
        assert path is not None, f"{program} is not installed"
        subprocess.run(
            [path, *map(str, arguments)],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._directory,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            **self._identity(),  # type: ignore[arg-type]
        )


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start a server for as long as the block runs."""
    # Short, because a socket's path is at most 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="bwpg"))
    try:
        server = PostgresServer(directory)
        server.start()
        try:
            yield server
        finally:
            server.stop(crash=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _account() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise AssertionError("run the tests as an ordinary user: the database server refuses root")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
