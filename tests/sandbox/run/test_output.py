"""SB-16 … SB-18: what a command prints is bounded, readable and whole on disk."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.sandbox.run.output import SPILL_LIMIT, LiveOutput, OutputCollector, readable, shorten


def collect(folder: Path, chunks: list[bytes], limit: int):
    collector = OutputCollector(limit, folder / "out.txt", "/run/out.txt")
    for chunk in chunks:
        collector.feed(chunk)
    return collector.close()


@given(chunks=st.lists(st.binary(max_size=300), max_size=12), limit=st.integers(1, 600))
def test_text_never_exceeds_the_limit_and_short_output_is_whole(tmp_path_factory, chunks, limit):
    folder = tmp_path_factory.mktemp("out")
    whole = b"".join(chunks)
    seen = collect(folder, chunks, limit)
    assert len(seen.text.encode()) <= limit
    assert seen.total_bytes == len(whole)
    if len(readable(whole).encode()) <= limit:
        assert (seen.text, seen.truncated, seen.spill) == (readable(whole), False, None)
    else:
        assert seen.truncated
        assert (folder / "out.txt").read_bytes() == whole


def test_long_output_keeps_head_and_tail_around_a_marker_that_names_the_spill(tmp_path):
    lines = [f"line {n}\n".encode() for n in range(100_000)]
    seen = collect(tmp_path, lines, 2_000)
    assert seen.text.startswith("line 0\n") and seen.text.endswith("line 99999\n")
    head, marker, tail = seen.text.partition("[… ")
    assert marker and "/run/out.txt" in tail and "bytes omitted" in tail
    assert 0.3 < len(head) / 2_000 < 0.42
    omitted = int(tail.split(" bytes")[0])
    kept = (
        len(head.encode())
        - 1
        + len(tail.encode())
        - len(tail.split("…]\n")[0].encode())
        - len("…]\n".encode())
    )
    assert abs(omitted + kept - seen.total_bytes) <= 2


def test_a_flood_costs_twice_the_limit_in_memory_and_64_mib_on_disk(tmp_path):
    collector = OutputCollector(100_000, tmp_path / "s", "s")
    piece = b"y\n" * (1 << 19)
    for _ in range(70):
        collector.feed(piece)
        assert len(collector._head) + len(collector._tail) <= 200_000
    seen = collector.close()
    assert seen.spill_truncated and (tmp_path / "s").stat().st_size == SPILL_LIMIT
    assert seen.total_bytes == 70 << 20


def test_an_invalid_byte_between_lines_leaves_all_other_text_intact(tmp_path):
    lines = [b"line\n"] * 500 + [b"\xff\n"] + [b"line\n"] * 499
    assert collect(tmp_path, lines, 100_000).text == "line\n" * 500 + "\ufffd\n" + "line\n" * 499


@pytest.mark.parametrize("cut", range(1, 8))
def test_cuts_fall_between_characters(cut):
    text = ("a" * cut + "€😀" * 200).encode()
    short = shorten(text[:301], text[-301:], len(text), 300, None)
    assert "\ufffd" not in short


def test_live_chunks_come_at_most_every_50_ms_and_a_flood_keeps_the_newest():
    now, got = [0.0], []
    live = LiveOutput(got.append, lambda: now[0])
    live.feed(b"a")
    live.feed(b"b" * (1 << 17))
    assert got == [b"a"]
    now[0] = 0.06
    live.feed(b"c")
    assert len(got) == 2 and got[1].endswith(b"bc") and len(got[1]) == 1 << 16
