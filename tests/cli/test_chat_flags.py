"""Slash commands with their flags, through a real terminal, by each client (UI-44, UI-52, UI-85)."""

import os
import signal
from collections.abc import Callable
from typing import Any

from support.desk import Desk


def test_a_review_in_the_chat_by_hunk_by_path_and_by_force(
    desk: Desk, written: Callable[[str, str], dict[str, Any]]
) -> None:
    """`/land --patch`, `/land PATH`, `/diff PATH`, `/undo`, `/undo --force`, `/history n=1`, `/fork 1`."""
    project = desk.project
    (project / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 41)))
    edits = [
        {"name": "edit_file", "input": {"path": "long.txt", "old": "line 3\n", "new": "LINE 3\n"}},
        {"name": "edit_file", "input": {"path": "long.txt", "old": "line 30\n", "new": "LINE 30\n"}},
        written("b.txt", "hi\n"),
    ]
    desk.edit(*edits)
    with desk.terminal(columns=100) as chat:
        chat.wait_for("lists commands")
        chat.send("change it\r")
        chat.wait_for("2 files changed: /diff")
        chat.send("/diff b.txt\r")
        chat.wait_for("+hi")
        chat.send("/land --patch long.txt\r")
        chat.wait_for("(1/2) Land this hunk?")
        chat.send("n\r")
        chat.wait_for("(2/2) Land this hunk?")
        chat.send("?\r")
        chat.wait_for("land neither this")
        chat.send("y\r")
        chat.wait_for("landed 1 change as l_")
        landed = (project / "long.txt").read_text()
        assert "LINE 30" in landed and "LINE 3\n" not in landed and not (project / "b.txt").exists()
        chat.send("/land b.txt\r")
        chat.wait_for("Land 1 change? [y/N]")
        chat.send("y\r")
        chat.wait_for("landed 1 change as l_")
        (project / "b.txt").write_text("mine\n")
        chat.send("/undo\r")
        chat.wait_for("nothing was taken back; edited since:")
        chat.wait_for("/undo --force")
        assert (project / "b.txt").read_text() == "mine\n"
        chat.send("/undo --force\r")
        chat.wait_for("back (1 change)")
        assert not (project / "b.txt").exists()
        chat.send("/undo l_nope\r")
        chat.wait_for("l_nope is not a landing")
        chat.send("/history n=1\r")
        chat.wait_for("Done.")
        chat.send("/fork 7\r")
        chat.wait_for("has no turn 7")
        chat.send("/fork 1\r")
        chat.wait_for("a copy;")
        chat.send("\x04")
        assert chat.wait() == 0
    assert "Traceback" not in chat.text and "Error:" not in chat.text


def test_a_question_answered_at_another_door_leaves_the_chat(
    desk: Desk, written: Callable[[str, str], dict[str, Any]]
) -> None:
    """UI-56: over a server it stood there for ever."""
    desk.edit(written("b.txt", "hi\n"))
    with desk.terminal("--approval", columns=100) as chat:
        chat.wait_for("lists commands")
        chat.send("make b\r")
        chat.wait_for("The agent asks to run:")
        session = desk.ok("sessions").split()[0]
        desk.ok("approve", session)
        chat.wait_for("✓ write_file")
        chat.wait_for("1 file changed: /diff")
        chat.send("\x04")
        assert chat.wait() == 0


def test_a_declined_path_stays_and_the_rest_lands(
    desk: Desk, written: Callable[[str, str], dict[str, Any]]
) -> None:
    """UI-44: one `n` refused the whole landing."""
    project, flagged = desk.project, ".github/workflows/ci.yml"
    desk.edit(written(flagged, "on: push\n"), written("b.txt", "hi\n"))
    with desk.terminal(columns=100) as chat:
        chat.wait_for("lists commands")
        chat.send("change it\r")
        chat.wait_for("2 files changed: /diff")
        chat.send("/land\r")
        chat.wait_for("Land it? [y/N]")
        chat.send("n\r")
        chat.wait_for(f"stays on the branch: {flagged}")
        chat.wait_for("Land 1 change? [y/N]")
        chat.send("y\r")
        chat.wait_for("landed 1 change as l_")
        assert (project / "b.txt").read_text() == "hi\n" and not (project / flagged).exists()
        chat.send("/land\r")
        chat.wait_for("Land it? [y/N]")
        chat.send("n\r")
        chat.wait_for("nothing was chosen; nothing landed")
        chat.send("\x04")
        assert chat.wait() == 0
    code, _, err = desk.run("land", "--yes")
    assert code == 4 and "--accept PATH" in err and not (project / flagged).exists()


def test_a_declined_path_of_what_is_included_is_asked_about_once(
    desk: Desk, written: Callable[[str, str], dict[str, Any]]
) -> None:
    """UI-44, GI-7: what is included beside it lands."""
    (desk.project / ".gitignore").write_text("out/\n")
    desk.edit(written("out/.envrc", "x\n"), written("out/log", "1\n"))
    with desk.terminal(columns=100) as chat:
        chat.wait_for("lists commands")
        chat.send("change it\r")
        chat.wait_for("ctx · 0 files changed")
        chat.send("/land --include out\r")
        chat.wait_for("Land it? [y/N]")
        chat.send("n\r")
        chat.wait_for("stays on the branch: out/.envrc")
        chat.wait_for("Land 1 change? [y/N]")
        chat.send("y\r")
        chat.wait_for("landed 1 change as l_")
        assert (desk.project / "out/log").exists() and not (desk.project / "out/.envrc").exists()
        chat.send("\x04")
        assert chat.wait() == 0


def test_a_closed_terminal_stops_the_turn_and_keeps_everything(
    desk: Desk, written: Callable[[str, str], dict[str, Any]]
) -> None:
    """UI-61, UI-68: SIGHUP; nothing landed, resumable."""
    desk.fake.script({"tools": [written("b.txt", "hi\n")]}, {"hang": True})
    with desk.terminal() as chat:
        chat.wait_for("lists commands")
        chat.wait_for(">")
        chat.send("make b\r")
        desk.fake.wait_requests(2)
        os.kill(chat.process.pid, signal.SIGHUP)
        assert chat.wait() == 129
    desk.fake.script({"text": "Finished."})
    if not desk.is_server:
        assert "unfinished" in desk.ok("sessions") and "unfinished" in desk.ok("show")
    assert desk.ok("resume") == "Finished.\n"
    assert not (desk.project / "b.txt").exists()
