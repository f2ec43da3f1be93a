"""A file that this user cannot read, in a directory that the agent deletes or renames; see `test_as_nobody.py`."""

import os

import pytest
from support.abuse import TIERS, desk_of

from bowerbird.core.errors import BowerbirdError, LandingRefused


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("line", ["rm -rf d", "mv d e"])
@pytest.mark.parametrize("tier", TIERS)
async def test_an_unreadable_file_holds_its_directory_and_says_why(tier: str, line: str, tmp_path):
    async with desk_of(tmp_path, tier, {"d/a.txt": "a\n", "d/closed.txt": "c\n", "f.txt": "f\n"}, probe=True) as desk:
        (desk.root / "d/closed.txt").chmod(0)
        result = await desk.run(f"{line}; echo done; echo more >> f.txt")
        print("RESULT", result.exit_code, result.output)
        print("CHANGES", desk.branch.changes().record())
        try:
            print("PLAN", [(e.path, e.op, e.drift) for e in desk.branch.plan_landing().entries])
        except BaseException as e:
            print("PLAN", type(e), e)
        try:
            print("LANDED", desk.branch.land())
        except (LandingRefused, BowerbirdError, OSError) as e:
            print("LANDED", type(e), e)
        try:
            await desk.branch.move("d", "g")
        except (BowerbirdError, OSError) as e:
            print("MOVE", type(e), e)
        try:
            await desk.branch.delete("d", recursive=True)
            print("DELETED", desk.branch.changes().record())
        except (BowerbirdError, OSError) as e:
            print("DELETE", type(e), e)
        assert 0
