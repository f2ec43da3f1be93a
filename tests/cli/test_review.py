"""diff, land, undo, landings, discard, fork, sessions, config, doctor as people run them."""

import json
import stat
import subprocess

import pytest


@pytest.fixture
def changed(desk, written):
    """A session whose branch adds, edits, deletes, renames, changes a mode, a binary, a last line."""
    project = desk.project
    (project / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 61)))
    (project / "gone.txt").write_text("bye\n")
    (project / "old name.txt").write_text("moved content, long enough to be found\n")
    (project / "end.txt").write_text("with newline\n")
    edits = [
        {"name": "edit_file", "input": {"path": "long.txt", "old": "line 3\n", "new": "LINE 3 日本語\n"}},
        {"name": "edit_file", "input": {"path": "long.txt", "old": "line 30\n", "new": "LINE 30\n"}},
        {"name": "edit_file", "input": {"path": "long.txt", "old": "line 58\n", "new": "LINE 58\n"}},
        written("dir/new.txt", "neu\n"),
        written("end.txt", "no newline"),
        {"name": "delete_file", "input": {"path": "gone.txt"}},
        {"name": "move_file", "input": {"src": "old name.txt", "dst": "new name.txt"}},
    ]
    desk.edit(*edits)
    desk.ok("change everything", "-q")
    return desk


def test_the_piped_diff_applies_with_git(changed, tmp_path):
    """UI-43, acceptance 13."""
    patch = changed.ok("diff")
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", str(changed.project), str(copy)], check=True)
    subprocess.run(["git", "init", "-q"], cwd=copy, check=True)
    subprocess.run(["git", "apply", "--check", "-"], input=patch.encode(), cwd=copy, check=True)
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=copy, check=True)
    assert (copy / "end.txt").read_bytes() == b"no newline"
    assert not (copy / "gone.txt").exists() and (copy / "new name.txt").exists()


def test_the_piped_diff_is_the_files_bytes_in_any_locale(desk, tmp_path):
    """UI-43: what another program reads is neither escaped nor recoded, for text that is not UTF-8 either."""
    (desk.project / "latin.txt").write_bytes(b"caf\xe9\nwith milk\n")
    command = "printf 'caf\\351\\nwith sugar\\n' > latin.txt; printf 'gr\\303\\274n\\n' > green.txt"
    desk.edit({"name": "bash", "input": {"command": command}})
    desk.ok("sweeten it", "-q")
    for locale in ({}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}):
        with desk.start("diff", env={**desk.environment, **locale}) as process:
            patch, _ = process.communicate()
        copy = tmp_path / "-".join(["copy", *locale])
        subprocess.run(["cp", "-a", str(desk.project), str(copy)], check=True)
        subprocess.run(["git", "apply", "-"], input=patch, cwd=copy, check=True)
        assert (copy / "latin.txt").read_bytes() == b"caf\xe9\nwith sugar\n", locale
        assert (copy / "green.txt").read_bytes() == "grün\n".encode(), locale


def test_diff_of_paths_counts_and_json(changed):
    """UI-43: a word that is no session is a path."""
    assert changed.ok("diff", "dir").count("diff --git") == 1
    assert "diff --git a/end.txt" in changed.ok("diff", "end.txt")
    counts = changed.ok("diff", "--stat")
    assert "D  gone.txt" in counts and "M  long.txt" in counts and "+3 -3" in counts
    data = json.loads(changed.ok("diff", "--json"))
    assert {row["path"] for row in data["written"]} >= {"/long.txt", "/dir/new.txt"}
    assert changed.ok("diff", "/dir/new.txt") == changed.ok("diff", "dir/new.txt"), "as --json names it"
    (session,) = json.loads(changed.ok("sessions", "--json"))
    assert changed.ok("diff", session["id"][:5], "dir") == changed.ok("diff", "dir")
    for words in (["diff", "9999"], ["diff", "9999", "--stat"], ["diff", "9999", "--json"],
                  ["land", "9999", "--yes"], ["land", "9999", "--yes", "--json"]):  # fmt: skip
        code, out, err = changed.run(*words)
        assert code == 2 and out == "" and "'9999' is neither a session nor a path" in err, (words, code, err)
        assert err.count("\n") == 1, "one slip, one line"


