"""What the terminal shows of calls: diffs, running and failed commands, their order (UI-70, UI-85)."""

import json

import pytest
from support.desk import Desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory, models, servers, client):
    models.reset()
    with Desk(tmp_path_factory.mktemp("calls"), models, servers if client == "server" else None) as made:
        yield made


@pytest.fixture(scope="module")
def shared(desk):
    with desk.terminal(columns=80) as terminal:
        terminal.wait_for("lists commands")
        terminal.wait_for(">")
        yield terminal


@pytest.fixture
def chat(shared, models):
    models.reset()
    return shared


def bash(command):
    return {"name": "bash", "input": {"command": command}}


def edit(old, new):
    return {"name": "edit_file", "input": {"path": "a.txt", "old": old, "new": new}}


def test_an_edit_shows_its_lines_under_the_call(desk, chat, written):
    """UI-70; faces B6: overwriting a file said +20 where the diff was +4 -0."""
    desk.edit(edit("two", "2"))
    chat.send("edit\r")
    chat.wait_for("1 ✓ edit_file a.txt  +1 -1")
    chat.wait_for("2 - two")
    chat.wait_for("2 + 2")
    chat.wait_for("ctx ·")
    desk.edit(written("a.txt", "one\n2\nthree\nfour\n"))
    chat.send("overwrite\r")
    chat.wait_for("write_file a.txt  +1 -0")
    chat.wait_for("4 + four")
    chat.wait_for("ctx ·")


def test_a_long_edit_says_how_many_lines_more_and_where(desk, chat, written):
    """UI-70: up to 12 changed lines, then a count and the command that shows all."""
    desk.edit(written("long.txt", "".join(f"line {n}\n" for n in range(1, 31))))
    chat.send("write\r")
    chat.wait_for("write_file long.txt  +30 -0")
    chat.wait_for("12 + line 12")
    chat.wait_for("… 18 more changed lines: /show 4")
    chat.wait_for("ctx ·")
    chat.send("/show 4\r")
    chat.wait_for("30 + line 30")


def test_a_running_command_is_shown_from_its_start_and_a_failed_one_as_failed(desk, chat):
    """UI-70; faces B4, B6: only its last line of output was shown, and a tick when it failed."""
    desk.edit(bash("echo begun; while [ ! -e go ]; do sleep 0.1; done; exit 3"))
    chat.send("run\r")
    chat.wait_for("Ctrl+C stops")
    chat.wait_for("bash echo begun; while [ ! -e go ]")
    chat.wait_for("    begun")
    chat.send("\x03")
    chat.wait_for("feedback>")
    desk.edit(bash("echo ended; exit 3"))
    chat.send("again\r")
    chat.wait_for("✗ bash echo ended; exit 3")
    chat.wait_for("[exit code 3]")
    chat.wait_for("ctx ·")


def test_parallel_calls_keep_their_order(desk, chat):
    """UI-70; faces B6: they were printed as they ended (3, 5, 6, 4)."""
    slow = {"name": "bash", "input": {"command": "sleep 0.5; echo slow"}}
    desk.edit(slow, {"name": "read_file", "input": {"path": "a.txt"}}, {"name": "ls", "input": {}})
    chat.send("several\r")
    chat.wait_for("✓ bash sleep 0.5; echo slow")
    chat.wait_for("✓ read_file a.txt")
    chat.wait_for("✓ ls")
    chat.wait_for("ctx ·")


def test_one_shot_runs_name_only_commands_that_are_there(desk, models, written):
    """Faces B6: "… more lines: /show 1" where there is no /show; a failed command is one in JSON too."""
    models.reset()
    desk.edit(
        written("c.txt", "".join(f"line {n}\n" for n in range(30))), bash("seq 30; exit 1"), answer="Done."
    )
    code, out, err = desk.run("go")
    assert code == 0 and out == "Done.\n"
    assert "18 more changed lines: bowerbird diff " in err
    assert "26 more lines\n" in err and "/show" not in err
    models.reset()
    desk.edit(bash("exit 1"), answer="Done.")
    lines = desk.ok("again", "--output", "stream-json").splitlines()
    results = [frame for frame in map(json.loads, lines) if frame["type"] == "tool_result"]
    assert [frame["status"] for frame in results] == ["error"]


def test_a_resumed_session_shows_where_it_stands(desk, models, written):
    """UI-72; faces B5: the screen was empty, one had to know /history."""
    models.reset()
    models.script({"text": "\n\n".join(f"paragraph {n}" for n in range(60))}, {"text": "The second answer."})
    desk.ok("The first question")
    desk.ok("--resume=", "The second question")
    with desk.terminal("--resume=", columns=80) as chat:
        chat.wait_for("lists commands")
        chat.wait_for("… what was said before: /history all")
        chat.wait_for("paragraph 59")
        chat.wait_for("> The second question")
        chat.wait_for("The second answer.")
        assert "The first question" not in chat.text
        chat.send("/history all\r")
        chat.wait_for("> The first question")
        chat.send("\x04")
        assert chat.wait() == 0


def test_an_approval_shows_what_would_change(desk, models, written):
    """UI-71; faces B3: "The agent asks to run: write_file a", and no line of it."""
    models.reset()
    (desk.project / "b.txt").write_text("one\ntwo\nthree\n")
    with desk.terminal("--approval", columns=80) as chat:
        chat.wait_for("lists commands")
        edits = {"name": "edit_file", "input": {"path": "b.txt", "old": "two", "new": "zwei"}}
        patch = "--- a/b.txt\n+++ b/b.txt\n@@ -1,1 +1,1 @@\n-one\n+eins\n"
        calls = [written("new.txt", "hello\n"), edits, {"name": "apply_patch", "input": {"patch": patch}}]
        desk.edit(*calls, {"name": "edit_file", "input": {"path": "b.txt", "old": "absent", "new": "x"}})
        chat.send("change\r")
        chat.wait_for("The agent asks to run:")
        for part in (
            "write_file new.txt  +1 -0", "1 + hello", "edit_file b.txt  +1 -1", "2 - two", "2 + zwei",
            "apply_patch", "1 - one", "1 + eins", "edit_file b.txt", "no preview: it does not fit the file",
            "y once",
        ):  # fmt: skip
            chat.wait_for(part)
        chat.send("y\r")
        chat.wait_for("2 files changed: /diff")
        chat.send("\x04")
        assert chat.wait() == 0
