"""A file that this user cannot read, in a directory that the agent deletes or renames.

`test_as_nobody.py` runs it: root reads everything.
"""

import os

import pytest
from support.abuse import TIERS, Desk, desk_of

from bowerbird.core.errors import LandingRefused, WorkspaceError

pytestmark = pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
FILES = {"d/a.txt": "a\n", "d/closed.txt": "c\n", "f.txt": "f\n"}


async def assert_it_holds(desk: Desk) -> None:
    desk.branch.plan_landing()
    with pytest.raises(LandingRefused) as caught:
        desk.branch.land()
    reasons = {row["path"]: row["reason"] for row in caught.value.refused}
    assert reasons["/d/closed.txt"] == "unreadable" and "permissions" in str(caught.value)
    assert reasons["/d"] == "holds_unreadable"
    desk.branch.land(partial=True)
    assert (desk.root / "d/closed.txt").exists() and (desk.root / "f.txt").read_text() == "f\nmore\n"


@pytest.mark.parametrize("line", ["rm -rf d", "mv d e"])
@pytest.mark.parametrize("tier", TIERS)
async def test_an_unreadable_file_holds_its_directory_and_the_landing_says_why(
    tier: str, line: str, tmp_path
):
    async with desk_of(tmp_path, tier, FILES, probe=True) as desk:
        (desk.root / "d/closed.txt").chmod(0)
        assert (await desk.run(f"{line}; echo more >> f.txt")).exit_code == 0
        if (
            "/d/closed.txt" in desk.branch.changes().record()["deleted"]
        ):  # `mv` may give up, as it does anywhere
            await assert_it_holds(desk)
        else:
            desk.branch.land()
            assert (desk.root / "d/closed.txt").exists() and (desk.root / "d/a.txt").read_text() == "a\n"


async def test_the_file_tools_name_the_unreadable_file_and_do_no_half(tmp_path):
    async with desk_of(tmp_path, "copy", FILES, probe=True) as desk:
        (desk.root / "d/closed.txt").chmod(0)
        with pytest.raises(WorkspaceError, match=r"d/closed\.txt"):
            await desk.branch.move("d", "e")
        assert desk.branch.changes().record() == {"written": [], "deleted": []}
        await desk.branch.delete("d", recursive=True)
        await desk.branch.write_file("f.txt", "f\nmore\n")
        await assert_it_holds(desk)
