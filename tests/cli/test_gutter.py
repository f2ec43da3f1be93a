"""What a command of `sandbox run` writes reaches no terminal as it is (UI-53; security finding 14)."""

import os
import pty
import select
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.desk import Desk
from support.patience import HANG_S
from support.terminals import COMMAND

from bowerbird.cli.terminal.gutter import BAR, Gutter

FORGED = "it changed nothing · tier overlay"


def shown(*chunks: bytes, width: int = 40) -> str:
    gutter = Gutter(width)
    return "".join(map(gutter.feed, chunks)) + gutter.close()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"one\ntwo\n", "│ one\n│ two\n"),
        (b"no end", "│ no end\n"),
        (b"", ""),
        (b"\n\nx", "│\n│\n│ x\n"),
        (b"\x1b[31mred\x1b[0m", "│ red\n"),
        (b"\x1b]52;c;aGk=\x07", "│ \\x1b]52;c;aGk=\\x07\n"),
        (b"\x1b[2J\x1b[H", "│ \\x1b[2J\\x1b[H\n"),
        (b"\x9b2J", "│ \ufffd2J\n"),
        (b"50%\r60%\r\n", "│ 50%\n│ 60%\n"),
        (f"\r{FORGED}".encode(), f"│\n│ {FORGED}\n"),
    ],
)
def test_each_line_has_the_bar_and_no_escape(written: bytes, expected: str) -> None:
    assert shown(written) == expected
    one_by_one = [written[i : i + 1] for i in range(len(written))]
    assert shown(*one_by_one) == expected


@given(st.lists(st.binary(max_size=60), max_size=12), st.integers(10, 60))
def test_nothing_a_command_writes_begins_a_line_or_moves_the_cursor(chunks: list[bytes], width: int) -> None:
    text = shown(*chunks, width=width)
    assert not any(ord(char) < 32 and char not in "\n\t" for char in text)
    assert all(line.startswith(BAR.rstrip()) for line in text.splitlines() if line)


def test_a_hostile_command_moves_no_terminal_and_forges_no_line(here: Desk) -> None:
    """OSC 52 (clipboard), titles and links came through, and its last line looked like ours."""
    line = f"printf '\\033]52;c;aGk=\\007\\033]0;owned\\007\\033[2J'; echo x > made; echo '{FORGED}'"
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "--no-color", "sandbox", "run", line],
        cwd=here.project, env=here.environment, stdin=inside, stdout=inside, stderr=inside,
    )  # fmt: skip
    os.close(inside)
    got, end = b"", time.monotonic() + HANG_S
    try:
        while time.monotonic() < end and select.select([terminal], [], [], HANG_S)[0]:
            try:
                got += os.read(terminal, 65_536)
            except OSError:  # the other side is closed
                break
        code = process.wait(HANG_S)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    if code == 6:
        pytest.skip(f"no sandbox here: {got.decode(errors='replace')}")
    assert b"\x1b]" not in got and b"\x1b[2J" not in got
    lines = [text.strip("\r") for text in got.decode().split("\n")]
    assert BAR + "\\x1b]52;c;aGk=\\x07" in "".join(lines)
    assert not any(text.startswith(FORGED) for text in lines)