def test_a_renamed_file_with_an_edit_is_one_line_of_the_counts(desk):
    """UI-87: it looked like a file of 41 new lines, and another that was deleted."""
    (desk.project / "old.py").write_text("".join(f"number_{n} = {n}\n" for n in range(40)))
    desk.edit(
        {"name": "move_file", "input": {"src": "old.py", "dst": "pkg/new.py"}},
        {"name": "edit_file", "input": {"path": "pkg/new.py", "old": "number_7 = 7\n", "new": "seven = 7\n"}},
    )
    desk.ok("move it", "-q")
    lines = desk.ok("diff", "--stat").splitlines()
    assert lines == ["R  old.py → pkg/new.py  +1 -1", "1 file, +1 -1"]
    (row,) = json.loads(desk.ok("diff", "--json"))["written"]
    assert (row["renamed_from"], row["similarity"]) == ("/old.py", 97)


def test_a_renamed_file_lands_as_one_change(desk):
    """UI-44: as the diff before it counts, and the undo after it."""
    desk.edit({"name": "move_file", "input": {"src": "a.txt", "dst": "b.txt"}})
    desk.ok("move it", "-q")
    assert "1 file" in desk.ok("diff", "--stat")
    said = desk.run("land", "--yes")
    assert "landed 1 change as" in said[1] + said[2]
    said = desk.run("undo", "--yes")
    assert "(1 change)" in said[1] + said[2]


def test_a_directory_with_a_hidden_file_stays_and_the_reason_is_said(desk):
    """D-10, WS-9: the agent deletes what it sees; nothing that it cannot see is ever deleted by a landing."""
    project = desk.project
    (project / "conf").mkdir()
    (project / "conf/.env").write_text("SECRET=1\n")
    (project / "conf/a.txt").write_text("a\n")
    desk.edit({"name": "delete_file", "input": {"path": "conf", "recursive": True}})
    desk.ok("remove the directory", "-q")
    for more in ([], ["--force"]):
        code, _, err = desk.run("land", "--yes", *more)
        assert code == 3 and "nothing landed" in err
        assert "conf: dir_gained (it stays: it holds files that the branch does not show" in err
        assert (project / "conf/a.txt").exists()
    code, out, err = desk.run("land", "--yes", "--partial")
    assert code == 3 and "landed" in out + err and "hidden ones such as .env" in err
    assert (project / "conf/.env").read_text() == "SECRET=1\n" and not (project / "conf/a.txt").exists()
    desk.ok("undo")
    assert (project / "conf/a.txt").read_text() == "a\n"
    assert (project / "conf/.env").read_text() == "SECRET=1\n"


def test_land_some_then_all_then_undo_restores_every_byte(changed):
    """UI-44, UI-45."""
    before = {p.name: p.read_bytes() for p in changed.project.iterdir() if p.is_file()}
    assert "landed 1 change" in changed.ok("land", "dir", "--yes")
    assert (changed.project / "dir/new.txt").read_text() == "neu\n"
    assert "LINE 3" not in (changed.project / "long.txt").read_text()
    landed = json.loads(changed.ok("land", "--yes", "--json"))
    assert landed["id"].startswith("l_") and not (changed.project / "gone.txt").exists()
    assert changed.ok("diff") == ""
    code, out, err = changed.run("land", "dir", "--yes")
    assert (code, out) == (0, "") and "the branch does not change dir; nothing landed" in err
    assert "neither dir nor typo.txt; nothing landed" in changed.run("land", "dir", "typo.txt", "--yes")[2]
    assert "there are no changes to land; nothing landed" in changed.run("land", "--yes")[2]
    listed = json.loads(changed.ok("landings", "--json"))
    assert [row["state"] for row in listed] == ["done", "done"]
    changed.ok("undo")
    changed.ok("undo")
    after = {p.name: p.read_bytes() for p in changed.project.iterdir() if p.is_file()}
    assert after == before and not (changed.project / "dir/new.txt").exists()


