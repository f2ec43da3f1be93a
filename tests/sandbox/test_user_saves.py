"""What a user saves while commands run: nothing of it is lost without a conflict that names the file."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.abuse import TIERS, Desk, desk_of
from support.user_saves import run_command_history

from bowerbird.core.errors import LandingRefused
from bowerbird.sandbox.projection import FRESH_S

pytestmark = pytest.mark.timeout(120)
LINES = "".join(f"line {n}\n" for n in range(1, 9))


def save_by_rename(path: Path, text: str) -> None:
    beside = path.with_name(f"{path.name}.tmp")
    beside.write_text(text)
    beside.replace(path)


def save_in_place(path: Path, text: str) -> None:
    path.write_text(text)


def save_anew(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def save_by_merge(path: Path, text: str) -> None:
    """As `git merge` does it of a branch that has another version."""

    def git(*words: str) -> None:
        who = ("-c", "user.name=u", "-c", "user.email=u@example.org")
        subprocess.run(["git", *who, *words], cwd=path.parent, check=True, capture_output=True)

    git("init", "-b", "main")
    git("add", path.name)
    git("commit", "-m", "one")
    git("checkout", "-b", "other")
    path.write_text(text)
    git("commit", "-am", "two")
    git("checkout", "main")
    git("merge", "other")


SAVES = (save_by_rename, save_in_place, save_anew)
IDS = ("rename", "in place", "anew")


def refused(desk: Desk) -> dict[str, str]:
    with pytest.raises(LandingRefused) as caught:
        desk.branch.land()
    return {row["path"]: row["reason"] for row in caught.value.refused}


@pytest.mark.parametrize("save", [*SAVES, save_by_merge], ids=[*IDS, "git merge"])
@pytest.mark.parametrize("tier", TIERS)
async def test_a_save_beside_a_background_process_is_not_taken_back_by_a_later_command(tier, save, tmp_path):
    async with desk_of(tmp_path, tier, {"f.txt": LINES}) as desk:
        running = await desk.sandbox.begin(
            desk.sandbox.request("cat f.txt > /dev/null; sleep 100", timeout=120)
        )
        try:
            assert (await desk.run("cat f.txt")).output == LINES
            save(desk.root / "f.txt", LINES + "the user's\n")
            await desk.run("sed -i 's/line 1$/agent/' f.txt")
        finally:
            running.stop("cancel")
            await running.wait()
            await desk.sandbox.end(running)
        assert refused(desk) == {"/f.txt": "uncertain_base"}
        assert (desk.root / "f.txt").read_text() == LINES + "the user's\n"


@pytest.mark.parametrize("save", SAVES, ids=IDS)
@pytest.mark.parametrize("tier", TIERS)
async def test_a_save_while_a_command_runs_that_later_changes_the_file_is_kept(tier, save, tmp_path):
    async with desk_of(tmp_path, tier, {"f.txt": LINES, "gone.txt": "old\n"}) as desk:
        line = 'old=$(cat f.txt); touch ready; while [ ! -e go ]; do sleep 0.01; done; echo "$old" > f.txt; rm gone.txt'
        running = await desk.sandbox.begin(desk.sandbox.request(line + "; echo new >> f.txt", timeout=60))
        try:
            while await desk.branch.stat("ready") is None:
                pass
            save(desk.root / "f.txt", LINES + "the user's\n")
            save(desk.root / "gone.txt", "the user's\n")
            await desk.branch.write_file("go", "")
            await running.wait()
        finally:
            running.stop("cancel")
            await desk.sandbox.end(running)
        assert refused(desk) == {"/f.txt": "uncertain_base", "/gone.txt": "uncertain_base"}


@pytest.mark.parametrize("tier", TIERS)
async def test_a_file_that_user_and_command_both_make_is_a_conflict_and_a_directory_keeps_the_users(
    tier, tmp_path
):
    async with desk_of(tmp_path, tier, {"d/old.txt": "old\n"}) as desk:
        line = "touch ready; while [ ! -e go ]; do sleep 0.01; done; echo agent > new.txt; rm -r d"
        running = await desk.sandbox.begin(desk.sandbox.request(line, timeout=60))
        try:
            while await desk.branch.stat("ready") is None:
                pass
            (desk.root / "new.txt").write_text("the user's\n")
            (desk.root / "d/more.txt").write_text("the user's\n")
            await desk.branch.write_file("go", "")
            await running.wait()
        finally:
            running.stop("cancel")
            await desk.sandbox.end(running)
        assert "/new.txt" in refused(desk)
        desk.branch.land(partial=True)
        assert (desk.root / "new.txt").read_text() == "the user's\n"
        assert (desk.root / "d/more.txt").read_text() == "the user's\n"


@pytest.mark.parametrize("save", SAVES, ids=IDS)
@pytest.mark.parametrize("tier", TIERS)
async def test_what_is_saved_between_two_commands_is_what_the_second_one_works_on(tier, save, tmp_path):
    async with desk_of(tmp_path, tier, {"f.txt": LINES}) as desk:
        assert (await desk.run("cat f.txt")).output == LINES
        save(desk.root / "f.txt", LINES + "the user's\n")
        await asyncio.sleep(FRESH_S)
        await desk.run("sed -i 's/line 1$/agent/' f.txt")
        assert desk.branch.land().refused == ()
        assert (desk.root / "f.txt").read_text() == LINES.replace("line 1\n", "agent\n") + "the user's\n"


async def test_an_uncertain_base_stays_uncertain_when_the_branch_changes_the_file_again(tmp_path):
    async with desk_of(tmp_path, "copy", {"f.txt": LINES}) as desk:
        line = "touch ready; while [ ! -e go ]; do sleep 0.01; done; echo agent > f.txt"
        running = await desk.sandbox.begin(desk.sandbox.request(line, timeout=60))
        try:
            while await desk.branch.stat("ready") is None:
                pass
            save_by_rename(desk.root / "f.txt", "the user's\n")
            await desk.branch.write_file("go", "")
            await running.wait()
        finally:
            await desk.sandbox.end(running)
        await desk.branch.edit_file("f.txt", "agent", "again")
        await desk.run("echo more >> f.txt")
        os.utime(desk.root / "f.txt")
        assert refused(desk) == {"/f.txt": "uncertain_base"}


@pytest.mark.parametrize("tier", TIERS)
async def test_no_line_that_a_user_saves_beside_real_commands_is_lost_without_a_conflict(tier, tmp_path):
    """`drills/user_saves.py` runs as many as one likes."""
    for seed in range(6):
        place = tmp_path / str(seed)
        place.mkdir()
        assert await run_command_history(place, seed, tier) == [], f"seed {seed}"


@pytest.mark.parametrize("before", [False, True], ids=["while it runs", "after it"])
@pytest.mark.parametrize("tier", TIERS)
async def test_a_directory_that_its_user_made_a_file_of_is_not_landed_over(tier, before, tmp_path):
    """Whatever a command made in it; what the command did elsewhere lands."""
    async with desk_of(tmp_path, tier, {"d/old.txt": "old\n", "f.txt": LINES}) as desk:
        line = (
            "touch ready; while [ ! -e go ]; do sleep 0.01; done; echo agent > d/new.txt; echo more >> f.txt"
        )
        running = await desk.sandbox.begin(desk.sandbox.request(line, timeout=60))
        try:
            while await desk.branch.stat("ready") is None:
                pass
            if before:
                await desk.branch.write_file("go", "")
                await running.wait()
            shutil.rmtree(desk.root / "d")
            (desk.root / "d").write_text("the user's\n")
            if not before:
                await desk.branch.write_file("go", "")
                await running.wait()
        finally:
            running.stop("cancel")
            await desk.sandbox.end(running)
        landing = desk.branch.land(partial=True)
        if before:  # else the command may have seen it, and written nothing there
            assert {row.path for row in landing.refused} & {"/d", "/d/new.txt"}
        assert (desk.root / "d").read_text() == "the user's\n"
        assert (desk.root / "f.txt").read_text() == LINES + "more\n"


@pytest.mark.parametrize("save", SAVES, ids=IDS)
@pytest.mark.parametrize("then", ["lands", "edits", "forks"])
@pytest.mark.parametrize("tier", TIERS)
async def test_what_is_saved_after_a_background_process_read_it_is_not_landed_over(
    tier, then, save, tmp_path
):
    """Whoever looks first at what the process made of it: a landing, an edit, a fork."""
    async with desk_of(tmp_path, tier, {"f.txt": LINES}) as desk:
        line = (
            'old=$(cat f.txt); touch ready; while [ ! -e go ]; do sleep 0.01; done; echo "$old" > f.txt; '
            "echo back >> f.txt; touch done; sleep 100"
        )
        running = await desk.sandbox.begin(desk.sandbox.request(line, timeout=120))
        try:
            while await desk.branch.stat("ready") is None:
                pass
            save(desk.root / "f.txt", LINES + "the user's\n")
            await desk.branch.write_file("go", "")
            while await desk.branch.stat("done") is None:
                pass
            if then == "edits":
                await desk.branch.edit_file("f.txt", "line 3", "edited")
            elif then == "forks":
                desk.branch.merge(desk.branch.fork())
            refused = {row.path: row.reason for row in desk.branch.land(partial=True).refused}
        finally:
            running.stop("cancel")
            await running.wait()
            await desk.sandbox.end(running)
        assert refused["/f.txt"] == "uncertain_base"
        assert (desk.root / "f.txt").read_text() == LINES + "the user's\n"


@pytest.mark.parametrize("how", ["mv d d2 && mv d2 d", "rm -r d", "move", "delete"])
@pytest.mark.parametrize("tier", TIERS)
async def test_whoever_takes_a_directory_away_does_not_take_the_file_that_its_user_made_of_it(
    tier, how, tmp_path
):
    """The branch shows its own directory there, so nobody on it saw the file."""
    async with desk_of(tmp_path, tier, {"d/old.txt": "old\n", "z": "z\n"}) as desk:
        await desk.run("echo agent > d/new.txt")
        shutil.rmtree(desk.root / "d")
        (desk.root / "d").write_text("the user's\n")
        await asyncio.sleep(FRESH_S + 0.2)  # what is there is older than the next command's mount
        if how == "move":
            await desk.branch.move("d", "d3")
        elif how == "delete":
            await desk.branch.delete("d", recursive=True)
        else:
            await desk.run(how)
        assert desk.branch.land(partial=True).refused
        assert (desk.root / "d").read_text() == "the user's\n"


@pytest.mark.parametrize("tier", TIERS)
async def test_a_process_that_read_a_file_before_it_landed_takes_back_nothing_that_landed_with_it(
    tier, tmp_path
):
    async with desk_of(tmp_path, tier, {"f.txt": LINES}) as desk:
        line = (
            "echo agent >> f.txt; old=$(cat f.txt); touch ready; while [ ! -e go ]; do sleep 0.01; done; "
            '(echo "$old"; echo back) > f.txt; touch done; sleep 100'
        )
        running = await desk.sandbox.begin(desk.sandbox.request(line, timeout=120))
        try:
            while await desk.branch.stat("ready") is None:
                pass
            await desk.run("true")
            save_by_rename(desk.root / "f.txt", "the user's\n" + LINES)
            assert "/f.txt" in {entry.path for entry in desk.branch.land(["f.txt"]).entries}
            await desk.branch.write_file("go", "")
            while await desk.branch.stat("done") is None:
                pass
            desk.branch.land(partial=True)
        finally:
            running.stop("cancel")
            await running.wait()
            await desk.sandbox.end(running)
        desk.branch.land(partial=True)
        assert "the user's\n" in (desk.root / "f.txt").read_text()
