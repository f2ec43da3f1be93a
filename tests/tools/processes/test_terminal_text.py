"""SB-17: control sequences and drawn-over lines as plain text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.tools.processes.terminal_text import plain


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m\n", "red\n"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[2K\x1b[1Aup", "up"),
        ("10%\r50%\r100%\ndone\n", "100%\ndone\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("waiting…\r\n", "waiting…\n"),
        ("abc\b\b\bxyz", "xyz"),
        ("tab\there\n", "tab\there\n"),
        ("bell\x07 null\x00", "bell null"),
        ("plain", "plain"),
    ],
)
def test_what_a_terminal_would_leave_on_the_screen(raw, shown):
    assert plain(raw) == shown


@given(st.text())
def test_plain_text_has_no_control_characters_and_stays_as_it_is(text):
    once = plain(text)
    assert not any(c < " " and c not in "\n\t\r" for c in once)
    assert plain(once) == once


def test_many_backspaces_take_one_pass() -> None:
    """A command may print what it likes: 50,000 characters rubbed out one by one took minutes."""
    began = time.process_time()
    assert plain("a" * 100_000 + "\b" * 100_000 + "end") == "end"
    assert plain("a\b" * 100_000 + "end") == "end"
    assert plain("ab\n\b\bc\b\bd") == "ab\nd"
    assert time.process_time() - began < 2.0
