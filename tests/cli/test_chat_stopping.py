"""Ctrl+C in the interactive session, at every moment of a message's way (UI-55, UI-85)."""

import shlex
import signal
import time

import pytest
from support.terminals import COMMAND, Terminal

ECHO = b"\x1b[1m> wait"  # bold as a whole: the line as it stays, not what is typed at the prompt


@pytest.fixture
def chat(desk):
    """A session at its prompt."""
    with desk.terminal() as terminal:
        terminal.wait_for("lists commands")
        terminal.wait_for(">")
        yield terminal


def test_ctrl_c_stops_the_turn_however_soon_it_comes_after_the_message(desk, chat):
    """UI-55: while the message was being sent, it ended the conversation."""
    desk.fake.answer(lambda body, n: {"hang": True})
    for delay in (0.0, 0.01, 0.03, 0.06, 0.1, 0.2):
        chat.send("wait\r")
        chat.wait_for("> wait")  # a signal drops what is typed ahead
        time.sleep(delay)
        chat.send("\x03")
        chat.wait_for("feedback>")
        chat.send("\r")
        chat.wait_for(">")
    desk.fake.answer(lambda body, n: {"text": "still here"})
    chat.send("hello\r")
    chat.wait_for("still here")
    chat.wait_for("ctx ·")


def test_a_signal_is_for_the_line_that_was_typed_last_however_soon_it_comes(desk, chat):
    """UI-55: one that came while the prompt ended was taken for a key at an empty prompt, or was lost."""
    desk.fake.answer(lambda body, n: {"hang": True})
    sent = 0
    for n in range(40):
        chat.send("wait")
        chat.wait_for("wait")
        before, drawn = chat.seen, len(chat.raw)
        chat.send("\r")
        time.sleep(n % 20 * 0.0005)
        chat.process.send_signal(signal.SIGINT)
        chat.send("/help\r")
        chat.wait_for("/compact")  # lines are taken in order
        if ECHO in chat.raw[drawn:]:
            chat.seen, sent = before, sent + 1
            chat.wait_for("feedback>")
            chat.send("\r")
        assert "Ctrl+C again leaves" not in chat.text[before:]
    assert sent, "no message was sent before the signal came"
    desk.fake.answer(lambda body, n: {"text": "still here"})
    chat.send("\rhello\r")
    chat.wait_for("still here")
    chat.wait_for("ctx ·")


def test_ctrl_z_leaves_for_the_shell_and_fg_brings_the_typed_words_back(desk):
    """Twice, because the first way back must leave the terminal as the prompt needs it."""
    shell = ["bash", "--norc", "--noprofile", "-i"]
    with Terminal([], cwd=desk.project, environment=desk.environment, command=shell) as terminal:
        terminal.send(f"{' '.join(map(shlex.quote, COMMAND))}\r")
        terminal.wait_for("/help")
        terminal.wait_for("new session")
        terminal.send("hel")
        terminal.wait_for("hel")
        for _ in range(2):
            terminal.send("\x1a")
            terminal.wait_for("Stopped")
            terminal.send("echo in the $((20 + 22))nd shell\r")
            terminal.wait_for("in the 42nd shell")
            terminal.send("fg\r")
            terminal.wait_for("> hel")
        desk.fake.script({"text": "How do you do."})
        terminal.send("lo\r")
        terminal.wait_for("How do you do.")
    assert "^Z" not in terminal.text


def test_a_stopped_chat_leaves_the_terminal_as_it_was_given(desk):
    """Ctrl+S did nothing in a shell that does not set its terminal anew, and the pager's flow was uncontrolled."""
    environment = {**desk.environment, "PS1": "go on: "}
    with Terminal([], cwd=desk.project, environment=environment, command=["sh", "-i"]) as terminal:
        terminal.send(f"stty -g > ../before; {' '.join(map(shlex.quote, COMMAND))}\r")
        terminal.wait_for("/help")
        terminal.wait_for("new session")
        terminal.send("\x1a")
        terminal.wait_for("Stopped")
        terminal.send("stty -g | cmp - ../before && echo as it was giv''en\r")
        terminal.wait_for("as it was given")
        terminal.send("fg\r")
        terminal.wait_for("new session")
        terminal.send("/quit\r")
        terminal.wait_for("go on: ")
        terminal.send("stty -g | cmp - ../before && echo as it be''gan\r")
        terminal.wait_for("as it began")


def test_ctrl_c_gives_up_the_command_that_asks(desk, written):
    """UI-55: at a hunk only the help came again, however often; nothing but a letter led out."""
    desk.edit(written("a.txt", "1\ntwo\nthree\n"), written("new.txt", "x\n"))
    with desk.terminal() as chat:
        chat.wait_for("lists commands")
        chat.send("go\r")
        chat.wait_for("2 files changed: ")
        chat.send("/land --patch\r")
        chat.wait_for("[y,n,a,d,p,q,?]")
        chat.send("y\r")
        chat.wait_for("[y,n,a,d,p,q,?]")
        chat.send("\x03")
        chat.wait_for("stopped; nothing was done")
        chat.send("/land\r")
        chat.wait_for("[y/N]")
        chat.send("\x04")
        chat.wait_for("continue with: bowerbird --resume=")  # no turn ran that could have been stopped
        assert chat.wait() == 0
    assert (desk.project / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert not (desk.project / "new.txt").exists()


def test_leaving_a_running_command_says_how_to_come_back_and_no_more(desk):
    """UI-74: its failure came after the goodbye: "the store is closed"."""
    with desk.terminal() as chat:
        chat.wait_for("lists commands")
        chat.send("!echo begun; sleep 60\r")
        chat.wait_for("! echo begun")
        chat.send("\x04")
        chat.wait_for("continue with: bowerbird --resume=")
        assert chat.wait() == 0
    assert chat.text.rpartition("--resume=")[2].count("\n") == 1
