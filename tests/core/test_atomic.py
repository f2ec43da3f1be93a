"""Files that are replaced whole (issue 11, step 1: one helper in place of ten hand-made ones)."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bowerbird.core.atomic import make_file, replace_at, replace_file


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


def test_threads_that_replace_one_file_never_publish_half_of_it(tmp_path: Path) -> None:
    """Two containers on one volume are the same case: both processes may have the number 1."""
    file = tmp_path / "notes"
    contents = [letter * 300_000 for letter in (b"a", b"b", b"c", b"d")]
    replace_file(file, contents[0])
    seen: set[bytes] = set()
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            seen.add(file.read_bytes())

    def write(content: bytes) -> None:
        for _ in range(40):
            replace_file(file, content)

    reader = threading.Thread(target=read)
    reader.start()
    with ThreadPoolExecutor(len(contents)) as threads:
        list(threads.map(write, contents))  # raises what one of them raised
    over.set()
    reader.join()
    assert seen <= set(contents)
    assert os.listdir(tmp_path) == ["notes"]


def test_what_is_staged_follows_no_link_and_has_its_own_permissions(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "memory").symlink_to(target)
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        replace_at(handle, "memory", b"secret", mode=0o600)
    finally:
        os.close(handle)
    assert target.read_text() == "mine" and (tmp_path / "memory").read_text() == "secret"
    assert (tmp_path / "memory").stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["memory", "target"]


_KILLED = """
import os, signal, sys
from pathlib import Path
from bowerbird.core.atomic import replace_file
os.replace = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
replace_file(Path(sys.argv[1]) / "notes", b"half")
"""
_NEXT = """
import sys
from pathlib import Path
from bowerbird.core.atomic import replace_file
replace_file(Path(sys.argv[1]) / "notes", b"whole")
"""


def test_what_a_killed_process_left_goes_and_what_a_living_one_writes_stays(tmp_path: Path) -> None:
    def run(program: str) -> int:
        return subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False).returncode

    (tmp_path / ".notes.txt.tmp").write_text("of a person")
    assert run(_KILLED) == -signal.SIGKILL
    (left,) = [name for name in os.listdir(tmp_path) if name != ".notes.txt.tmp"]
    assert run(_NEXT) == 0 and (tmp_path / left).exists()  # whose it is nobody can tell yet
    os.utime(tmp_path / left, (0, 0))
    os.utime(tmp_path / ".notes.txt.tmp", (0, 0))
    assert run(_NEXT) == 0
    assert sorted(os.listdir(tmp_path)) == [".notes.txt.tmp", "notes"]
    assert (tmp_path / "notes").read_text() == "whole"


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


def test_of_many_that_make_one_file_one_does_and_it_is_whole(tmp_path: Path) -> None:
    def make(letter: bytes) -> bytes | None:
        try:
            make_file(tmp_path / "new", letter * 100_000, mode=0o600)
        except FileExistsError:
            return None
        return letter

    with ThreadPoolExecutor(8) as threads:
        made = [letter for letter in threads.map(make, [b"a", b"b", b"c", b"d"] * 4) if letter is not None]
    assert len(made) == 1 and (tmp_path / "new").read_bytes() == made[0] * 100_000
    assert os.listdir(tmp_path) == ["new"] and (tmp_path / "new").stat().st_mode & 0o777 == 0o600