def test_a_conflict_lands_nothing_and_lists_it(changed):
    """UI-60: exit 3."""
    (changed.project / "end.txt").write_text("mine\n")
    code, out, err = changed.run("land", "--yes")
    assert code == 3 and out == "" and "end.txt: both_modified" in err
    assert "--partial lands the rest, --force the agent's version" in err, (
        "what to do is said, as for marked paths"
    )
    assert (changed.project / "gone.txt").exists()
    code, _, err = changed.run("land", "--yes", "--partial")
    assert code == 3 and "end.txt" in err and not (changed.project / "gone.txt").exists()
    assert (changed.project / "end.txt").read_text() == "mine\n"
    changed.ok("land", "--yes", "--force")
    assert (changed.project / "end.txt").read_text() == "no newline"


def test_yes_is_no_answer_for_a_flagged_path(desk, written):
    """UI-44: it needs --accept."""
    desk.edit(written(".github/workflows/ci.yml", "on: push\n"), written("ok.txt", "fine\n"))
    desk.ok("make", "-q")
    code, _, err = desk.run("land", "--yes")
    assert code == 4 and "ci.yml" in err and not (desk.project / "ok.txt").exists()
    assert "runs on the build server, with its secrets" in err  # a reason, not a code word only
    desk.ok("land", "--yes", "--accept", ".github/workflows/ci.yml")
    assert (desk.project / ".github/workflows/ci.yml").exists()


def test_patch_lands_exactly_the_chosen_hunks_at_40_columns(changed):
    """UI-44, acceptance 5 and 14: wide characters, under a pseudo-terminal."""
    with changed.terminal("land", "--patch", "long.txt", columns=40) as terminal:
        terminal.wait_for("(1/3) Land this hunk")
        assert "LINE 3 日本語" in terminal.text
        terminal.send("n\r")
        terminal.wait_for("(2/3)")
        terminal.send("?\r")
        terminal.wait_for("land neither this")
        terminal.send("y\r")
        terminal.wait_for("(3/3)")
        terminal.send("n\r")
        terminal.wait_for("landed 1 change")
        assert terminal.wait() == 0
    lines = (changed.project / "long.txt").read_text().splitlines()
    assert [line for line in lines if line.startswith("LINE")] == ["LINE 30"]
    changed.ok("undo")
    assert "LINE" not in (changed.project / "long.txt").read_text()


def test_a_terminal_asks_before_landing_and_for_each_flagged_path(desk, written):
    desk.edit(written("AGENTS.md", "obey\n"), written("ok.txt", "fine\n"))
    desk.ok("make", "-q")
    with desk.terminal("land") as terminal:
        terminal.wait_for("AGENTS.md needs its own review: agent-config")
        terminal.wait_for("[y/N]")
        terminal.send("y\r")
        terminal.wait_for("Land 2 changes? [y/N]")
        terminal.send("y\r")
        terminal.wait_for("landed 2 changes")
        assert terminal.wait() == 0
    assert (desk.project / "AGENTS.md").exists()


def test_a_flagged_path_that_is_declined_leaves_the_others_to_land(desk, written):
    """UI-44; faces B1: one `n` refused the whole landing."""
    desk.edit(written("AGENTS.md", "obey\n"), written("ok.txt", "fine\n"))
    desk.ok("make", "-q")
    with desk.terminal("land") as terminal:
        terminal.wait_for("AGENTS.md needs its own review: agent-config")
        terminal.wait_for("[y/N]")
        terminal.send("n\r")
        terminal.wait_for("Land 1 change? [y/N]")
        terminal.send("y\r")
        terminal.wait_for("landed 1 change")
        terminal.wait()
    assert (desk.project / "ok.txt").exists() and not (desk.project / "AGENTS.md").exists()


def test_discard_keeps_the_session_and_the_work_in_the_trash(changed):
    assert changed.run("discard")[0] == 2  # nobody can be asked
    assert "discarded" in changed.ok("discard", "--yes")
    assert changed.ok("diff") == ""
    changed.fake.script({"text": "ok"})
    changed.ok("go on", "--resume")
    assert len(json.loads(changed.ok("sessions", "--json"))) == 1


def test_fork_goes_on_from_a_turn(desk, written):
    """UI-45."""
    desk.edit(written("one.txt", "1\n"))
    desk.ok("first", "-q")
    desk.edit(written("two.txt", "2\n"))
    desk.ok("second", "--resume", "-q")
    child = json.loads(desk.ok("fork", "--turn", "1", "--json"))["conversation_id"]
    desk.edit({"name": "list_files", "input": {}})
    desk.ok("look", f"--resume={child}", "-q")
    listed = json.dumps(desk.fake.requests[-1]["messages"])
    assert "one.txt" in listed and "two.txt" not in listed
    assert desk.run("fork", "--turn", "9")[0] == 2
    shown = desk.ok("show", child)
    assert "> first" in shown and "second" not in shown


