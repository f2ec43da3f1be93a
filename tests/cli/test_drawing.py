"""What a person sees: wrapped lines, Markdown, questions (UI-53, UI-56). Pure."""

import re
import time

from hypothesis import given
from hypothesis import strategies as st
from support.patience import HANG_S

from bowerbird.cli.review.drawn import files_of, stat_lines
from bowerbird.cli.terminal.drawing import MarkdownPainter
from bowerbird.cli.terminal.pager import rows_of
from bowerbird.cli.terminal.terminal import LandingBar
from bowerbird.cli.terminal.text import cut_path, width_of, wrapped
from bowerbird.cli.turn.asking import details, question_lines
from bowerbird.core.events import ApprovalRequest, LandingProgress


@given(text=st.text("ab \u6f22\u5b57\u00b7", max_size=120), width=st.integers(4, 60))
def test_wrapped_lines_fit_and_lose_nothing_but_spaces(text, width):
    """UI-53: wide characters, 40 columns."""
    lines = wrapped(text, width)
    assert all(width_of(line) <= width for line in lines)
    kept = [char for char in text if char not in " \u00b7"]
    assert [char for line in lines for char in line if char not in " \u00b7"] == kept


def test_markdown_is_drawn_for_a_narrow_column():
    """UI-53: headings at the left, numbers with dots, boxes for tasks, an address once."""
    text = "# One\n\n1. two\n   - [x] done\n\n<https://example.org/a> [b](https://example.org/c)\n\n---\n"
    drawn = MarkdownPainter(colour=False).paint(text, 60)
    assert drawn.splitlines() == [
        "# One", "", " 1. two", "     \u2022 \u2611 done", "",
        "https://example.org/a b (https://example.org/c)", "", "\u2500" * 60,
    ]  # fmt: skip
    assert "\x1b" not in drawn


def test_a_table_leaves_nothing_out_in_a_narrow_column():
    word = "w" * 70
    drawn = MarkdownPainter(colour=False).paint(f"| a | b |\n|---|---|\n| {word} | 漢字 漢字 |\n", 40)
    assert drawn.count("w") == 70 and drawn.count("漢") == 2 and "…" not in drawn


def test_a_long_name_leaves_the_counts_their_column():
    """One name of 255 bytes pushed the counts of every row out of the terminal."""
    long = "src/" + "n" * 251 + ".py"
    rows = [{"path": p, "kind": "create", "added": 12, "removed": 0, "flags": []} for p in (long, "a.py")]
    lines = stat_lines({"written": rows, "deleted": [long]}, width=60)
    assert all(line.endswith("+12 -0") for line in lines[:2]) and max(map(len, lines)) <= 60
    assert lines[0].startswith("A  src/nnn") and "n.py  +12" in lines[0] and "…" in lines[0]


@given(st.text(max_size=60), st.integers(1, 40))
def test_a_path_that_is_cut_fits_and_keeps_both_ends(path, width):
    shown = cut_path(path, width)
    assert width_of(shown) <= width
    assert shown == path or "…" in shown


def test_coloured_markdown_has_no_styled_blank_ends():
    drawn = MarkdownPainter(colour=True).paint("```python\nx = 1\n```\n", 60)
    assert all(width_of(re.sub(r"\x1b\[[0-9;]*m", "", line)) < 12 for line in drawn.splitlines())


def test_a_question_shows_a_command_whole_and_texts_as_lines():
    """UI-56: what is cut off is what would be missed."""
    command = "echo " + "x" * 300 + "\nrm -rf /\x1b[2K"
    request = ApprovalRequest("r_1", "approval", tools=({"name": "bash", "input": {"command": command}},))
    shown = "\n".join(question_lines(request))
    assert "x" * 300 in shown and "rm -rf /\\x1b[2K" in shown
    request = ApprovalRequest(
        "r_1", "approval", tools=({"name": "write_file", "input": {"content": "a\nb"}},)
    )
    assert details(request) == ["write_file", "  content:", "    a", "    b"]


def test_a_landing_of_many_files_shows_how_far_it_is():
    """UI-53: with rate and remaining time; a small one is over at once."""
    shown: list[str] = []
    few = LandingBar(shown.append, width=80)
    few(LandingProgress("land", "writing", 1, 500))
    assert shown == []
    bar = LandingBar(shown.append, width=80)
    bar(LandingProgress("land", "writing", 1200, 100_000))
    assert "landing: writing 1,200 of 100,000 files" in shown[0] and width_of(shown[0]) <= 80
    deadline = time.monotonic() + HANG_S
    while len(shown) < 2 and time.monotonic() < deadline:
        bar(LandingProgress("undo", "placing", 50_000, 100_000, "l_1"))
    assert "undo: placing 50,000 of 100,000 files" in shown[1]


def test_directories_that_come_and_go_with_files_are_not_counted():
    assert files_of([{"op": "mkdir"}, {"op": "create"}, {"op": "delete"}]) == 2
    assert files_of([{"op": "mkdir"}]) == 1


def test_one_endless_line_is_as_much_as_many_for_the_pager():
    assert rows_of("y" * 1000 + "\n", 80) == 13 and rows_of("漢" * 41, 80) == 2 and rows_of("\n\n", 80) == 2


def test_what_looks_like_a_tag_is_text() -> None:
    """UI-53: nothing that the model said vanishes."""
    from bowerbird.cli.terminal.markdown import draw

    text = "A List<str> and <img onerror=x>.\n\n<div>\nbelow\n</div>\n\n~~old~~\n"
    shown = draw(text, width=80, colour=False, code_theme="ansi_dark")
    assert "A List<str> and <img onerror=x>." in shown
    assert "<div>" in shown and "below" in shown and "</div>" in shown and "~~" not in shown
