"""The database's clock ahead of itself by parts of a second."""

from pathlib import Path

from sqlalchemy import select
from support.stores import opened

from bowerbird.core.timestamps import from_iso
from bowerbird.store.sql.clock import DbNow


async def test_a_lease_of_a_second_and_a_half_lasts_that_long(tmp_path: Path, database_url: str) -> None:
    """`dispatch.lease_s: 1.5` was one second, while its holder's clock says when it has to stop."""
    async with opened(tmp_path, url=database_url) as store:
        now, later = await store.read(lambda c: c.execute(select(DbNow(), DbNow(1.5))).one())
    assert 1.4 < (from_iso(later) - from_iso(now)).total_seconds() < 1.6
    assert len(now) == len(later)
