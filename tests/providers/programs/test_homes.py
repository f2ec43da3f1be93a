"""PR-15, PR-18: private homes and processes that a run left when its server died."""

import os
import subprocess

from support.patience import HANG_S

from bowerbird.providers.programs.homes import Homes
from bowerbird.providers.programs.leftovers import kill_remains


def test_a_start_kills_what_a_run_that_died_left_and_takes_its_home_back(tmp_path):
    """PR-18: by the id of the run in the environment of its processes."""
    homes, inside = Homes(tmp_path), tmp_path / "branch-home"
    inside.mkdir()
    lent = homes.lend("a", "s", inside)
    (lent.place / "kept").write_text("x")
    record = lent.record.read_text().replace(f'"pid": {os.getpid()}', '"pid": 999999999')
    lent.record.write_text(record)
    child = subprocess.Popen(
        ["sleep", "600"], env={"BOWERBIRD_AGENT_RUN": lent.run, "PATH": os.environ["PATH"]}
    )
    other = subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"]})
    try:
        over = homes.left_over()
        assert over == [lent.run] and not lent.place.exists() and homes.has("a", "s")
        assert kill_remains(over) == 1
        assert child.wait(HANG_S) == -9 and other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_home_that_the_program_replaced_by_a_link_leads_nowhere(tmp_path):
    """PR-15: neither is the link followed, nor kept."""
    homes, inside, target = Homes(tmp_path), tmp_path / "branch-home", tmp_path / "target"
    inside.mkdir()
    target.mkdir()
    (target / "precious").write_text("x")
    lent = homes.lend("a", "s", inside)
    lent.place.rmdir()
    lent.place.symlink_to(target)
    homes.take_back(lent)
    assert (target / "precious").exists() and not lent.place.is_symlink() and not homes.has("a", "s")