def test_sessions_can_be_renamed_shown_and_deleted(desk):
    """UI-42."""
    desk.fake.script({"text": "Hello \x1b[2Jthere"})
    desk.ok("greet me", "-q")
    (session,) = json.loads(desk.ok("sessions", "--json"))
    desk.ok("rename", session["id"][:4], "Greeting")
    assert "Greeting" in desk.ok("sessions")
    shown = desk.ok("show")
    assert "\\x1b[2J" in shown and "\x1b" not in shown
    assert desk.run("delete", session["id"])[0] == 2
    desk.ok("delete", session["id"], "--yes")
    assert desk.ok("sessions", "--all") == ""


def test_sessions_are_found_by_words(desk):
    """UI-82, here and over a server alike."""
    desk.fake.script({"text": "The jam is in the cellar."}, {"text": "Six."})
    desk.ok("Where is the Jam?", "-q")
    desk.ok("How many shelves?", "-q")
    lines = desk.ok("sessions", "--grep", "CELLAR jam").splitlines()
    assert len(lines) == 2 and "Where is the Jam?" in lines[0]
    assert lines[1] == "    The jam is in the cellar."
    (row,) = json.loads(desk.ok("sessions", "--grep", "shelves", "--json"))
    assert row["found"] == {"cursor": 2, "role": "user", "text": "How many shelves?"}
    assert desk.ok("sessions", "--grep", "jam shelves") == ""
    code, _, err = desk.run("sessions", "--grep", " ")
    assert (code, "needs words" in err) == (2, True)


def test_config_commands(desk):
    """CF-82 … CF-86."""
    desk.ok("config", "init")  # settings that only happen to lie here are read by nobody (D-17)
    (desk.project / "config.yaml").write_text("agent: {max_turn: 3}\n")
    code, out, _ = desk.run("config", "check")
    assert code == 0 and "did you mean max_turns?" in out
    assert desk.run("config", "check", "--strict")[0] == 3
    (desk.project / "config.yaml").write_text("server: {port: 0}\nagent: {max_turns: 7}\n")
    code, out, _ = desk.run("config", "check", "--json")
    assert code == 78 and len(json.loads(out)["errors"]) == 1
    shown = json.loads(desk.ok("config", "show", "--json", "--origin"))
    assert shown["agent.max_turns"]["value"] == 7 and shown["agent.max_turns"]["origin"].endswith(
        "config.yaml:2"
    )
    assert "out of range" in shown["server.port"]["problem"]
    assert "integer 1–10,000" in desk.ok("config", "explain", "agent.max_turns")
    assert desk.run("config", "explain", "agent.max_turn")[0] == 2
    assert json.loads(desk.ok("config", "schema"))["properties"]["agent"]
    assert desk.run("config", "init")[0] == 1  # it is there
    desk.ok("config", "init", "other.yaml")
    assert stat.S_IMODE((desk.project / "other.yaml").stat().st_mode) == 0o600
    desk.ok("config", "check", "--config", "other.yaml", "--strict")


def test_a_projects_env_file_steers_nothing(desk):
    """CF acceptance 6: no connection to its database is tried."""
    (desk.project / ".env").write_text("DATABASE_URL=postgresql://ann:pw@127.0.0.1:1/x\nMODEL=other\n")
    desk.fake.script({"text": "ok"})
    environment = desk.environment | {"DATABASE_URL": "postgresql://ann:pw@127.0.0.1:1/x"}
    assert desk.run("hi", env=environment)[0] == 0
    assert desk.fake.requests[-1]["model"] == "claude-sonnet-5"


def test_doctor_names_what_is_wrong_and_what_to_do(desk):
    """UI-48."""
    code, out, _ = desk.run("doctor", "--json", "--online")
    report = json.loads(out)
    rows = {row["name"]: row for row in report["checks"]}
    assert code in (0, 3) and rows["model call"]["state"] == "ok"
    assert {"settings", "data directory", "database", "sandbox", "model", "port", "clock"} <= set(rows)
    del desk.environment["ANTHROPIC_API_KEY"]
    code, out, _ = desk.run("doctor")
    assert code == 1 and "✗ model: ANTHROPIC_API_KEY is not set" in out
    assert desk.run("doctor", "--config", "gone.yaml")[0] == 1


