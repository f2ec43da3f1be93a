"""Fixtures that give a test both databases: SQLite, and a PostgreSQL server of our own (SE §2).

Import `postgres`, `postgres_url`, `database_url` into a conftest. Without PostgreSQL's programs the tests of that
half are skipped with that reason; `BOWERBIRD_REQUIRE_POSTGRES=1` makes it a failure.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from support.postgres import PostgresServer, binary, postgres_server
from support.stores import URL

BOTH = ("sqlite", "postgresql")
_shared: dict[str, tuple[ExitStack, PostgresServer]] = {}  # one server, whichever conftest asks first


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    if binary("initdb") is None and not os.environ.get("BOWERBIRD_REQUIRE_POSTGRES"):
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    is_first = "server" not in _shared
    if is_first:
        stack = ExitStack()
        _shared["server"] = (stack, stack.enter_context(postgres_server()))
    yield _shared["server"][1]
    if is_first:
        _shared.pop("server")[0].close()


@pytest.fixture
async def postgres_url(postgres: PostgresServer) -> AsyncIterator[str]:
    """The URL of a PostgreSQL database of the test's own."""
    url = await postgres.database()
    yield url
    await postgres.give_back(url)


@pytest.fixture(params=BOTH)
def database_url(request: pytest.FixtureRequest) -> Any:
    """The URL of a database of the test's own, once per kind of database."""
    return URL if request.param == "sqlite" else request.getfixturevalue("postgres_url")
