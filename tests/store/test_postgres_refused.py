"""What a start says when PostgreSQL, or a pooler before it, does not let us work (team 11)."""

import asyncio
from pathlib import Path

import pytest
from support.postgres import PostgresServer
from support.stores import opened

from bowerbird.core.errors import ConfigError


async def test_a_pooler_that_refuses_our_startup_is_named(tmp_path: Path) -> None:
    """It said "cannot be reached (is the server running?)"."""
    fields = b"SFATAL\0C08P01\0Munsupported startup parameter: lock_timeout\0\0"

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.readexactly(8) == b"\0\0\0\x08\x04\xd2\x16\x2f":  # may we speak TLS?
            writer.write(b"N")
            await reader.read(4096)
        writer.write(b"E" + (len(fields) + 4).to_bytes(4) + fields)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(ConfigError, match=r"pooler in transaction mode.*session mode"):
            async with opened(tmp_path, url=f"postgresql://me@127.0.0.1:{port}/x"):
                pass


async def test_a_user_without_connections_left_hears_how_many_are_needed(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    await postgres.execute("CREATE ROLE narrow LOGIN CONNECTION LIMIT 0")
    url = (await postgres.empty()).replace("postgresql://bower@", "postgresql://narrow@")
    with pytest.raises(ConfigError, match="too many connections for this user; a process needs 10"):
        async with opened(tmp_path, url=url):
            pass


async def test_numbers_of_the_url_are_numbers(tmp_path: Path, postgres_url: str) -> None:
    """`statement_cache_size=0` ended in "'<' not supported between 'str' and 'int'"."""
    async with opened(tmp_path, url=f"{postgres_url}&statement_cache_size=0&command_timeout=30") as store:
        assert await store.read(lambda c: c.exec_driver_sql("SELECT 1").scalar()) == 1
    with pytest.raises(ConfigError, match="statement_cache_size must be a number"):
        async with opened(tmp_path, url=f"{postgres_url}&statement_cache_size=few"):
            pass
