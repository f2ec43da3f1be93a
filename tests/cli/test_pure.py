"""Pure parts of the terminal: command line, text, blocks, slash commands, hunk choice, exit codes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.cli.review.choosing import Choosing, Question, questions_of
from bowerbird.cli.run.models import model_lines
from bowerbird.cli.run.sessions import session_row, status_line
from bowerbird.cli.run.slash_lines import COMMANDS, Refused, Said, Slash, read_line
from bowerbird.cli.terminal.blocks import Blocks
from bowerbird.cli.terminal.command_line import Anywhere, join_optional_values, read_command_line
from bowerbird.cli.terminal.drawing import coloured_diff, key_parameter, result_lines, result_note, tool_line
from bowerbird.cli.terminal.exits import CliExit, code_of_error, code_of_turn
from bowerbird.cli.terminal.terminal import Ability, progress_bar
from bowerbird.cli.terminal.text import cost_line, count, cut, harmless, one_line, table, width_of
from bowerbird.core.errors import ConfigError, InvalidArgument, LandingRefused, ModelError, SandboxUnavailable
from bowerbird.core.timestamps import now_iso
from bowerbird.core.usage import Usage

COLOUR = Ability(is_terminal=True, colour=True, cursor=True)
PLAIN = Ability(is_terminal=False, colour=False, cursor=False)


# ---------------------------------------------------------------- command line


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (["fix the test"], ("run", "fix the test")),
        (["-m", "x", "hi"], ("run", "-m", "x", "hi")),
        ([], ("run",)),
        (["--help"], ("--help",)),
        (["diff", "--stat"], ("diff", "--stat")),
        (["hello"], ("run", "hello")),
        (["run", "dif"], ("run", "dif")),
        (["--no-color", "diff"], ("diff",)),
        (["diff", "--config", "x.yaml"], ("diff",)),
        (["--config=x.yaml", "diff"], ("diff",)),
        (["run", "--", "--config", "x"], ("run", "--", "--config", "x")),
        (["-w", "d", "land", "--yes"], ("land", "-w", "d", "--yes")),
        (["--workspace=d", "run", "hi"], ("run", "--workspace=d", "hi")),
        (["-w", "d", "hi", "land"], ("run", "-w", "d", "hi", "land")),
        (["-w", "land"], ("run", "-w", "land")),
        (["help"], ("--help",)),  # it was sent to the model, and paid for
        (["help", "land"], ("land", "--help")),
        (["help", "me"], ("run", "help", "me")),
    ],
)
def test_a_first_word_that_is_no_command_is_a_prompt(given_, expected):
    """UI-41, UI-50."""
    assert read_command_line(given_).arguments == expected


def test_options_are_taken_from_anywhere():
    line = read_command_line(["diff", "--config", "c", "--env-file=e", "--data-dir", "d", "--no-color"])
    assert line.anywhere == Anywhere("c", "e", "d", True)
    with pytest.raises(CliExit) as refused:
        read_command_line(["diff", "--config"])
    assert refused.value.code == 2


@pytest.mark.parametrize("word", ["dif", "sesions", "undoo", "cofnig"])
def test_a_typo_of_a_command_costs_no_model_call(word):
    with pytest.raises(CliExit) as refused:
        read_command_line([word])
    assert refused.value.code == 2 and "did you mean" in refused.value.message


def test_resume_takes_an_id_or_nothing():
    assert join_optional_values(["run", "--resume", "4be2", "go"]) == ["run", "--resume=4be2", "go"]
    assert join_optional_values(["run", "--resume"]) == ["run", "--resume="]
    assert join_optional_values(["run", "--resume", "continue please"]) == [
        "run",
        "--resume=",
        "continue please",
    ]
    assert join_optional_values(["run", "--", "--resume"]) == ["run", "--", "--resume"]


# ---------------------------------------------------------------- text


@given(st.text())
def test_nothing_that_controls_a_terminal_survives(text):
    """UI-53."""
    safe = harmless(text)
    assert not any((ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in safe)
    assert not any("\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069" for c in safe)
    safe.encode()  # lone surrogates are gone too


def test_escapes_are_shown_not_obeyed():
    assert harmless("a\x1b]0;title\x07b\x9bc") == "a\\x1b]0;title\\x07b\\x9bc"
    assert harmless("one\r\ntwo\rthree\tx") == "one\ntwo\\rthree\tx"
    assert one_line("a\n\x1b[2Jb   c") == "a \\x1b[2Jb c"


@given(st.text(alphabet="ab日本é̀\u200b😀", max_size=30), st.integers(1, 20))
def test_cut_never_exceeds_the_width(text, width):
    assert width_of(cut(text, width)) <= width


def test_cost_line_is_the_specified_one():
    """UI-54."""
    usage = Usage(input_tokens=400, cache_read_tokens=12_000, output_tokens=1100, cost=0.043)
    line = cost_line(usage, context=36_000, window=200_000, changed=3)
    assert line == "12.4k in · 1.1k out · $0.043 · 18% ctx · 3 files changed"
    unknown = cost_line(Usage(cost=None), context=0, window=200_000, changed=1)
    assert unknown == "0 in · 0 out · unpriced · 0% ctx · 1 file changed"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1000, "1k"), (12_400, "12.4k"), (999_960, "1M"), (1_250_000, "1.2M")],
)
def test_counts_are_short(number, text):
    assert count(number) == text


# ---------------------------------------------------------------- Markdown blocks


def streamed(text, sizes):
    blocks, done, at = Blocks(), [], 0
    for size in sizes:
        done += blocks.feed(text[at : at + size])
        at += size
    done += blocks.feed(text[at:])
    return done + blocks.finish()


markdown = st.lists(
    st.sampled_from(
        ["text", "", "- item", "  more", "1. one", "```py", "```", "~~~", "| a | b |", "# h", " "]
    ),
    max_size=12,
).map("\n".join)


@given(markdown, st.lists(st.integers(0, 5), max_size=20))
def test_blocks_joined_are_the_text_however_it_is_cut(text, sizes):
    """UI-53: and where the pieces end does not matter."""
    assert "".join(streamed(text, sizes)) == text
    assert streamed(text, sizes) == streamed(text, [])


def test_a_block_is_given_once_it_is_complete():
    blocks = Blocks()
    assert blocks.feed("One\ntwo\n\n") == []
    assert blocks.feed("T") == ["One\ntwo\n\n"]
    assert blocks.feed("hree\n\n```py\nx\n\ny\n``") == ["Three\n\n"]
    assert blocks.feed("`\n") == ["```py\nx\n\ny\n```\n"]
    assert blocks.feed("- a\n\n- b\n\n  more\n\nend") == ["- a\n\n- b\n\n  more\n\n"]
    assert blocks.finish() == ["end"]


def test_a_block_without_end_is_given_in_pieces():
    given_ = Blocks().feed("x\n" * 50_000)
    assert len(given_) >= 4


# ---------------------------------------------------------------- slash commands


def test_lines_are_commands_text_or_refused():
    """UI-52."""
    assert read_line("hello /diff") == Said("hello /diff")
    assert read_line("/diff src a") == Slash("diff", "src a")
    assert read_line("//diff") == Said("/diff")
    assert isinstance(read_line("/dif"), Refused) and "did you mean /diff?" in read_line("/dif").message
    assert isinstance(read_line("/usr/bin is a path"), Refused)
    assert set(COMMANDS) >= {
        "help", "clear", "compact", "model", "history", "resume", "cost", "diff", "land", "undo", "discard",
        "fork", "sessions", "plan", "execute", "teams", "approval", "thinking", "context", "quit", "exit",
    }  # fmt: skip


# ---------------------------------------------------------------- choosing hunks


def questions(*counts):
    return [
        Question(f"/f{i}", "modify", f"h_{i}{n}", "", n, of, ("ci",) if i == 1 else (), i == 1)
        for i, of in enumerate(counts)
        for n in range(1, of + 1)
    ]


def chosen(asked, answers):
    choosing = Choosing(asked)
    for answer in answers:
        choosing.answer(answer)
    return choosing


def test_answers_choose_hunks():
    """UI-44."""
    assert chosen(questions(3), "nyn").choice.hunks == ("h_02",)
    assert chosen(questions(3, 2), "ya?n").question is None or True
    choice = chosen(questions(3, 2), "y" + "d" + "a").choice
    assert (choice.hunks, choice.paths, choice.accept) == (("h_01",), ("/f1",), ("/f1",))
    assert chosen(questions(3, 2), "yq").choice.hunks == ("h_01",)
    assert chosen(questions(2), "aa").choice.paths == ("/f0",)
    assert chosen(questions(2), "??nn").choice.is_empty


@given(st.lists(st.integers(1, 4), max_size=4), st.text(alphabet="ynadq?", max_size=20))
def test_no_hunk_is_chosen_that_was_not_asked_for_or_denied(counts, answers):
    """Against the rule said again, one hunk at a time."""
    asked = questions(*counts)
    expected, skip, stop = set(), {}, False
    rest = list(answers)
    for question in asked:
        if stop or not (rest or question.path in skip):
            break
        if question.path in skip:
            if skip[question.path] == "a":
                expected.add(question.hunk)
            continue
        while rest and rest[0] == "?":
            rest.pop(0)
        if not rest:
            break
        answer = rest.pop(0)
        stop = answer == "q"
        if answer in "ya":
            expected.add(question.hunk)
        if answer in "ad":
            skip[question.path] = answer
    choice = chosen(asked, answers).choice
    covered = set(choice.hunks) | {q.hunk for q in asked if q.path in choice.paths}
    assert covered == expected


def test_changes_without_hunks_are_one_question_and_ignored_ones_none():
    entries = [
        {"path": "/a", "op": "modify", "hunks": ["h_1"], "flags": []},
        {"path": "/b", "op": "delete", "hunks": [], "flags": ["lockfile"]},
        {"path": "/c.pyc", "op": "create", "ignored": True, "hunks": []},
        {"path": "/d", "op": "create", "hunks": ["h_2"]},
    ]
    created = {"id": "h_2", "old_start": 0, "old_lines": 0, "new_start": 1, "new_lines": 1, "text": "+x\n"}
    written = [
        {"path": "/a", "hunks": [{"id": "h_1", "text": "@@ -1 +1 @@\n-a\n+b\n"}]},
        {"path": "/d", "hunks": [created]},
    ]
    asked = questions_of(entries, {"written": written})
    assert [(q.path, q.hunk, q.flags) for q in asked] == [
        ("/a", "h_1", ()), ("/b", None, ("lockfile",)), ("/d", None, ())
    ]  # fmt: skip
    assert asked[2].text == "@@ -0,0 +1,1 @@\n+x"


# ---------------------------------------------------------------- drawing


def test_a_diff_without_colour_is_the_patch_itself():
    """UI-43: what is piped must apply."""
    patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\x1b[0m\n+b\n"
    assert coloured_diff(patch, PLAIN) == patch
    drawn = coloured_diff(patch, COLOUR)
    assert "\x1b[31m-a\\x1b[0m\x1b[0m" in drawn and "\x1b[32m+b" in drawn


def test_lines_of_a_file_never_look_like_headers_of_a_diff():
    """Engine finding 5: a separator ends no line, and within a hunk only the first character gives the colour."""
    lines = ["+x\x0c-forged", "--- a/z.py", "+++ b/z.py", " context"]
    patch = "@@ -7,2 +7,3 @@\n" + "".join(f"{line}\n" for line in lines) + "diff --git a/y b/y\n"
    drawn = coloured_diff(patch, COLOUR).split("\n")
    assert drawn[1] == "\x1b[32m+x\\x0c-forged\x1b[0m"
    assert drawn[2].startswith("\x1b[31m--- a/z.py") and drawn[3].startswith("\x1b[32m+++ b/z.py")
    assert drawn[5].startswith("\x1b[1mdiff --git")


@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
def test_counted_lines_end_at_newlines_only(tool):
    text = "a\x0cb\u2028c\n"
    assert result_note(tool, {"content": text, "old": text, "new": "d\n"}, "").startswith("+1")


def test_counting_an_edit_of_thousands_of_lines_is_quick():
    """Every line differs but for order: comparing all with all would take minutes."""
    old = "\n".join(["a", "b"] * 20_000)
    new = "\n".join(["b", "c"] * 20_000)
    assert result_note("edit_file", {"old": old, "new": new}, "") == "+40000 -40000"


def test_tool_lines_name_what_matters():
    assert key_parameter({"limit": 3, "path": "a.py"}) == "a.py"
    assert key_parameter({}) == ""
    assert tool_line(2, "bash", {"command": "ls\n\x1b[2J"}, "error", width=40) == "  2 ✗ bash ls \\x1b[2J"
    assert width_of(tool_line(2, "read_file", {"path": "長い名前" * 20}, "ok", width=40)) <= 40


def test_long_results_are_cut_at_six_lines():
    """UI-53."""
    lines = result_lines("\n".join(map(str, range(20))), "/show 4", width=40)
    assert [line.strip() for line in lines] == ["0", "1", "… 15 more lines: /show 4", "17", "18", "19"]
    assert result_lines("  \n", "", width=40) == []


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(10, 120))
def test_a_progress_bar_fits_its_line(done, total, width):
    assert width_of(progress_bar(done, total, width=width, rate=3.0, unit="files")) <= width


# ---------------------------------------------------------------- exit codes


@pytest.mark.parametrize(
    ("state", "reason", "denied", "code"),
    [
        ("done", "end_turn", False, 0), ("done", "end_turn", True, 4), ("done", "plan", False, 0),
        ("failed", "error", False, 1), ("failed", "crash_loop", False, 1), ("done", "max_turns", False, 5),
        ("done", "token_budget", False, 5), ("done", "budget", False, 5), ("done", "deadline", False, 5),
        ("done", "truncated", False, 5), ("waiting", "approval_timeout", False, 4),
        ("done", "stuck", False, 1), ("done", "refused", False, 1), ("cancelled", "cancelled", False, 130),
        ("interrupted", "interrupted", False, 130),
    ],
)  # fmt: skip
def test_ends_have_the_specified_codes(state, reason, denied, code):
    """UI-60."""
    assert code_of_turn(state, reason, denied_last=denied) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 78), (InvalidArgument("x"), 2), (LandingRefused("x", []), 3),
        (SandboxUnavailable("x"), 6), (ModelError("x", kind="server"), 1), (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141), (OSError("x"), 1), (CliExit(124), 124),
    ],
)  # fmt: skip
def test_errors_have_the_specified_codes(error, code):
    assert code_of_error(error) == code


def test_a_narrow_terminal_leaves_the_titles_of_sessions_readable():
    """UI-53: at 40 columns two letters of each title were left."""
    row = {
        "id": "9704ce0b2c98", "status": "done", "stop_reason": "end_turn", "pending_approval": False, "updated_at": now_iso(), "cost": 0.01,
        "changed_files": 3, "workspace": "w", "title": "Why is the import slow?",
    }  # fmt: skip
    assert table([session_row(row, every=True, width=40)], width=40) == [
        "9704ce0b2c98    Why is the import slow?"
    ]
    asking = session_row(row | {"pending_approval": True}, every=False, width=40)
    assert asking[:2] == ["9704ce0b2c98", "asking"]
    waits = row | {"status": "waiting"}
    assert session_row(waits | {"pending": "user"}, every=False)[1] == "waiting"
    assert session_row(waits | {"pending": None}, every=False)[1] == "expired"
    assert "3 files" in session_row(row, every=False)
    below = status_line({**row, "model": None, "enable_plan_mode": True}, "anthropic:claude-sonnet-4-5", 3)
    assert cut(below, 40).startswith(" 3 files changed · plan mode · anth")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_leaves_every_model_a_name_and_a_price(width):
    """UI-75: at 60 columns one long name pushed the prices of all models off the screen."""
    names = ["anthropic:claude-sonnet-4-5", "openrouter:some-vendor/a-very-long-model-name-instruct-v2"]
    rows = [
        {"name": name, "window": 200_000, "input_usd": 3.0, "output_usd": 15.0, "configured": True}
        for name in names
    ]
    short, long, _ = model_lines(rows, names[0], width)
    assert (
        short.startswith("* anthropic:c") and long.startswith("  openrou") and ("…" in long) == (width < 80)
    )
    assert short.endswith("$3/$15 200k") and long.endswith("$3/$15 200k") and len(long) <= width
