"""Landing and undo through `Branch` and `Workspace` (WS-49 … WS-58, acceptance 2, 3, 4, 9, 10, 12)."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.trees import read_tree

from bowerbird.core.errors import InvalidWorkspace, LandingRefused, NotFound, Stale
from bowerbird.workspace import Branch, FlagRules, Refused, Workspace

LINES = b"".join(b"line %d\n" % n for n in range(1, 121))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    (made / "a.txt").write_bytes(LINES)
    (made / "b.txt").write_bytes(b"b\n")
    return made


@pytest.fixture
def workspace(root: Path, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(root, data_dir=tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def branch(workspace: Workspace) -> Branch:
    return workspace.branch()


async def replace(branch: Branch, path: str, old: bytes, new: bytes) -> None:
    data = await branch.read_bytes(path)
    assert old in data
    await branch.write_file(path, data.replace(old, new))


def reasons(error: LandingRefused) -> dict[str, str]:
    return {row["path"]: row["reason"] for row in error.refused}


async def test_landing_keeps_the_users_line_and_undo_keeps_it_too(branch: Branch, root: Path) -> None:
    """Acceptance 3."""
    await replace(branch, "a.txt", b"line 100\n", b"the agent's\n")
    (root / "a.txt").write_bytes(LINES.replace(b"line 1\n", b"the user's\n", 1))
    (entry,) = branch.plan_landing().entries
    assert (entry.drift, entry.op) == ("mergeable", "modify")
    landing = branch.land()
    both = LINES.replace(b"line 1\n", b"the user's\n", 1).replace(b"line 100\n", b"the agent's\n")
    assert (root / "a.txt").read_bytes() == both and landing.entries[0].merged
    assert await branch.read_bytes("a.txt") == both  # what landed is the user's again
    assert branch.changes().record() == {"written": [], "deleted": []}
    landing.undo()
    assert (root / "a.txt").read_bytes() == LINES.replace(b"line 1\n", b"the user's\n", 1)
    assert branch.changes().record() == {"written": ["/a.txt"], "deleted": []}  # pending again


async def test_a_conflict_refuses_all_and_partial_lands_the_rest(branch: Branch, root: Path) -> None:
    """WS-51, WS-52."""
    await replace(branch, "a.txt", b"line 5\n", b"agent\n")
    await branch.write_file("new.txt", "n\n")
    (root / "a.txt").write_bytes(LINES.replace(b"line 5\n", b"user\n"))
    before = read_tree(root)
    with pytest.raises(LandingRefused) as caught:
        branch.land()
    assert reasons(caught.value) == {"/a.txt": "both_modified"} and read_tree(root) == before
    landing = branch.land(partial=True)
    assert landing.refused == (Refused("/a.txt", "both_modified"),)
    assert (root / "new.txt").read_bytes() == b"n\n" and branch.changes().written == ("/a.txt",)
    forced = branch.land(force=True)
    assert b"agent\n" in (root / "a.txt").read_bytes()
    forced.undo()  # the replaced bytes stay undoable
    assert b"user\n" in (root / "a.txt").read_bytes()


async def test_force_takes_whole_files_and_never_edits_beside_a_chosen_hunk(
    branch: Branch, root: Path
) -> None:
    """WS-52: a forced part of a file was written over the user's other lines."""
    await replace(branch, "a.txt", b"line 5\n", b"agent\n")
    await replace(branch, "a.txt", b"line 100\n", b"agent too\n")
    edited = LINES.replace(b"line 5\n", b"user\n").replace(b"line 50\n", b"the user's line 50\n")
    (root / "a.txt").write_bytes(edited)
    first, last = (hunk.id for hunk in branch.diff().written[0].hunks)
    with pytest.raises(LandingRefused, match="you changed the same lines"):
        branch.land(hunks=[first], force=True)
    assert (root / "a.txt").read_bytes() == edited
    branch.land(hunks=[last], force=True)
    assert (root / "a.txt").read_bytes() == edited.replace(b"line 100\n", b"agent too\n")


async def test_a_line_break_in_a_name_is_written_out_where_a_refusal_is_said(
    branch: Branch, root: Path
) -> None:
    await branch.write_file("b.txt", "agent\n")
    await branch.write_file("x\nM  a.txt", "x")
    (root / "b.txt").write_bytes(b"user\n")
    (root / "x\nM  a.txt").write_bytes(b"mine")
    with pytest.raises(LandingRefused) as caught:
        branch.land()
    assert "\n" not in str(caught.value) and "x\\nM  a.txt: both_created" in str(caught.value)


async def test_what_the_workspace_has_already_counts_as_landed(branch: Branch, root: Path) -> None:
    await branch.write_file("b.txt", "same\n")
    (root / "b.txt").write_bytes(b"same\n")
    assert branch.plan_landing().entries[0].drift == "same"
    branch.land()
    assert branch.changes().record() == {"written": [], "deleted": []}


