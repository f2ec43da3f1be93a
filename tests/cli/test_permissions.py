"""Answers that hold: `a` at a question, and `bowerbird permissions` (UI-71)."""

import json

from support.terminals import Terminal


def asks(desk, chat: Terminal, call: dict, number: int) -> None:
    desk.edit(call, answer=f"Done {number}.")
    chat.send(f"step {number}\r")
    chat.wait_for("The agent asks to run:")


def runs(desk, chat: Terminal, call: dict, number: int) -> None:
    """The call runs without a question."""
    desk.edit(call, answer=f"Done {number}.")
    chat.send(f"step {number}\r")
    chat.wait_for(f"Done {number}.")


def test_always_is_offered_with_its_rule_and_holds_until_it_is_taken_back(desk, written):
    """UI-71: by each client; the rule is on the screen before it is answered."""
    with desk.terminal("--approval", columns=110) as chat:
        chat.wait_for("new session")
        asks(desk, chat, written("src/b.txt", "hi\n"), 1)
        chat.wait_for("a always write_file(src/*)")
        chat.send("?\r")
        chat.wait_for("a e     the same, in every directory")
        chat.send("a nonsense\r")
        chat.send("a\r")
        chat.wait_for("Done 1.")
        runs(desk, chat, written("src/deep/c.txt", "hi\n"), 2)
        asks(desk, chat, written(".github/workflows/ci.yml", "on: push\n"), 3)
        chat.send("a\r")
        chat.wait_for("This call cannot be allowed for good.")
        chat.send("n\r")
        chat.wait_for("Done 3.")
        chat.send("\x04")
        chat.wait()
    [row] = json.loads(desk.ok("permissions", "--json"))
    assert (row["rule"], row["scope"], row["target"]) == ("write_file(src/*)", "workspace", str(desk.project))
    desk.edit(written("src/d.txt", "hi\n"))
    desk.ok("again", "--approval", "-q")
    assert "write_file(src/*)" in desk.ok("permissions")
    code, _, err = desk.run("permissions", "--remove", "9999")
    assert code != 0 and "no permission 9999" in err
    code, out, err = desk.run("permissions", "--remove", str(row["id"]))
    assert code == 0 and "taken back" in err and out == ""
    desk.edit(written("src/e.txt", "hi\n"))
    assert desk.run("again", "--approval", "-q")[0] == 4
