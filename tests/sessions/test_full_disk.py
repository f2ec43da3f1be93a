"""A disk that really gets full in the middle of a turn, and has room again (SE-61, acceptance 10)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import support.full_disk
from support.full_disk import ALONE, can_mount
from support.patience import patience

PROGRAM = Path(support.full_disk.__file__)


@pytest.mark.parametrize("min_free_mb", [4, 0])
def test_a_full_disk_stops_the_turn_with_its_name_and_nothing_is_lost(
    tmp_path: Path, min_free_mb: int
) -> None:
    """With a minimum, new work is refused before; without one, the database itself has no room."""
    if not can_mount():
        pytest.skip("this host gives no user namespaces: no disk of one's own can be filled")
    disk = tmp_path / "disk"
    disk.mkdir()
    tests = PROGRAM.parent.parent
    done = subprocess.run(
        [*ALONE, sys.executable, str(PROGRAM), str(disk), str(min_free_mb)],
        env={**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent / 'src'}"},
        capture_output=True, text=True, timeout=patience(24), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout)
    state, kind, message = seen["turn"]
    assert (state, kind) == ("failed", "StorageFull")
    assert "full" in message or "store.min_free_mb" in message
    assert seen["submit"] == "StorageFull"
    assert seen["begun"][0] != "" and seen["branches"] == 0  # no session, so no branch either
    assert (seen["read"], seen["turns"]) == ("turn_ended", 1)  # reading goes on, nothing was stored
    assert seen["resumed"] == ["done", "end_turn"]
    assert seen["files"] == [True, True]
    assert (seen["other"], seen["reopened"]) == ("done", "done")
    assert seen["gapless"]
    assert (
        seen["deleted"] == "UnknownSession"
    )  # reliability 11: it was refused, so that a full disk stayed full
    assert seen["integrity"] == "ok"
