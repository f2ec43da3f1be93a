"""Room on the disk, and blobs (SE-9, SE-61)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.stores import URL, opened

from bowerbird.core.errors import StorageFull, StoreError
from bowerbird.store import Blobs, Store, StoreOptions
from bowerbird.store.sql.space import RESERVE_BYTES, DiskSpace


def reserves(directory: Path) -> list[int]:
    return [path.stat().st_blocks * 512 for path in directory.glob("reserve.*")]


async def test_a_reserve_is_set_aside_while_the_store_is_open(tmp_path: Path) -> None:
    """SE-61."""
    async with opened(tmp_path) as store:
        assert reserves(tmp_path) and reserves(tmp_path)[0] >= RESERVE_BYTES
        store.space.free_reserve()
        assert reserves(tmp_path) == []
        assert store.space.is_low() is False
        assert len(reserves(tmp_path)) == 1
    assert reserves(tmp_path) == []


async def test_below_the_minimum_new_work_is_refused_naming_the_setting(tmp_path: Path) -> None:
    """SE-61."""
    status = os.statvfs(tmp_path)
    more_than_free = (status.f_bavail * status.f_frsize >> 20) + 1_000_000
    options = StoreOptions(min_free_mb=more_than_free)
    store = await Store.open(URL, data_dir=tmp_path, options=options)
    with pytest.raises(StorageFull, match="min_free_mb"):
        store.require_space()
    assert reserves(tmp_path) == []
    await store.aclose()


def test_reserves_of_dead_processes_are_removed(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys; from bowerbird.store.sql.space import *;"
        "DiskSpace(pathlib.Path(sys.argv[1]), 0).take_reserve()"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert len(reserves(tmp_path)) == 1
    DiskSpace(tmp_path, 0).take_reserve()
    assert [path.name for path in tmp_path.iterdir()] == [f"reserve.{os.getpid()}"]


def test_the_same_bytes_are_one_blob(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    first, second = blobs.put(b"abc"), blobs.put(b"abc")
    assert first == second
    assert first.startswith("sha256:")
    assert [path.name for path in (tmp_path / "blobs").iterdir()] == [first.removeprefix("sha256:")]
    assert blobs.get(first) == blobs.get(first.removeprefix("sha256:")) == b"abc"


@pytest.mark.parametrize("name", ["sha256:../../etc/passwd", "", "sha256:" + "0" * 64])
def test_a_blob_that_is_none_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError):
        Blobs(tmp_path).get(name)


def test_a_damaged_blob_is_not_given_out(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    name = blobs.put(b"abc")
    (tmp_path / name.removeprefix("sha256:")).write_bytes(b"abd")
    with pytest.raises(StoreError, match="damaged"):
        blobs.get(name)
