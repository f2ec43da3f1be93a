"""Replacing text in bytes (WS-22, WS-28, WS-29)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.branches import branch_of

from bowerbird.core.errors import BinaryFile, InvalidArgument, NoMatch, NotFound, NotUnique
from bowerbird.workspace.files.editing import Edited, edit


def _edit(data: bytes, old: str, new: str, *, all_: bool = False, encoding: str | None = None) -> Edited:
    return edit(data, old, new, replace_all=all_, encoding=encoding, path="/f")


async def test_one_word_in_a_latin1_crlf_file_changes_those_bytes_only(tmp_path):
    """Acceptance 5"""
    data = b"caf\xe9 ol\xe9\r\nold word here\r\nna\xefve\r\nno newline at end \xff"
    with branch_of(tmp_path, {"f": data}) as branch:
        record = await branch.edit_file("f", "word", "term")
        assert (record["path"], record["replacements"], record["first_line"]) == ("/f", 1, 2)
        assert await branch.read_bytes("f") == data.replace(b"word", b"term")
        assert record["hash"] == (await branch.read_file("f"))["hash"]


@given(
    before=st.binary(max_size=12),
    after=st.binary(max_size=12),
    old=st.text("ab\u00e9\n", min_size=1, max_size=5),
    new=st.text("xy\u00e9\n", max_size=5),
    crlf=st.booleans(),
)
def test_outside_the_replaced_span_every_byte_stays(before, after, old, new, crlf):
    """WS-28: whatever surrounds it, also bytes that are no text."""
    ending = "\r\n" if crlf else "\n"
    middle = old.replace("\n", ending).encode()
    data = (before + b"<" + middle + b">" + after).replace(b"\0", b"0")
    before, after = before.replace(b"\0", b"0"), after.replace(b"\0", b"0")
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return
    done = _edit(data, f"<{old}>", f"<{new}>") if f"<{old}>" != f"<{new}>" else None
    if done is None:
        return
    if "\n" in old:
        assert done.data == before + b"<" + new.replace("\n", ending).encode() + b">" + after
    else:
        assert done.data.startswith(before + b"<") and done.data.endswith(b">" + after)
    assert done.first_line == before.count(b"\n") + 1


@pytest.mark.parametrize("bom", ["\ufeff"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "utf-16-be"])
def test_marks_endings_and_the_last_line_stay_in_every_encoding(codec, bom):
    """WS-28"""
    text = bom + "\u0a0d\u0d0a one\r\ntwo\r\n\u010a\r\nend"
    done = _edit(text.encode(codec), "two\n\u010a", "2\n3\n4")
    assert done.data.decode(codec) == bom + "\u0a0d\u0d0a one\r\n2\r\n3\r\n4\r\nend"
    assert done.first_line == 2


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        pytest.param(b"a\r\nb\r\n", "a", "x\ny", b"x\r\ny\r\nb\r\n", id="takes-the-ending-of-its-line"),
        pytest.param(b"a\nb\r\nc", "c", "x\ny", b"a\nb\r\nx\r\ny", id="takes-the-ending-before-it"),
        pytest.param(b"a\nb\r\nc\r\n", "a\n", "x\n", b"x\nb\r\nc\r\n", id="mixed-keeps-its-place"),
        pytest.param(b"a\r\nb", "\nb", "\nc\nd", b"a\r\nc\r\nd", id="begins-with-newline"),
        pytest.param(b"a\r\nb", "a\r\nb", "c\r\nd", b"c\r\nd", id="given-as-crlf"),
        pytest.param(b"a\nb", "a\r\nb", "c\r\nd", b"c\nd", id="given-as-crlf-in-an-lf-file"),
        pytest.param(b"one", "one", "a\nb", b"a\nb", id="no-ending-anywhere"),
        pytest.param(b"a\r\r\nb", "\r", "", b"a\r\nb", id="a-return-that-is-no-ending"),
    ],
)  # fmt: skip
def test_new_text_takes_the_surrounding_line_ending(data, old, new, expected):
    """WS-28"""
    assert _edit(data, old, new).data == expected


def test_replace_all_replaces_each_place_once():
    """WS-22"""
    assert _edit(b"aaa aa a", "aa", "b", all_=True) == Edited(b"ba b a", 2, 1)
    assert _edit("é\r\né\r\n".encode(), "é\n", "e\n", all_=True).data == b"e\r\ne\r\n"


def test_errors_say_what_is_wrong_and_where():
    """WS-29"""
    with pytest.raises(NotUnique, match=r"occurs 3 times in f, on lines 1, 2, 4"):
        _edit(b"x\nx\n\nx\n", "x", "y")
    with pytest.raises(NoMatch, match=r"line 2 differs only in whitespace from '    def f\(\):'"):
        _edit(b"# f\n\tdef f():\n\t\treturn 1\n", "    def f():\n        return 1", "x")
    with pytest.raises(NoMatch, match=r"line 2 is not '  b'. The nearest lines:\n     1\ta\n     2\tc\n"):
        _edit(b"a\nc\n", "a\n  b", "x")
    with pytest.raises(NoMatch, match="Read the file again and copy"):
        _edit(b"abc", "xyz", "")
    with pytest.raises(NoMatch, match=r"U\+FFFD"):
        _edit(b"caf\xe9", "caf\ufffd", "cafe")
    for old, new in (("", "x"), ("x", "x")):
        with pytest.raises(InvalidArgument):
            _edit(b"x", old, new)
    with pytest.raises(BinaryFile):
        _edit(b"a\0b", "a", "b")
    with pytest.raises(InvalidArgument, match="iso8859"):
        _edit(b"caf\xe9", "é", "\u4e2d", encoding="latin-1")


def test_a_named_encoding_finds_what_utf8_cannot():
    """WS-28"""
    assert _edit(b"caf\xe9\r\n", "café", "thé", encoding="latin-1").data == b"th\xe9\r\n"


def test_repetitive_text_costs_no_more_than_other_text():
    data = b"y\r\n" * 300_000
    needle = "y\n" * 100_000
    with pytest.raises(NoMatch):
        _edit(data, needle + "z", "")
    assert _edit(data, needle, "", all_=True).replacements == 3


async def test_a_missing_file_is_an_error_and_edits_leave_modes(tmp_path):
    """WS-29"""
    with branch_of(tmp_path, {"f": "a"}) as branch:
        with pytest.raises(NotFound):
            await branch.edit_file("g", "a", "b")
        (tmp_path / "ws/f").chmod(0o700)
        await branch.edit_file("f", "a", "b")
        assert (await branch.ls())["entries"][0]["mode"] == 0o700
