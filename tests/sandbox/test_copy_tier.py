"""The copy tier where it does what other files test in the overlay tier only: background runs, plain exec, mounts.

SB-8, SB-12, SB-37, SB-38 … SB-41. Hostile commands run in both tiers in the `test_abuse_*` files.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.abuse import TIERS, desk_of, pids_with, tree_of
from support.sandboxes import bench_of

from bowerbird import ExecuteResponse, WorkspaceShellBackend
from bowerbird.sandbox.settings import SandboxSettings

COPY = SandboxSettings(tier="copy")
WAIT_FOR_GO = "until [ -e go ]; do sleep 0.01; done"


async def test_a_background_run_and_everybody_else_see_each_other(tmp_path):
    """SB-37, SB-10: commands, file tools and the run share one copy, which is captured when it ends."""
    async with bench_of(tmp_path, {"a": "1"}, settings=COPY, needs="copy") as bench:
        runs = bench.sandbox.background
        task = await runs.start(f"{WAIT_FOR_GO}; echo got $(cat go) $(cat a); echo made > made; rm a; exit 3")
        first = await bench.sandbox.run("cat a; echo by-a-command > seen")
        assert (first.output, first.tier, first.written) == ("1", "copy", ["/seen"])
        await bench.branch.write_file("a", "2")
        await bench.branch.write_file("go", "now")
        await bench.until(lambda: bool(bench.ended))
        row = runs.poll(task)
        assert (row["status"], row["exit_code"], row["tail"]) == ("error", 3, "got now 2\n")
        assert (await bench.branch.read_file(row["spill"]))["content"] == "got now 2\n"
        assert bench.branch.changes().record() == {"written": ["/go", "/made", "/seen"], "deleted": ["/a"]}
        assert tree_of(bench.root)["/a"][0][2] == b"1"


async def test_stopping_a_background_run_kills_its_tree_and_no_other(tmp_path):
    """SB-19, SB-37: without process namespaces, and with what it changed kept."""
    word = f"{400_000 + os.getpid()}.{os.urandom(3).hex()}"
    async with bench_of(tmp_path, settings=COPY, needs="copy") as bench:
        runs = bench.sandbox.background
        sleeper = f"python3 -c 'import time; time.sleep(900)' {word}"
        other = await runs.start(f"{sleeper}-other")
        task = await runs.start(f"echo kept > kept; setsid {sleeper} & ({sleeper} &); {sleeper}")
        await bench.until(lambda: len(pids_with(f"{word}-other")) >= 1 and len(pids_with(word)) >= 4)
        assert (await runs.stop(task))["status"] == "killed"
        assert {Path(f"/proc/{pid}").exists() for pid in pids_with(f"{word}-other")} == {True}
        assert [pid for pid in pids_with(word) if pid not in pids_with(f"{word}-other")] == []
        assert bench.branch.changes().written == ("/kept",)
        await runs.stop(other)
        assert pids_with(word) == []


def test_the_plain_exec_backend_runs_in_the_copy_and_lands_each_step(tmp_path, monkeypatch):
    """SB-38 … SB-41, SB-56 in this tier: the list is a policy, the sandbox is the wall."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "secret").write_text("top-secret")
    monkeypatch.setenv("BOWERBIRD_TEST_SECRET", "top-secret")
    with WorkspaceShellBackend(root_dir=root, timeout=20, settings=COPY) as backend:
        assert backend.execute("wc -l a.txt") == ExecuteResponse("2 a.txt", 0)
        assert backend.execute(["python3", "-c", "open('made', 'w').write('x')"]).exit_code == 0
        assert (root / "made").read_text() == "x", "policy `step`: each command lands"
        backend.write_file("by-a-tool", "y\n")
        assert backend.execute("sort by-a-tool a.txt").output == "one\ntwo\ny"
        for words in (
            ["python3", "-c", f"print(open('{tmp_path}/secret').read())"],
            ["python3", "-c", "import os; print(dict(os.environ))"],
            ["curl", "-sS", f"file://{tmp_path}/secret"],
            ["sort", "-o", f"{tmp_path}/outside", "a.txt"],
            [
                "tar",
                "cf",
                "x.tar",
                "a.txt",
                "--checkpoint=1",
                f"--checkpoint-action=exec=cat {tmp_path}/secret",
            ],
        ):
            assert "top-secret" not in backend.execute(words).output
        assert not (tmp_path / "outside").exists()
        for line in ("ls", "echo $(id)", "./git", "env id", "date\nid"):
            refused = backend.execute(line)
            assert refused.exit_code == 1 and refused.output.startswith("Refused: ")
    with WorkspaceShellBackend(root_dir=root, timeout=1, settings=COPY) as backend:
        slow = backend.execute(["python3", "-c", "print('begun', flush=True); import time; time.sleep(90)"])
        assert (slow.exit_code, slow.output.startswith("begun")) == (124, True)


