"""SB-10 … SB-13, acceptance 6, 7, 8, 10: what commands and file tools do is one and the same."""

import asyncio
import os
import stat

import pytest
from support.abuse import TIERS, desk_of, tree_of
from support.patience import HANG_S
from support.places import memory_place
from support.random_changes import run_trial
from support.trees import read_tree, write_tree

from bowerbird.core.errors import Hidden, NotFound, PathEscape

pytestmark = pytest.mark.timeout(180)
TRIALS = {"overlay": 36, "copy": 12}
ROUNDS = {"overlay": 500, "copy": 150}


@pytest.mark.parametrize("tier", TIERS)
async def test_captured_changes_applied_to_the_base_equal_the_mounted_view(tier: str):
    """Acceptance 10; `benchmarks/capture_trials.py` runs as many as one likes."""
    with memory_place() as place:
        for seed in range(TRIALS[tier]):
            await run_trial(place / str(seed), seed, tier)


@pytest.mark.parametrize("tier", TIERS)
async def test_commands_and_file_tools_agree_each_time(tier: str):
    """Acceptance 6: each round is two agreements, a thousand in the overlay tier."""
    with memory_place() as place:
        async with desk_of(place, tier, {"f": "0"}) as desk:
            for number in range(ROUNDS[tier]):
                await desk.branch.write_file("f", f"tool {number}\n")
                assert (await desk.run(f"cat f; echo command {number} > f")).output == f"tool {number}\n"
                assert (await desk.branch.read_file("f"))["content"] == f"command {number}\n"


@pytest.mark.parametrize("tier", TIERS)
async def test_they_agree_beside_a_background_process_that_writes(tier: str):
    """Acceptance 6, SB-10: the process sees each tool's write, the tools each of its writes, at once."""
    with memory_place() as place:
        async with desk_of(place, tier, {"f": "0", "d/x": "1"}) as desk:
            line = "while :; do n=$((n + 1)); echo $n > other; echo $n > d/x; done"
            running = await desk.sandbox.begin(desk.sandbox.request(line, timeout=120))
            try:
                for number in range(60):
                    await desk.branch.write_file("f", f"tool {number}\n")
                    assert (await desk.run(f"cat f; echo command {number} > f")).output == f"tool {number}\n"
                    assert (await desk.branch.read_file("f"))["content"] == f"command {number}\n"
                    await desk.branch.write_file(f"made{number}/deep/file", "x")
                    await desk.branch.move(f"made{number}", f"moved{number}")
                    assert (await desk.run(f"cat moved{number}/deep/file; ls")).output.startswith("x")
                    await desk.branch.delete(f"moved{number}", recursive=True)
                first = int((await desk.branch.read_file("other"))["content"] or 0)
                async with asyncio.timeout(HANG_S):
                    while int((await desk.branch.read_file("other"))["content"] or 0) <= first:
                        await asyncio.sleep(0.01)
            finally:
                running.stop("cancel")
                await running.wait()
                await desk.sandbox.end(running)
            assert (await desk.run("ls")).output == "d\nf\nother\n"


@pytest.mark.parametrize("tier", TIERS)
async def test_a_rollback_beside_a_running_process_puts_everything_back(tier: str, tmp_path):
    """WS-41 while the layer is mounted: files, whole directories with deletions in them, modes."""
    async with desk_of(tmp_path, tier, {"f": "old", "d/a": "1", "d/b/c": "2"}) as desk:
        await desk.run("echo more > d/more; rm d/a")
        running = await desk.sandbox.begin(desk.sandbox.request("sleep 100", timeout=120))
        try:
            bound = desk.branch.bound("t_1", "c_1")
            await bound.write_file("f", "new")
            await bound.delete("d", recursive=True)
            await bound.write_file("d/else", "3")
            assert (await desk.run("cat f; ls d")).output == "newelse\n"
            desk.branch.rollback(bound.call_mark())
            assert (
                await desk.run("cat f; ls d d/b; cat d/more")
            ).output == "oldd:\nb\nmore\n\nd/b:\nc\nmore\n"
            assert (await desk.branch.read_file("d/b/c"))["content"] == "2"
            with pytest.raises(NotFound):
                await desk.branch.read_file("d/a")
        finally:
            running.stop("cancel")
            await running.wait()
            await desk.sandbox.end(running)
        assert (await desk.run("cat f; ls d")).output == "oldb\nmore\n"


