"""Files that are replaced whole (issue 11, step 1: one helper in place of ten hand-made ones)."""

import os
import threading
from pathlib import Path

import pytest

from bowerbird.core.atomic import replace_at, replace_file


def test_a_reader_finds_the_old_content_or_the_new(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    contents = [letter * 300_000 for letter in (b"a", b"b")]
    replace_file(file, contents[0])
    seen: set[bytes] = set()
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            seen.add(file.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(60):
        replace_file(file, contents[turn % 2])
    over.set()
    reader.join()
    assert seen <= set(contents)
    assert os.listdir(tmp_path) == ["notes"]


def test_what_lies_where_it_is_staged_is_neither_followed_nor_used(tmp_path: Path) -> None:
    """A link there would lead the content elsewhere; a file left there would lend its permissions."""
    target = tmp_path / "target"
    target.write_text("mine")
    staged = tmp_path / f".memory.{os.getpid()}.tmp"
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        staged.symlink_to(target)
        replace_at(handle, "memory", b"secret", mode=0o600)
        assert target.read_text() == "mine" and (tmp_path / "memory").read_text() == "secret"
        staged.write_text("left by a kill")
        staged.chmod(0o644)
        replace_at(handle, "memory", b"more", mode=0o600)
    finally:
        os.close(handle)
    assert (tmp_path / "memory").read_text() == "more"
    assert (tmp_path / "memory").stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["memory", "target"]


def test_where_it_cannot_be_replaced_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    with pytest.raises(OSError):
        replace_file(tmp_path / "notes", b"x")
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "nowhere" / "notes", b"x")
    assert os.listdir(tmp_path) == ["notes"]


def test_a_link_in_the_files_place_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("mine")
    (tmp_path / "notes").symlink_to("target")
    replace_file(tmp_path / "notes", b"new")
    assert not (tmp_path / "notes").is_symlink() and (tmp_path / "target").read_text() == "mine"