async def test_a_pipe_that_a_command_left_stays_behind_and_the_rest_lands(branch: Branch, root: Path) -> None:
    """WS-15: a test suite's socket kept everything from landing."""
    view = branch.processes()
    view.mounting()
    os.mkfifo(view.dirs().upper / "pipe")
    (view.dirs().upper / "b.txt").write_bytes(b"new\n")
    view.capture()
    with pytest.raises(LandingRefused) as caught:
        branch.land(["pipe", "b.txt"])
    assert reasons(caught.value) == {"/pipe": "special"}
    landing = branch.land()
    assert [(row.path, row.reason) for row in landing.refused] == [("/pipe", "special")]
    assert (root / "b.txt").read_bytes() == b"new\n" and not (root / "pipe").exists()
    with pytest.raises(LandingRefused):
        branch.land()


async def test_an_uncertain_base_is_always_a_conflict(branch: Branch, root: Path) -> None:
    """Acceptance 4: the user saved the file while a command was rewriting it."""
    view = branch.processes()
    view.mounting()
    (view.dirs().upper / "b.txt").write_bytes(b"by a command\n")  # as an overlay mount does
    (root / "b.txt").write_bytes(b"by the user\n")
    view.capture()
    assert branch.diff().written[0].base == "uncertain"
    with pytest.raises(LandingRefused) as caught:
        branch.land()
    assert reasons(caught.value) == {"/b.txt": "uncertain_base"}
    branch.land(force=True)
    assert (root / "b.txt").read_bytes() == b"by a command\n"


async def test_flagged_paths_land_only_when_accepted_and_never_by_policy(branch: Branch, root: Path) -> None:
    """Acceptance 10. GI-1: what lies in a git directory holds no other path up."""
    subprocess.run(["git", "init", "-q", root], check=True)
    await branch.write_file(".git/hooks/pre-commit", "#!/bin/sh\n")
    await branch.set_executable(".git/hooks/pre-commit", True)
    await branch.write_file(".GIT/config", "[core]\n")
    await branch.write_file("plain.txt", "p\n")
    await branch.write_file(".envrc", "x\n")
    with pytest.raises(LandingRefused) as caught:
        branch.land()
    assert set(reasons(caught.value)) == {"/.envrc", "/.git/hooks/pre-commit", "/.GIT"}
    by_policy = branch.land(partial=True, actor="policy", door="policy")
    assert [row.path for row in by_policy.entries] == ["/plain.txt"] and len(by_policy.refused) == 3
    assert [row.path for row in branch.land(accept=[".envrc"]).entries] == ["/.envrc"]
    with pytest.raises(LandingRefused) as caught:
        branch.land()
    assert set(reasons(caught.value)) == {"/.git/hooks/pre-commit", "/.GIT"}
    assert not (root / ".git/hooks/pre-commit").exists() and not (root / ".GIT").exists()
    branch.land(accept=[".git/hooks/pre-commit", "/.GIT/config"])
    assert (root / ".git/hooks/pre-commit").stat().st_mode & 0o7777 == 0o755


async def test_a_hunk_then_the_rest_equals_all_and_old_ids_are_stale(branch: Branch, root: Path) -> None:
    """Acceptance 12."""
    for number in (10, 60, 110):
        await replace(branch, "a.txt", b"line %d\n" % number, b"LINE %d\n" % number)
    hunks = [h.id for h in branch.diff().written[0].hunks]
    assert len(hunks) == 3
    branch.land(hunks=[hunks[1]])
    assert (root / "a.txt").read_bytes() == LINES.replace(b"line 60\n", b"LINE 60\n")
    rest = branch.diff().written[0].hunks
    assert len(rest) == 2 and hunks[1] not in {h.id for h in rest}
    branch.land()
    assert (root / "a.txt").read_bytes() == await branch.read_bytes("a.txt")
    await replace(branch, "a.txt", b"line 20\n", b"LINE 20\n")
    stale = branch.diff().written[0].hunks[0].id
    await replace(branch, "a.txt", b"LINE 20\n", b"other\n")
    with pytest.raises(Stale, match=stale):
        branch.land(hunks=[stale])


async def test_undo_takes_back_single_hunks(branch: Branch, root: Path) -> None:
    """WS-50 (SHOULD)."""
    for number in (10, 110):
        await replace(branch, "a.txt", b"line %d\n" % number, b"LINE %d\n" % number)
    hunks = [h.id for h in branch.diff().written[0].hunks]
    landing = branch.land()
    landing.undo(hunks=[hunks[0]])
    assert (root / "a.txt").read_bytes() == LINES.replace(b"line 110\n", b"LINE 110\n")
    assert landing.state == "done"
    with pytest.raises(Stale, match="not one of this landing"):
        landing.undo(hunks=["h_nothing"])