@pytest.mark.parametrize("tier", TIERS)
async def test_the_next_command_sees_what_the_user_saved_between_two_turns(tier: str, tmp_path):
    """Acceptance 7, WS-5: unless the branch changed the file itself."""
    async with desk_of(tmp_path, tier, {"f": "first\n", "mine": "first\n", "d/x": "1"}) as desk:
        assert (await desk.run("cat f d/x; echo branch > mine")).output == "first\n1"
        (desk.root / "f").write_text("second\n")
        (desk.root / "mine").write_text("second\n")
        (desk.root / "new").write_text("new\n")
        (desk.root / "d/x").unlink()
        desk.branch.end_turn("t_1")
        await desk.host.new_turn(desk.branch.id)
        assert (await desk.run("cat f mine new; ls d")).output == "second\nbranch\nnew\n"
        assert desk.branch.changes().record() == {"written": ["/mine"], "deleted": []}


async def test_an_environment_with_absolute_paths_runs_and_leaves_the_workspace_alone(tmp_path):
    """Acceptance 8, SB-7: a script's first line names the interpreter by its full path."""
    root = tmp_path / "ws"
    script = (
        f"#!{root}/.venv/bin/python\nimport sys, pathlib\npathlib.Path('cache').mkdir()\nprint(sys.argv[0])\n"
    )
    files = {".venv/bin/tool": script, "test_it.py": "def test_it():\n    assert True\n"}
    async with desk_of(tmp_path, "overlay", files) as desk:
        (root / ".venv/bin/tool").chmod(0o755)
        (root / ".venv/bin/python").symlink_to("/usr/bin/env")  # replaced below: made by hand, as venv does
        await desk.run("rm .venv/bin/python; ln -s $(command -v python3) .venv/bin/python")
        before = tree_of(root)
        result = await desk.run(".venv/bin/tool")
        assert result.output == ".venv/bin/tool\n" and "/cache" in result.written, result
        assert tree_of(root) == before


@pytest.mark.parametrize("tier", TIERS)
async def test_what_is_hidden_does_not_exist_and_what_is_private_does(tier: str, tmp_path):
    """SB-8, WS-9: new files that fit are hidden too; making one changes no branch and lands nowhere."""
    files = {".env": "SECRET", "d/e/.env": "SECRET", "d/e/x": "x", "keys/a": "SECRET"}
    hide = {"hide": (".env", "keys")}
    async with desk_of(tmp_path, tier, files, workspace=hide) as desk:
        (desk.root / "d/e").chmod(0o750)
        desk.branch.write_private("inputs.json", "{}")
        seen = await desk.run("find . | sort; cat inputs.json; cat .env d/e/.env keys/a; stat -c %a d/e")
        assert "SECRET" not in seen.output and seen.output.startswith(
            ".\n./d\n./d/e\n./d/e/x\n./inputs.json\n{}"
        )
        assert seen.output.endswith("750\n")
        (desk.root / "d/.env").write_text("SECRET")
        result = await desk.run("cat d/.env; echo mine > .env; mkdir keys; echo k > keys/k; echo y > d/e/x")
        assert "SECRET" not in result.output and (result.written, result.deleted) == (["/d/e/x"], [])
        with pytest.raises(Hidden):
            await desk.branch.write_file(".env", "x")
        desk.branch.land()
        assert ((desk.root / ".env").read_text(), (desk.root / "d/e/x").read_text()) == ("SECRET", "y\n")
        assert not (desk.root / "keys/k").exists() and not (desk.root / "inputs.json").exists()


@pytest.mark.parametrize("tier", TIERS)
async def test_a_data_directory_inside_the_workspace_is_not_there(tier: str, tmp_path):
    """WS-8: the layers lie inside of what they are laid over."""
    async with desk_of(tmp_path, tier, {"a": "1", "d/b": "2"}, data="ws/data") as desk:
        result = await desk.run("ls; ls data; cat d/b; echo 3 > d/b; mkdir -p data/branches; echo x > data/x")
        assert (
            result.tier == tier
            and result.output.startswith("a\nd\n")
            and "cannot access 'data'" in result.output
        )
        assert result.written == ["/d/b"]
        desk.branch.mark()
        assert (await desk.run("cat d/b; rm a; ls")).output.startswith("3\nd\n")
        await desk.assert_usable()
        assert (desk.root / "d/b").read_text() == "2" and (desk.root / "a").exists()


