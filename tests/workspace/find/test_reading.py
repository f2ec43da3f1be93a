"""Reading text and bytes (WS-17, WS-18, WS-26, WS-27, WS-28, WS-38)."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.branches import branch_of

from bowerbird.core.errors import InvalidArgument, LimitExceeded
from bowerbird.workspace.find.text import LineWindow

KIB = 1024


async def test_a_record_of_a_small_file_is_complete(tmp_path):
    """WS-18"""
    data = b"one\ntwo\nthree"
    with branch_of(tmp_path, {"f": data}) as branch:
        assert await branch.read_file("f", 2, 1) == {
            "path": "/f",
            "content": "two\n",
            "start_line": 2,
            "end_line": 2,
            "total_lines": 3,
            "truncated": True,
            "next_offset": 3,
            "encoding": "utf-8",
            "newline": "lf",
            "size": len(data),
            "hash": "sha256:" + hashlib.sha256(data).hexdigest(),
            "binary": False,
        }
        last = await branch.read_file("f", 3)
        assert (last["content"], last["truncated"], last["next_offset"]) == ("three", False, None)


async def test_reading_past_the_end_is_empty_and_ends_before_it_starts(tmp_path):
    """WS-26"""
    with branch_of(tmp_path, {"f": "one\n", "empty": ""}) as branch:
        for path, offset, total in (("f", 2, 1), ("f", 900, 1), ("empty", 1, 0)):
            record = await branch.read_file(path, offset)
            assert (record["content"], record["end_line"], record["total_lines"]) == ("", offset - 1, total)
            assert record["truncated"] is False
        for bad in ((0, 0), (-1, 0), (1, -1)):
            with pytest.raises(InvalidArgument):
                await branch.read_file("f", *bad)


async def test_only_newlines_end_lines(tmp_path):
    """WS-26: numbers equal `grep -n`."""
    text = "a\x0cb\u2028c\x85d\re\nsecond\n"
    with branch_of(tmp_path, {"f": text}) as branch:
        record = await branch.read_file("f", 2)
        assert (record["content"], record["total_lines"]) == ("second\n", 2)


async def test_a_long_file_comes_in_pieces_cut_at_lines(tmp_path):
    """WS-26: 256 KiB a call, every line once."""
    lines = [f"{number:>99}\n" for number in range(9000)]
    with branch_of(tmp_path, {"f": "".join(lines)}) as branch:
        parts, offset = [], 1
        while offset is not None:
            record = await branch.read_file("f", offset)
            assert len(record["content"]) <= 256 * KIB
            assert record["end_line"] - record["start_line"] + 1 == record["content"].count("\n")
            parts.append(record["content"])
            offset = record["next_offset"]
        assert "".join(parts) == "".join(lines) and len(parts) == 4


async def test_a_long_line_is_cut_with_a_note(tmp_path):
    """WS-26: at 64 KiB, between characters; the next line is unharmed."""
    with branch_of(tmp_path, {"f": "é" * 100_000 + "\nnext\n", "exact": "x" * 64 * KIB + "\n"}) as branch:
        record = await branch.read_file("f")
        first, second, _ = record["content"].split("\n")
        assert first.startswith("é" * 32_000) and first.endswith("… [cut: the line has 200001 bytes]")
        assert "\ufffd" not in first and second == "next" and record["total_lines"] == 2
        assert (await branch.read_file("exact"))["content"] == "x" * 64 * KIB + "\n"


@given(st.lists(st.text(alphabet="ab\r\u00e9", max_size=6), max_size=12), st.booleans(), st.integers(1, 14),
       st.integers(0, 5), st.integers(1, 9))  # fmt: skip
def test_a_window_equals_slicing_the_lines(lines, ends, offset, limit, piece):
    """WS-26, for any cutting of the stream into pieces."""
    data = "\n".join(lines).encode() + (b"\n" if ends and lines else b"")
    window = LineWindow(offset, limit)
    for at in range(0, len(data), piece):
        window.feed(data[at : at + piece])
    window.end()
    expected = data.split(b"\n")
    rows = [line + b"\n" for line in expected[:-1]] + ([expected[-1]] if expected[-1] else [])
    assert window.lines == rows[offset - 1 : offset - 1 + limit if limit else None]
    assert window.total == len(rows)
    crlf = data.count(b"\r\n")
    kind = "none" if b"\n" not in data else "lf" if not crlf else "mixed"
    assert window.newline == ("crlf" if crlf and crlf == data.count(b"\n") else kind)


@pytest.mark.parametrize(
    ("data", "encoding", "newline", "content"),
    [
        ("é\r\nb\r\n".encode(), "utf-8", "crlf", "é\nb\n"),
        (b"\xef\xbb\xbfa\nb\r\n", "utf-8-sig", "mixed", "a\nb\n"),
        ("\ufeffé\r\n".encode("utf-16-le"), "utf-16-le", "crlf", "é\n"),
        ("\ufeffé\n".encode("utf-16-be"), "utf-16-be", "lf", "é\n"),
        (b"caf\xe9", "unknown", "none", "caf\ufffd"),
        (b"abc\xc3", "unknown", "none", "abc\ufffd"),
    ],
)
async def test_the_encoding_is_found(tmp_path, data, encoding, newline, content):
    """WS-28"""
    with branch_of(tmp_path, {"f": data}) as branch:
        record = await branch.read_file("f")
        assert (record["encoding"], record["newline"], record["content"]) == (encoding, newline, content)
        assert record["hash"] == "sha256:" + hashlib.sha256(data).hexdigest()


async def test_a_named_encoding_is_used_and_an_unknown_one_refused(tmp_path):
    """WS-28"""
    with branch_of(tmp_path, {"f": b"caf\xe9\n", "w": "hi\n".encode("utf-16-be")}) as branch:
        assert (await branch.read_file("f", encoding="latin-1"))["content"] == "café\n"
        assert (await branch.read_file("w", encoding="utf-16-be"))["content"] == "hi\n"
        for bad in ("klingon", "hex"):
            with pytest.raises(InvalidArgument, match=bad):
                await branch.read_file("f", encoding=bad)


async def test_binary_files_have_no_content_but_bytes(tmp_path):
    """WS-27: a NUL in the first 8 KiB; one later does not count."""
    files = {"b": b"MZ\0\1", "late": b"x" * 8192 + b"\0", "edge": b"x" * 8191 + b"\0"}
    with branch_of(tmp_path, files) as branch:
        record = await branch.read_file("b")
        assert (record["content"], record["binary"], record["size"]) == (None, True, 4)
        assert [(await branch.read_file(name))["binary"] for name in ("late", "edge")] == [False, True]
        assert await branch.read_bytes("b", 1, 2) == b"Z\0"
        assert await branch.read_bytes("b", 9) == b""
        with pytest.raises(InvalidArgument):
            await branch.read_bytes("b", -1)


async def test_files_over_64_mib_have_no_count_and_no_hash(tmp_path):
    """WS-26"""
    with branch_of(tmp_path) as branch:
        big = tmp_path / "ws/big"
        with big.open("wb") as file:
            for _ in range(65):
                file.write((b"y" * 1023 + b"\n") * 1024)
        record = await branch.read_file("big", 65 * 1024 - 1)
        assert (record["start_line"], record["end_line"]) == (65 * 1024 - 1, 65 * 1024)
        assert (record["total_lines"], record["hash"], record["truncated"]) == (None, None, False)
        with pytest.raises(LimitExceeded):
            await branch.read_bytes("big")


async def test_ls_is_sorted_by_bytes_paged_and_says_what_changed(tmp_path):
    """WS-17"""
    with branch_of(tmp_path, {"b": "x", "B": "x", "é": "x", "d/f": "x", "a.b": "x", "a/f": "x"}) as branch:
        await branch.write_file("d/new", "x")
        await branch.delete("b")
        record = await branch.ls()
        assert [row["name"] for row in record["entries"]] == ["B", "a", "a.b", "d", "é"]
        assert [row["name"] for row in record["entries"] if row["changed"]] == ["d"]
        assert (record["path"], record["total"], record["truncated"]) == ("/", 5, False)
        page = await branch.ls("/", 2, 2)
        assert ([row["name"] for row in page["entries"]], page["truncated"]) == (["a", "a.b"], True)
        row = (await branch.ls("d"))["entries"][0]
        assert set(row) == {"name", "type", "size", "mode", "mtime", "changed"}
        assert (row["name"], row["mode"] & 0o777, row["changed"]) == ("f", 0o644, False)
        with pytest.raises(InvalidArgument):
            await branch.ls("/", 0)


async def test_read_overlay_gives_what_a_layer_holds(tmp_path):
    """WS-38: whichever layer; nothing for what reads through or is deleted."""
    with branch_of(tmp_path, {"same": "x", "gone": "x", "mine": "x"}) as branch:
        await branch.write_file("mine", "parent's")
        await branch.delete("gone")
        child = branch.fork()
        assert child.read_overlay("mine") == b"parent's"
        assert [child.read_overlay(p) for p in ("same", "gone", "never")] == [None, None, None]


async def test_unchanged_files_read_through_live_and_changed_ones_do_not(tmp_path):
    """WS-5"""
    with branch_of(tmp_path, {"live": "1", "mine": "1"}) as branch:
        await branch.write_file("mine", "2")
        (tmp_path / "ws/live").write_text("edited")
        (tmp_path / "ws/mine").write_text("edited")
        assert (await branch.read_file("live"))["content"] == "edited"
        assert (await branch.read_file("mine"))["content"] == "2"
