"""D-21: what a backup copies arrives whole, also on another filesystem."""

import errno
from pathlib import Path

import pytest
from support.failing_calls import FailingCalls
from support.places import memory_place

from bowerbird.core.errors import StorageFull
from bowerbird.workspace.raw_copy import held, make_equal


def test_a_copy_onto_another_kind_of_filesystem_has_every_byte(tmp_path: Path) -> None:
    """D-21: between ext4 and tmpfs the kernel refuses to share; each file of a backup there had 0 bytes."""
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    (source / "below" / "large").write_bytes(bytes(range(256)) * 40_000)
    (source / "empty").touch()
    with (source / "holes").open("wb") as file:
        file.seek(3 << 20)
        file.write(b"end")
    with memory_place() as memory:
        if memory.stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("this system has one filesystem only")
        copied = make_equal(source, memory / "copy")
        assert copied.refused == [] and held(memory / "copy") == (3, copied.bytes)
        for name in ("below/large", "empty", "holes"):
            assert (memory / "copy" / name).read_bytes() == (source / name).read_bytes(), name
        back = make_equal(memory / "copy", tmp_path / "back")
        assert back.refused == [] and (tmp_path / "back" / "holes").read_bytes()[-3:] == b"end"


def test_a_full_disk_is_named_and_ends_the_copy(tmp_path: Path) -> None:
    """D-21: a restore onto a full disk said that the backup was not whole, a backup left files out."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("one", "two"):
        (source / name).write_text(name)
    calls = FailingCalls(number=errno.ENOSPC, fits=lambda call, _: call == "ftruncate")
    with calls.armed(), pytest.raises(StorageFull, match="the disk is full"):
        make_equal(source, tmp_path / "copy")