async def test_a_plan_that_is_no_longer_equal_is_stale(branch: Branch, root: Path) -> None:
    await branch.write_file("b.txt", "agent\n")
    plan = branch.plan_landing()
    assert plan.id == branch.plan_landing().id
    (root / "b.txt").write_bytes(b"user\n")
    with pytest.raises(Stale, match="no longer equal"):
        branch.land(plan=plan.id, force=True)
    (root / "b.txt").write_bytes(b"b\n")
    assert branch.land(plan=plan.id).state == "done"


async def test_undo_refuses_overlapping_edits_and_can_itself_be_undone(
    workspace: Workspace, branch: Branch, root: Path
) -> None:
    """WS-56."""
    await replace(branch, "a.txt", b"line 5\n", b"agent\n")
    await branch.write_file("deep/er/new.txt", "n\n")
    landing = branch.land()
    landed = read_tree(root)
    (root / "a.txt").write_bytes((root / "a.txt").read_bytes().replace(b"agent\n", b"user\n"))
    with pytest.raises(LandingRefused) as caught:
        landing.undo()
    assert reasons(caught.value) == {"/a.txt": "both_modified"}
    (root / "a.txt").write_bytes((root / "a.txt").read_bytes().replace(b"user\n", b"agent\n"))
    undone = workspace.undo(landing.id)
    assert (undone.kind, undone.undoes) == ("undo", landing.id)
    assert not (root / "deep").exists() and (root / "a.txt").read_bytes() == LINES
    assert [item.state for item in workspace.landings()] == ["undone", "done"]
    undone.undo()
    assert read_tree(root) == landed
    assert [item.state for item in workspace.landings()] == ["done", "undone", "done"]
    assert branch.changes().record() == {"written": [], "deleted": []}


async def test_a_directory_that_gained_files_stays_for_them(branch: Branch, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "known").write_bytes(b"k")
    await branch.delete("d", recursive=True)
    (root / "d" / "users").write_bytes(b"u")
    with pytest.raises(LandingRefused) as caught:
        branch.land()
    assert reasons(caught.value) == {"/d": "dir_gained"}
    branch.land(partial=True)
    assert [p.name for p in (root / "d").iterdir()] == ["users"]


async def test_caches_and_ignored_files_are_folded_and_stay_unless_they_are_named(
    branch: Branch, root: Path
) -> None:
    """WS-65, GI-7: one rule for caches and for what git ignores."""
    (root / ".gitignore").write_bytes(b"build/\n")
    await branch.write_file("src/__pycache__/a.pyc", "c")
    await branch.write_file("build/out", "o")
    await branch.write_file("src/a.py", "a")
    plan = branch.plan_landing()
    assert [e.path for e in plan.entries] == ["/src/a.py"]
    assert [row.path for row in plan.folded] == ["/build/", "/src/__pycache__/"]
    branch.land()
    assert not (root / "build").exists() and not (root / "src/__pycache__").exists()
    await branch.write_file("src/b.py", "b")
    branch.land(["/"])
    assert not (root / "build").exists() and (root / "src/b.py").exists(), "around it is not named"
    branch.land(["src/__pycache__", "build"])
    assert (root / "src/__pycache__/a.pyc").exists() and (root / "build/out").exists()


async def test_ignored_files_hold_up_no_landing_and_have_no_flags_while_they_stay(
    branch: Branch, root: Path
) -> None:
    """GI-7, projects finding 5: a virtual environment that the review does not show refused a one-line edit."""
    (root / ".gitignore").write_bytes(b"venv/\n.env\nkept/*\n")
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "kept").mkdir()
    for name in ("tracked", "not-tracked"):
        (root / "kept" / name).write_bytes(b"1")
    subprocess.run(["git", "-C", root, "add", "-f", "kept/tracked"], check=True)
    await branch.write_file("venv/bin/pip", "#!/bin/sh\n")
    await branch.write_file(".env", "KEY=1\n")
    await branch.write_file("Makefile", "all:\n")
    for name in ("tracked", "not-tracked"):
        await branch.write_file(f"kept/{name}", "2")
    rows = {row.path: row for row in branch.plan_landing().entries}
    assert {path for path, row in rows.items() if row.flags} == {"/Makefile"}
    branch.land(automatic=False, partial=False)
    assert (root / "Makefile").exists() and (root / "kept/tracked").read_bytes() == b"2", "it is tracked"
    assert (root / "kept/not-tracked").read_bytes() == b"1" and not (root / "venv").exists()
    assert not (root / ".env").exists()
    assert branch.plan_landing([".env"]).entries[0].flags, "once it is named, it has them"