@pytest.mark.parametrize("tier", TIERS)
async def test_kinds_and_modes_are_what_the_command_made(tier: str, tmp_path):
    """SB-11: special files are told of, hard links become files, setuid bits are gone where they land."""
    async with desk_of(tmp_path, tier, {"a": "1", "gone": "2", "d/x": "3", "was": "dir"}) as desk:
        result = await desk.run(
            "mkfifo fifo; ln a hard; ln -s a soft; chmod 755 a; rm gone; rm -r d; mkdir d; echo 4 > d/y; "
            "rm was; mkdir was; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"; "
            "cp a same; touch -d 2001-01-01 same; echo x > set; chmod 4755 set; : > empty"
        )
        assert result.exit_code == 0, result.output
        made = {"/a", "/d/y", "/empty", "/hard", "/same", "/set", "/soft", "/was"}
        assert set(result.written) - {"/d"} == made
        assert set(result.deleted) - {"/was"} == {"/d/x", "/gone"}
        assert desk.branch.changes().deleted == ("/d/x", "/gone")
        kinds = {row["name"]: row["type"] for row in (await desk.branch.ls())["entries"]}
        assert (kinds["soft"], kinds["hard"], kinds["was"]) == ("symlink", "file", "dir")
        await desk.branch.write_file("hard", "only here")
        assert (await desk.run("cat a")).output == "1"
        landing = desk.branch.land(accept=["*"], partial=True)
        # A copy's special files stay in the copy: the branch has no way to hold them.
        special = ["/fifo", "/sock"] if tier == "overlay" else []
        assert sorted(row.path for row in landing.refused) == special
        assert stat.S_IMODE((desk.root / "set").stat().st_mode) == 0o755
        assert not (desk.root / "fifo").exists() and str((desk.root / "soft").readlink()) == "a"


@pytest.mark.parametrize("tier", TIERS)
async def test_content_that_is_the_same_again_is_no_change(tier: str, tmp_path):
    async with desk_of(tmp_path, tier, {"a": "1", "b": "2", "d/c": "3"}) as desk:
        result = await desk.run("touch a; cp b b2; mv b2 b; echo x > new; rm new; mv d e; mv e d")
        assert (set(result.written) - {"/d", "/d/c"}, result.deleted) == (set(), []), result
        assert desk.branch.changes().record() == {"written": [], "deleted": []}
        assert (await desk.run("true")).written == []


@pytest.mark.parametrize("tier", TIERS)
async def test_a_command_tells_of_its_own_changes_only(tier: str, tmp_path):
    async with desk_of(tmp_path, tier, {"a": "1"}) as desk:
        await desk.branch.write_file("by-a-tool", "x")
        assert (await desk.run("echo 1 > one; mkdir d; rm a")).written == ["/d", "/one"]
        second = await desk.run("echo 2 > two; echo 3 > d/three")
        assert (second.written, second.deleted) == (["/d/three", "/two"], [])
        third = await desk.run("echo again > one; rm two")
        assert (third.written, third.deleted) == (["/one"], ["/two"])
        steps = [(row["action"], row["path"]) for row in desk.branch.journal() if row["via"] == "process"]
        assert steps.count(("write", "/one")) == 2 and ("delete", "/a") in steps


@pytest.mark.parametrize("tier", TIERS)
async def test_home_is_kept_with_the_branch_and_in_no_diff(tier: str, tmp_path):
    """SB-21."""
    async with desk_of(tmp_path, tier) as desk:
        await desk.run('echo x > "$HOME/.rc"; mkdir -p "$TMPDIR/t"')
        await desk.sandbox.cool_down()
        assert (await desk.run('cat "$HOME/.rc"; cd; pwd')).output.splitlines()[0] == "x"
        assert desk.branch.changes().record() == {"written": [], "deleted": []}
        other = await desk.host.sandbox(desk.workspace.branch("other"))
        assert (await other.run('cat "$HOME/.rc"')).exit_code == 1