MOUNTED = """
import asyncio, json, subprocess, sys
from pathlib import Path
from bowerbird.core.errors import SandboxUnavailable
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Workspace

async def main(place):
    told = {}
    for name in ("sub", "closed"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(place / "ws" / name)], check=True)
        (place / "ws" / name / "f").write_text(f"on {name}\\n")
    subprocess.run(["mount", "-o", "remount,ro", str(place / "ws/closed")], check=True)
    for minimum in ("overlay", "copy"):
        host = SandboxHost(place / "data", SandboxSettings(minimum=minimum))
        with Workspace(place / "ws", data_dir=place / "data") as workspace:
            branch = workspace.branch()
            try:
                sandbox = await host.sandbox(branch)
                done = await sandbox.run("cat a sub/f closed/f; echo new > sub/new; echo x > sub/f; rm a")
                told[minimum] = [done.exit_code, done.output, done.written, done.deleted, done.tier]
            except SandboxUnavailable as error:
                told[minimum] = str(error)
        await host.close()
    told["mounts"] = {n: sorted(p.name for p in (place / "ws" / n).iterdir()) for n in ("sub", "closed")}
    told["sub/f"] = (place / "ws/sub/f").read_text()
    print(json.dumps(told))

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_workspace_with_mounts_below_it_is_copied_and_its_mounts_stay_as_they_are(tmp_path):
    """SB-8: no user namespace may look behind a mount, so the kernel refuses to lay such a tree under an overlay."""
    for name in ("ws/sub", "ws/closed"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "ws/a").write_text("of the workspace\n")
    ran = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", MOUNTED, str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert "mount below the workspace" in told["overlay"] and "sandbox.minimum" in told["overlay"]
    assert told["copy"] == [
        0, "of the workspace\non sub\non closed\n", ["/sub/f", "/sub/new"], ["/a"], "copy",
    ]  # fmt: skip
    assert told["mounts"] == {"sub": ["f"], "closed": ["f"]} and told["sub/f"] == "on sub\n"
    assert (tmp_path / "ws/a").exists()


async def test_a_pool_that_needs_shared_memory_fails_with_the_reason(tmp_path):
    """D-7: `/dev/shm` is the whole user's here; the overlay tier has one of its own, where the same works."""
    words = ["python3", "-c", "import multiprocessing as m\nwith m.Pool(2) as p: print(p.map(abs, [-1]))"]
    for tier in TIERS:
        settings = SandboxSettings(tier=tier)
        async with bench_of(tmp_path / tier, settings=settings, needs=tier) as bench:
            done = await bench.sandbox.run(words)
            if tier == "overlay":
                assert (done.output, done.note) == ("[1]\n", None)
            else:
                assert done.exit_code == 1 and done.note is not None and "use threads" in done.note


READ_ONLY = (
    "mkdir -p new/in && echo x > new/in/f && chmod 555 new/in new; "
    "echo y > old/g && chmod 555 old; mkdir old2; mv old2 old3; chmod 500 old3; echo said"
)


async def test_a_read_only_directory_that_a_command_leaves_is_taken_like_any_other(tmp_path):
    """`test_as_nobody.py` runs it without rights, where a closed directory cannot be moved."""
    async with desk_of(tmp_path, "copy", {"old/f": "1", "keep": "k"}, probe=True) as desk:
        first = await desk.run(READ_ONLY)
        assert (first.exit_code, first.output) == (0, "said\n")
        assert (await desk.run("echo more >> keep; cat new/in/f old/g")).output == "x\ny\n"
        facts = await desk.branch.stat("old")
        assert facts is not None and facts["mode"] == 0o555
        await desk.branch.delete("new", recursive=True)
        await desk.branch.move("old", "moved")
        desk.branch.land()
        left = sorted(str(path.relative_to(desk.root)) for path in desk.root.rglob("*"))
        assert left == ["keep", "moved", "moved/f", "moved/g", "old3"]
