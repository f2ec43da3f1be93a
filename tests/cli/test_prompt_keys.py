"""Keys at the prompt that people bring along: the search of the history, Esc, tabs (UI-52, UI-55)."""

import time

import pytest
from support.patience import HANG_S

PAGER = """#!/bin/sh
cat > /dev/null
echo pager begins
sleep 0.4
read line < /dev/tty
echo "pager got $line"
"""


@pytest.fixture
def chat(here):
    """A session at its prompt."""
    with here.terminal() as terminal:
        terminal.wait_for("lists commands")
        terminal.wait_for(">")
        yield terminal


def test_enter_takes_what_the_search_of_the_history_found(here, chat):
    """UI-52: Enter emptied the search and left the keys in it, so that nothing could be typed any more."""
    here.fake.script({"text": "Once."}, {"text": "Twice."}, {"text": "Three times."})
    chat.send("count the sheep\r")
    chat.wait_for("Once.")
    chat.wait_for("ctx ·")
    chat.send("\x12sheep")
    chat.wait_for("backward: sheep")
    chat.send("\r\x05 again\r")
    chat.wait_for("Twice.")
    chat.wait_for("ctx ·")
    assert "count the sheep again" in str(here.fake.requests[-1]["messages"][-1])
    chat.send("\x12sheep")
    chat.wait_for("backward: sheep")
    chat.send("\x03something else\r")
    chat.wait_for("Three times.")
    assert "something else" in str(here.fake.requests[-1]["messages"][-1])
    assert "Ctrl+C again leaves" not in chat.text


def test_esc_stops_the_turn_and_alt_enter_still_begins_a_line(here, chat):
    """UI-55: the manual promised Esc, which did nothing."""
    here.fake.script({"hang": True}, {"text": "As you like."})
    chat.send("/help\r")
    chat.wait_for("Esc or Ctrl+C: stop")  # the help was silent about it, and about @, ! and #
    chat.send("wait\r")
    here.fake.wait_requests(1)
    chat.send("why\x1b\rnot")
    chat.wait_for("not")
    chat.send("\x1b")
    chat.wait_for("feedback>")
    chat.send("\r")
    chat.wait_for("As you like.")
    assert "why\\nnot" in str(here.fake.requests[-1]["messages"][-1])


def test_a_pasted_tab_is_shown_as_space_and_sent_as_it_is(here, chat):
    """UI-52: each stood as `^I` in the line."""
    here.fake.script({"text": "Tidy."})
    chat.send("\x1b[200~a\tb\r\nc\td\x1b[201~")
    chat.wait_for("… c")
    chat.send("\r")
    chat.wait_for("Tidy.")
    assert "^I" not in chat.text and "a\\tb\\nc\\td" in str(here.fake.requests[-1]["messages"][-1])


def test_a_very_long_line_is_not_repeated_whole(desk):
    """UI-52: a pasted line of 200,000 characters filled 2,000 rows of the screen's history when it was sent."""
    desk.fake.script({"text": "That is long."})
    with desk.terminal(columns=80) as terminal:
        terminal.wait_for("new session")
        terminal.send("\x1b[200~")
        for _ in range(100):
            terminal.send("z" * 2000)
        terminal.send("\x1b[201~\r")
        terminal.wait_for("more characters")
        terminal.wait_for("That is long.")
        assert terminal.text.count("z") < 20_000
        terminal.send("\x04")
        terminal.wait()
    assert "z" * 200_000 in desk.fake.requests[-1]["messages"][0]["content"][0]["text"]