def test_completion_offers_commands_flags_sessions_and_presets(desk):
    """UI-49."""
    desk.fake.script({"text": "ok"})
    desk.ok("hi", "-q")
    (session,) = json.loads(desk.ok("sessions", "--json"))

    def words(*given: str) -> list[str]:
        return desk.ok("complete-words", "--", *given).split()

    assert "diff" in words("d") and "discard" in words("d") and "land" not in words("d")
    assert session["id"] in words("show", "")
    assert words("run", "--preset", "co") == ["coding"]
    assert "--partial" in words("land", "--p")
    assert "agent.max_turns" in words("config", "explain", "agent.max_t")
    for shell in ("bash", "zsh", "fish"):
        assert "complete-words" in desk.ok("completion", shell)
    assert desk.run("completion", "tcsh")[0] == 2


def test_tools_and_skills_are_listed(desk):
    tools = {row["name"]: row for row in json.loads(desk.ok("tools", "--json"))}
    assert tools["read_file"]["effect"] == "read" and tools["write_file"]["effect"] == "branch"
    assert "bundled" in desk.ok("skills")


def test_a_diff_folds_caches_and_what_git_ignores_unless_they_are_named(desk, written):
    """WS-65: ignored entries are folded in every door."""
    (desk.project / ".gitignore").write_text("*.log\n")
    desk.edit(
        written("ok.txt", "fine\n"),
        written("run.log", "long\n"),
        *[written(f"a/b/__pycache__/{n}.pyc", "x") for n in "xy"],
    )
    desk.ok("make", "-q")
    code, out, err = desk.run("diff")
    assert code == 0 and "ok.txt" in out and "run.log" not in out and "x.pyc" not in out
    assert "run.log  1 file, 5 B, stays on the branch; --include run.log lands it" in err
    assert "a/b/__pycache__/  2 files, 2 B, stays on the branch; --include a/b/__pycache__ lands it" in err
    assert "run.log" in desk.ok("diff", "run.log")
    assert "ok.txt" in desk.ok("diff", "--stat") and "run.log" not in desk.ok("diff", "--stat")
    found = json.loads(desk.ok("diff", "--json"))
    assert found["folded"] == [
        {"path": "/a/b/__pycache__/", "files": 2, "bytes": 2}, {"path": "/run.log", "files": 1, "bytes": 5},
    ]  # fmt: skip
    assert [row["path"] for row in found["written"]] == ["/ok.txt"] and _listed(desk) == 1
    desk.ok("land", "--yes", "--include", "a/b/__pycache__")
    assert (desk.project / "ok.txt").exists() and (desk.project / "a/b/__pycache__/x.pyc").exists()
    assert not (desk.project / "run.log").exists()


def _listed(desk):
    (session,) = json.loads(desk.ok("sessions", "--json"))
    return session["changed_files"]


def test_the_list_counts_again_after_a_landing_an_undo_and_a_discard(desk, written):
    """F1 (R1): `sessions` went on saying "1 file" after `bowerbird land`."""
    desk.edit(written("a.txt", "hi\n"))
    desk.ok("write it", "-q")
    assert _listed(desk) == 1
    desk.ok("land", "--yes")
    assert _listed(desk) == 0
    desk.edit(written("b.txt", "hi\n"))
    desk.ok("write more", "--resume", "-q")
    assert _listed(desk) == 1
    desk.ok("discard", "--yes")
    assert _listed(desk) == 0


def test_what_a_policy_lands_late_is_counted_too(desk, written):
    """F1: a turn that failed leaves its file; the next turn changes nothing, but its end lands the file."""
    desk.fake.script(
        {"tools": [written("late.txt", "hi\n")]}, {"status": 400, "body": {"error": {"message": "no"}}}
    )
    assert desk.run("write it", "--land", "turn", "-q")[0] == 1
    assert not (desk.project / "late.txt").exists() and _listed(desk) == 1
    desk.fake.script({"text": "Nothing to do."})
    desk.ok("anything left?", "--resume", "-q")
    assert (desk.project / "late.txt").exists() and _listed(desk) == 0