async def test_git_data_is_no_file_and_holds_nothing_up(branch: Branch, root: Path) -> None:
    """GI-1: commits, refs and the index are part of no diff, count, conflict or landing of files."""
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".git/index").write_bytes(b"index 1")
    await branch.write_file(".git/index", "index of the branch")
    await branch.write_file(".git/objects/ab/cd", "object")
    await branch.write_file("other.txt", "o\n")
    assert branch.changes().paths == ("/other.txt",) and ".git" not in branch.unified()
    assert [row.path for row in branch.diff().written] == ["/other.txt"]
    assert [e.path for e in branch.plan_landing().entries] == ["/other.txt"]
    (root / ".git/index").write_bytes(b"index 2")  # the user committed meanwhile
    with pytest.raises(LandingRefused, match="never lands as files"):
        branch.land([".git/index"], force=True)
    landing = branch.land(force=True)
    assert [row.path for row in landing.entries] == ["/other.txt"] and landing.refused == ()
    assert not (root / ".git/objects/ab").exists()
    assert (root / ".git/index").read_bytes() == b"index 2"


async def test_tainted_paths_are_shown(branch: Branch) -> None:
    await branch.bound(turn="t_1").write_file("before.txt", "x")
    branch.taint("t_2")
    await branch.bound(turn="t_2").write_file("after.txt", "x")
    assert {e.path: e.tainted for e in branch.plan_landing().entries} == {
        "/after.txt": True, "/before.txt": False
    }  # fmt: skip


async def test_landed_paths_follow_the_user_at_the_next_turn(branch: Branch, root: Path) -> None:
    """WS-5."""
    await branch.write_file("b.txt", "agent\n")
    branch.land()
    (root / "b.txt").write_bytes(b"user\n")
    assert branch.begin_turn() == ["/b.txt"] and await branch.read_bytes("b.txt") == b"user\n"
    assert branch.changes().record() == {"written": [], "deleted": []}
    (root / "b.txt").unlink()
    branch.begin_turn()
    with pytest.raises(NotFound):
        await branch.read_file("b.txt")


async def test_paths_without_a_change_are_named(branch: Branch) -> None:
    await branch.write_file("x", "x")
    with pytest.raises(LandingRefused) as caught:
        branch.land(["x", "nothing/here"])
    assert reasons(caught.value) == {"/nothing/here": "unchanged"}


async def test_a_vanished_workspace_keeps_the_changes_and_rebind_goes_on(
    branch: Branch, root: Path, tmp_path: Path
) -> None:
    """WS-60."""
    await branch.write_file("b.txt", "agent\n")
    subprocess.run(["mv", root, tmp_path / "moved"], check=True)
    with pytest.raises(InvalidWorkspace, match="workdir does not exist"):
        branch.land()
    assert branch.changes().written == ("/b.txt",) and "+agent" in branch.unified()
    branch.rebind(tmp_path / "moved")
    branch.land()
    assert (tmp_path / "moved/b.txt").read_bytes() == b"agent\n"


async def test_a_branch_of_nothing_has_nowhere_to_land(tmp_path: Path) -> None:
    with Workspace(data_dir=tmp_path / "data") as workspace:
        branch = workspace.branch()
        await branch.write_file("x", "x")
        with pytest.raises(InvalidWorkspace, match="export it, or rebind"):
            branch.land()


async def test_settings_change_what_is_flagged(root: Path, tmp_path: Path) -> None:
    rules = FlagRules(flag=("*.sql",), unflag=("uv.lock",))
    with Workspace(root, data_dir=tmp_path / "data", rules=rules) as workspace:
        branch = workspace.branch()
        await branch.write_file("uv.lock", "x")
        await branch.write_file("db/make.sql", "x")
        assert {e.path: e.flags for e in branch.plan_landing().entries} == {
            "/db/make.sql": ("configured",), "/uv.lock": ()
        }  # fmt: skip


async def test_old_landings_are_forgotten_but_never_the_last_ten(
    workspace: Workspace, branch: Branch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WS-56: 100 landings or 2 GiB, always the last 10."""
    monkeypatch.setattr("bowerbird.workspace.landing.landings.KEPT_BYTES", 0)
    for number in range(13):
        await branch.write_file("b.txt", f"{number}\n")
        branch.land()
    assert len(workspace.landings()) == 13, "no landing pays for it"
    assert len(workspace.forget_landings()) == 3
    assert len(workspace.landings()) == 10


async def test_a_git_configuration_that_is_no_file_keeps_nothing_from_landing(
    root: Path, branch: Branch
) -> None:
    """What looks like a repository and is none (a mistake, or a trap) made every review of the branch fail."""
    (root / ".git/config").mkdir(parents=True)
    await branch.write_file("a.txt", b"changed\n")
    branch.land()
    assert (root / "a.txt").read_bytes() == b"changed\n"