def test_a_pager_has_the_keys_and_the_screen_to_itself(here):
    """UI-52: the prompt came back beside it: half the keys were typed there, its status stood between the lines."""
    here.fake.script(
        {"tools": [{"name": "bash", "input": {"command": "seq 500"}}]}, {"text": "Counted."}, {"text": "Bye."}
    )
    pager = here.home / "pager"
    pager.write_text(PAGER)
    pager.chmod(0o755)
    here.environment["PAGER"] = str(pager)
    with here.terminal() as chat:
        chat.wait_for("lists commands")
        chat.send("count\r")
        chat.wait_for("ctx ·")
        for number in range(3):
            chat.send("/show 1\r")
            chat.wait_for("pager begins")
            began = chat.seen
            chat.send(f"down {number}\r")
            chat.wait_for(f"pager got down {number}")
            assert "claude" not in chat.text[began : chat.seen]
            chat.wait_for("0 files changed")  # and the prompt is back without a key
        chat.send("so long\r")
        chat.wait_for("Bye.")
    assert "down" not in str(here.fake.requests[-1]["messages"])


def test_esc_closes_an_open_menu_and_leaves_what_was_typed(chat):
    """UI-74: the menu stayed open, and in a turn, where Esc stops, the key did nothing at all."""
    chat.send("/e")
    chat.wait_for("leave plan mode")
    chat.send("\t")
    chat.wait_for("xecute")  # what Tab adds in the line
    drawn, end = len(chat.raw), time.monotonic() + HANG_S
    chat.send("\x1b")
    while len(chat.raw) == drawn:  # nothing else is drawn at a prompt that is idle
        assert time.monotonic() < end, "Esc changed nothing"
        time.sleep(0.01)
    chat.send("z\r")
    chat.wait_for("unknown command /ez")


def test_a_question_of_one_turn_breaks_between_its_parts(here):
    """UI-71: what can be answered was cut in the middle of words on a narrow terminal."""
    here.fake.script(
        {"tools": [{"name": "bash", "input": {"command": "make all"}}]}, {"text": "It is built."}
    )
    with here.terminal("--approval", "build it", columns=60) as chat:
        chat.wait_for("d details · ?\r\n")
        assert "e edit the command\r\na always bash(make all *)" in chat.text
        chat.send("n\r")
        chat.wait_for("It is built.")
        assert chat.wait() == 0


@pytest.mark.parametrize("command", ["/quit", "/exit"])
def test_a_command_leaves(chat, command):
    """UI-57: the line was taken, and the next prompt came: it was to be left before it had begun."""
    chat.send(f"{command}\r")
    assert chat.wait() == 0
    assert chat.is_restored()


def test_ctrl_c_stops_the_turn_at_a_dumb_terminal_too(here):
    """UI-55: there it left the chat, whatever ran and whatever was typed."""
    here.fake.script({"hang": True}, {"text": "Gone on."})
    here.environment["TERM"] = "dumb"
    with here.terminal() as chat:
        chat.wait_for("lists commands")
        chat.send("wait\r")
        here.fake.wait_requests(1)
        chat.send("\x03")
        chat.wait_for("ctx ·")
        chat.send("never mind")
        chat.wait_for("never mind")
        chat.send("\x03\rgo on\r")
        chat.wait_for("Gone on.")
        chat.send("/quit\r")
        assert chat.wait() == 0
    assert "never mind" not in str(here.fake.requests[-1]["messages"])


def test_a_dumb_terminal_shows_nothing_that_moves(here):
    """A spinner was written once and stood there; a screen reader reads it out, and the answer came below the prompt."""
    here.fake.script({"text": "one two three four", "deltas": 4, "gap_s": 0.2})
    here.environment["TERM"] = "dumb"
    with here.terminal() as chat:
        chat.wait_for("lists commands")
        chat.send("count\r")
        chat.wait_for("ctx ·")
        assert not any("\u2800" <= letter <= "\u28ff" for letter in chat.text), chat.text


def test_after_a_stop_the_prompt_says_what_it_wants(here):
    """`feedback>` alone made people look twice: is an answer owed, and to whom?"""
    here.fake.script({"hang": True})
    with here.terminal() as chat:
        chat.wait_for("lists commands")
        chat.send("wait\r")
        here.fake.wait_requests(1)
        chat.send("\x03")
        chat.wait_for("feedback> what it should do instead; Enter alone: nothing")
        chat.send("shorter")
        chat.wait_for("shorter")  # what is drawn again may be what changed only