@pytest.mark.parametrize("tier", TIERS)
async def test_a_directory_to_start_in_is_one_of_the_branch(tier: str, tmp_path):
    """SB-7, bad input of the issue: a missing one is named, and nothing runs."""
    async with desk_of(tmp_path, tier, {"d/e/x": "1", "f": "2"}) as desk:
        for cwd in ("d/e", "/d/e", "d/../d/e/", f"{desk.sandbox.root}/d/e"):
            assert (await desk.run("cat x", cwd=cwd)).output == "1"
        for cwd in ("..", "/../x", "d/../../e"):
            with pytest.raises(PathEscape):
                await desk.run("touch ran", cwd=cwd)
        for cwd in ("missing", "f"):
            result = await desk.run("touch ran", cwd=cwd)
            assert result.exit_code == 126 and "cwd" in result.output and cwd in result.output
        assert await desk.branch.stat("ran") is None
        assert (await desk.branch.read_file(f"{desk.sandbox.root}/f"))["content"] == "2"
        await desk.assert_usable()


@pytest.mark.parametrize("tier", TIERS)
async def test_what_a_command_closed_to_everybody_is_compared_and_landed(tier: str):
    """A file without a right to read ended diffs with an error and kept everything else from landing (WS-20)."""
    with memory_place() as place:
        async with desk_of(place, tier, {"a": "1", "b": "2"}) as desk:
            line = "echo 3 > a; chmod 0 a; echo 4 > b; chmod 200 b; mkdir d; echo 5 > d/e; chmod 0 d/e d"
            assert (await desk.run(line)).exit_code == 0
            text = desk.branch.unified()
            assert all(row in text for row in ("+3", "+4", "+5"))
            await desk.branch.write_file("c", "6")
            desk.branch.land(accept=["a", "b", "d/e", "d"])
            for name, mode in (("d", 0o700), ("d/e", 0o600), ("a", 0o600), ("b", 0o600)):
                (desk.root / name).chmod(mode)
            found = {
                name: content for name, (kind, _, content) in read_tree(desk.root).items() if kind == "file"
            }
            assert found == {"/a": b"3\n", "/b": b"4\n", "/c": b"6", "/d/e": b"5\n"}


@pytest.mark.parametrize("tier", TIERS)
async def test_commands_run_beside_what_the_user_closed_and_leave_it_as_it_is(tier: str):
    """One directory of another program's, as a database's, kept every command of the copy tier from starting."""
    with memory_place() as place:
        async with desk_of(place, tier, {"a": "1", "closed/f": "2", "shut": "3"}) as desk:
            for name in ("closed", "shut"):
                (desk.root / name).chmod(0)
            for number in range(3):
                done = await desk.run(
                    f"ls; echo {number} > a; ls closed; cat shut; mkdir -p new; echo > new/f{number}"
                )
                assert "a\n" in done.output and "/a" in done.written
            if os.geteuid() != 0:
                await desk.run("mkdir closed; echo 1 > closed/f; rm -f shut; echo 1 > shut")
                assert {
                    path for path in desk.branch.changes().written if path in {"/closed", "/closed/f"}
                } == set()
            desk.branch.land(["a", "new"])
            assert (desk.root / "a").read_text() == "2\n"
            for name in ("closed", "shut"):
                assert (desk.root / name).stat().st_mode & 0o777 == 0
                (desk.root / name).chmod(0o700)
            assert (desk.root / "closed/f").read_text() == "2" and (desk.root / "shut").read_text() == "3"


@pytest.mark.parametrize("tier", TIERS)
async def test_commands_see_what_the_user_puts_into_a_directory_that_the_branch_made(tier: str):
    """WS-5, SB-10: the kernel makes each new directory one that hides what lies below."""
    with memory_place() as place:
        async with desk_of(place, tier, {"old/f": "f\n", "kept/f": "f\n"}) as desk:
            made = (
                "mkdir -p new/deep && echo a > new/deep/a && mv old moved && mkdir moved/n && mv moved/n new"
            )
            assert (await desk.run(made)).exit_code == 0
            desk.branch.end_turn("t_1")
            for late in ("new/u", "new/deep/u", "new/n/u", "moved/u"):
                write_tree(desk.root, {late: "user\n"})
            assert (await desk.branch.read_file("new/deep/u"))["content"] == "user\n"
            seen = await desk.run(
                "cat new/u new/deep/u new/n/u moved/u; echo b >> new/u; rm new/deep/u; ls new/deep"
            )
            assert seen.output == "user\n" * 4 + "a\n"
            changes = desk.branch.changes()
            assert "/new/u" in changes.written and "/new/deep/u" in changes.deleted
            assert (await desk.run("rm -r kept && mkdir kept && echo g > kept/g")).exit_code == 0
            desk.branch.end_turn("t_2")
            assert (await desk.run("ls kept")).output == "g\n"
