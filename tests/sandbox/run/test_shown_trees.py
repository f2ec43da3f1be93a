"""SB-22, SB-23, D-7: no tree that commands are shown holds what they must not see, in any tier."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.abuse import TIERS, desk_of
from support.patience import HANG_S

from bowerbird.core.errors import PathEscape
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.probe import find_bubblewrap, probe_copy, probe_overlay
from bowerbird.sandbox.run.profile import host_facts
from bowerbird.sandbox.run.shown_trees import without
from bowerbird.sandbox.run.warden import Warden
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Workspace

SECRET = "only-for-the-server"


@pytest.mark.parametrize("tier", TIERS)
async def test_a_tree_around_the_data_directory_is_shown_without_it(tmp_path, tier: str):
    """Finding security 9: a server's data in `/opt` showed its settings, database and other branches."""
    place = tmp_path / "opt"
    other = place / "other-project"
    for name in ("tools/bin", "app/data", "app/lib", "other-project", "ws"):
        (place / name).mkdir(parents=True)
    (place / "tools/bin/hello").write_text("#!/bin/sh\necho hello\n")
    (place / "tools/bin/hello").chmod(0o755)
    (place / "app/lib/code").write_text("code\n")
    (place / "link").symlink_to("tools")
    for file in ("app/config.yaml", "app/data/agent.db", "other-project/plan"):
        (place / file).write_text(f"{SECRET}\n")
    with Workspace(other, data_dir=place / "app/data") as theirs:
        await theirs.branch("theirs").write_file("draft", f"{SECRET}\n")
    async with desk_of(
        place, tier, {"a": "mine\n"}, data="app/data", probe=True,
        read_only=(str(place),), kept_out=(str(place / "app/config.yaml"),),
    ) as desk:  # fmt: skip
        status = await desk.host.status()
        assert status.tier == tier, status.reasons
        assert any(str(place / "app/data") in note for note in status.left_out)
        shown = await desk.run(
            f"{place}/tools/bin/hello; cat {place}/app/lib/code; {place}/link/bin/hello; cat a"
        )
        assert shown.output == "hello\ncode\nhello\nmine\n"
        hunt = await desk.run(
            f"cat {place}/app/config.yaml {place}/app/data/agent.db {place}/other-project/plan; "
            f"grep -rs {SECRET} {place}"
        )
        assert SECRET not in hunt.output


@pytest.mark.parametrize("tier", TIERS)
async def test_the_probe_notices_a_visible_data_directory_and_names_the_tree(tmp_path, tier: str):
    """Finding security 9: the copy tier's self-check read a file without a line's end and noticed nothing."""
    data = tmp_path / "opt/data"
    data.mkdir(parents=True)
    facts = host_facts(read_only=[str(tmp_path / "opt")])
    if tier == "copy":
        reason = await probe_copy(facts, data)
    else:
        warden = Warden()
        reason = await probe_overlay(warden, facts, find_bubblewrap(), data)
        warden.close()
    assert reason is not None and str(data) in reason and f"through {tmp_path / 'opt'}" in reason
    assert list(data.glob(".probe-*")) == []


def test_a_link_out_of_a_tree_stays_a_link_and_what_is_kept_out_is_named(tmp_path):
    (tmp_path / "opt/data").mkdir(parents=True)
    (tmp_path / "opt/to-data").symlink_to("data")
    (tmp_path / "opt/tool").write_text("x")
    shown = without([str(tmp_path / "opt")], [tmp_path / "opt/data"])
    assert shown.trees == (str(tmp_path / "opt/tool"),)
    assert shown.links == ((str(tmp_path / "opt/to-data"), "data"),)
    assert shown.notes == (f"{tmp_path / 'opt/data'} is not shown to commands",)
    assert without(["/usr"], [tmp_path]).trees == ("/usr",), "nothing is read where nothing is left out"


async def test_the_copy_tier_neither_reads_nor_locks_the_original_and_says_so(tmp_path):
    """D-7, finding engine 4 and security 13."""
    async with desk_of(tmp_path, "copy", {"a.txt": "ORIGINAL\n"}) as desk:
        await desk.branch.write_file("a.txt", "EDITED\n")
        by_path = await desk.run(f"cat {desk.root}/a.txt")
        assert "ORIGINAL" not in by_path.output and by_path.exit_code == 1
        assert by_path.note is not None
        assert str(desk.root) in by_path.note and f"copy of the branch at {desk.sandbox.root}" in by_path.note
        assert (await desk.run("cat a.txt; pwd")).output == f"EDITED\n{desk.sandbox.root}\n"
        assert (await desk.run("false")).note is None, "only where the path was named"
        locked = await desk.python(
            "import fcntl, os, sys\n"
            "for name in sys.argv[1:]:\n"
            "    try: fcntl.flock(os.open(name, os.O_RDONLY), fcntl.LOCK_EX); print('LOCKED')\n"
            "    except OSError as error: print(error.strerror)\n",
            desk.root, desk.root / "a.txt",
        )  # fmt: skip
        assert locked.output == "Permission denied\n" * 2


@pytest.mark.parametrize("tier", TIERS)
async def test_a_link_leads_no_working_directory_out_of_the_branch(tmp_path, tier: str):
    """SB-14, finding security 19."""
    async with desk_of(tmp_path, tier, {"dir/f": "1"}) as desk:
        await desk.run("ln -s / out; ln -s dir in; ln -s ../.. up")
        for cwd in ("out", "/up", "out/tmp"):
            with pytest.raises(PathEscape, match="leads out of the workspace"):
                await desk.run("touch here", cwd=cwd)
        assert (await desk.run("cat f", cwd="in")).output == "1"
        await desk.assert_usable()


_KILLED = """
import asyncio, os, sys
from pathlib import Path
from bowerbird.sandbox import probe
from bowerbird.sandbox.host import SandboxHost
async def stuck(*_):
    print("up", flush=True)
    await asyncio.sleep(60)
probe._try_copy = probe._try_all = stuck
asyncio.run(SandboxHost(Path(sys.argv[1])).status())
"""


async def test_what_a_killed_probe_left_is_removed_at_the_next_start_and_no_living_ones(tmp_path):
    """Finding reliability 10: 2 to 9 directories were left after some dozen kills."""
    words = [sys.executable, "-c", _KILLED, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"up\n"
        deadline = time.monotonic() + HANG_S
        while len(left := list(tmp_path.glob(".probe-*"))) < 1 and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        host = SandboxHost(tmp_path, SandboxSettings())
        await host.status()
        assert set(left) <= set(tmp_path.glob(".probe-*")), "its maker lives"
        child.send_signal(signal.SIGKILL)
        child.wait()
        await host.status(again=True)
        await host.close()
    assert list(tmp_path.glob(".probe-*")) == []
    with Workspace(None, data_dir=tmp_path):
        (tmp_path / "branches/.probe-999999999-x").mkdir()
    with Workspace(None, data_dir=tmp_path):
        assert list(Path(tmp_path / "branches").glob(".probe-*")) == []
