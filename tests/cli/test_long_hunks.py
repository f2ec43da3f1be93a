"""`land --patch` of what is longer than a terminal (UI-44)."""

import pytest
from support.terminals import COMMAND


@pytest.mark.parametrize("begin", ["land", ""])
def test_a_long_file_is_shown_in_part_and_whole_in_a_pager(desk, written, tmp_path, begin):
    """UI-44: 50,000 lines ran through the terminal before the question came; also in one line."""
    text = "".join(f"number {n}\n" for n in range(50_000)) + "x" * 500_000
    desk.edit(written("much.txt", text))
    desk.ok("write much", "-q")
    pager, seen = tmp_path / "pager", tmp_path / "seen"
    pager.write_text(f"#!/bin/sh\ncat > {seen}\necho pager done\n")
    pager.chmod(0o755)
    desk.environment["PAGER"] = str(pager)
    with desk.terminal(*([begin, "--patch"] if begin else ["--resume"])) as terminal:
        if not begin:
            terminal.wait_for("lists commands")
            terminal.send("/land --patch\r")
        terminal.wait_for("Land this new file? [y,n,a,d,p,q,?]")
        assert "number 50" in terminal.text and "number 40000" not in terminal.text
        assert "more lines; p shows all of it" in terminal.text, terminal.text[-400:]
        terminal.send("p\r")
        terminal.wait_for("pager done")
        terminal.wait_for("Land this new file?")
        shown = seen.read_text()
        assert "number 49999" in shown and "x" * 500_000 in shown
        terminal.send("y\r")
        terminal.wait_for("landed 1 change")
    assert (desk.project / "much.txt").read_text() == text


def test_what_is_not_a_terminal_gets_the_whole_hunk(desk, written, tmp_path):
    """UI-44: `land --patch > log`, asked on standard error."""
    desk.edit(written("much.txt", "".join(f"number {n}\n" for n in range(5_000))))
    desk.ok("write much", "-q")
    log = tmp_path / "log"
    command = ["sh", "-c", f'exec "$@" > {log}', "sh", *COMMAND]
    with desk.terminal("land", "--patch", command=command) as terminal:
        terminal.wait_for("Land this new file?")
        terminal.send("n\r")
        terminal.wait()
    assert "number 4999" in log.read_text()
