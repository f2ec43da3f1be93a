"""A directory that is closed to others on the branch is closed where it lands."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.trees import write_tree

from bowerbird.workspace import Branch, Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = write_tree(tmp_path / "ws", {"private/key.txt": "secret\n", "shared/f.txt": "f\n"})
    (made / "private").chmod(0o700)
    (made / "shared").chmod(0o2775)
    return made


@pytest.fixture
def branch(root: Path, tmp_path: Path) -> Iterator[Branch]:
    with Workspace(root, data_dir=tmp_path / "data") as opened:
        yield opened.branch()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_private_directory_that_is_renamed_stays_private(branch: Branch, root: Path):
    await branch.move("private", "kept/safe")
    landing = branch.land()
    assert (mode(root / "kept"), mode(root / "kept/safe")) == (0o755, 0o700)
    landing.undo()
    assert mode(root / "private") == 0o700 and not (root / "kept").exists()


async def test_new_directories_land_as_closed_as_commands_made_them_and_never_wider(
    branch: Branch, root: Path
):
    upper = branch.processes().dirs().upper
    for name, bits in {"data": 0o700, "empty": 0o750, "wide": 0o777, "sticky": 0o1777}.items():
        (upper / name).mkdir()
        (upper / name).chmod(bits)
        if name != "empty":
            (upper / name / "f").write_text("x")
    branch.processes().capture()
    branch.land()
    found = {name: mode(root / name) for name in ("data", "empty", "wide", "sticky")}
    assert found == {"data": 0o700, "empty": 0o750, "wide": 0o755, "sticky": 0o755}


async def test_a_closed_directory_in_a_shared_one_keeps_its_group(branch: Branch, root: Path):
    os.chown(root / "shared", -1, os.getgid())
    await branch.move("private", "shared/private")
    branch.land()
    assert mode(root / "shared/private") == 0o2700
