"""A person who looks elsewhere is told that a turn has ended or asks (UI-81)."""

import pytest

from bowerbird.cli.terminal.notifying import WATCHED_S, Notifier

WAITED = {"TERM": "xterm-256color"}


def told(
    *, how="auto", focused: bool | None = False, seconds=WATCHED_S + 1, text="Tidy up: done", **environment
):
    """Return what a terminal is sent for a turn that took so long."""
    sent: list[str] = []
    times = iter([0.0, 0.0, seconds])
    notifier = Notifier(sent.append, how, {**WAITED, **environment}, lambda: next(times))
    notifier.begin()
    notifier.is_focused = focused
    notifier.tell(text)
    return "".join(sent)


def test_only_a_long_turn_is_told_to_who_looks_elsewhere():
    """UI-81: the bell where the terminal says nothing of its focus."""
    assert told() == "\x1b]777;notify;Bowerbird;Tidy up: done\x1b\\\a"
    assert told(seconds=WATCHED_S) == told(focused=True) == told(how="off") == ""
    assert told(focused=None) == told(how="bell") == "\a"


@pytest.mark.parametrize("environment", [{"TERM_PROGRAM": "iTerm.app"}, {"TERM": "xterm-kitty"}])
def test_each_terminal_is_told_in_its_way(environment):
    assert told(**environment) == "\x1b]9;Bowerbird: Tidy up: done\x1b\\\a"


def test_a_title_ends_no_sequence():
    """Titles come from what was said: none gets out of the notification."""
    assert told(text="a\x1b\\b\x07c;d\u202ee\nf").count("\x1b") == 2
    assert ";d" not in told(text="x;d")


def test_a_terminal_that_knows_nothing_of_it_is_asked_nothing():
    sent: list[str] = []
    for term in ("linux", "dumb", ""):
        Notifier(sent.append, "auto", {"TERM": term}).watch(True)
    Notifier(sent.append, "off", WAITED).watch(True)
    assert sent == []


def test_the_prompt_hears_of_the_focus_and_takes_its_reports_for_no_text(desk):
    """UI-81: mode 1004 is set and taken back; the reports of a terminal are not typed."""
    with desk.terminal(columns=100) as chat:
        chat.wait_for("lists commands")
        desk.fake.script({"text": "Hello."})
        chat.send("\x1b[Ohi\x1b[I there\r")
        chat.wait_for("Hello.")
        assert "hi there" in str(desk.fake.requests[0]["messages"])
        assert chat.raw.count(b"\x1b[?1004h") == 1 and b"\x07" not in chat.raw
        chat.send("\x04")
        chat.wait()
        assert chat.raw.count(b"\x1b[?1004l") == 1


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ({"text": "Tidy.", "ttft_s": WATCHED_S + 0.5}, "tidy up: done"),
        (
            {"ttft_s": WATCHED_S + 0.5, "tools": [{"name": "bash", "input": {"command": "true"}}]},
            "the agent asks you something",
        ),
    ],
)
def test_a_long_turn_s_end_is_told_in_words(here, last, told):
    """UI-81, UI-84: it said "tidy up: end_turn"."""
    here.fake.script(last)
    with here.terminal("--approval", columns=100) as chat:
        chat.wait_for("lists commands")
        chat.send("\x1b[Otidy up\r")
        chat.wait_for("answer>" if "tools" in last else "ctx ·")
        assert f"777;notify;Bowerbird;{told}\x1b".encode() in chat.raw
