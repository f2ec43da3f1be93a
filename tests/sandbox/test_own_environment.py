"""GI-14, D-26, projects finding 3: what the user runs in a shell, commands run on the branch, in both tiers.

Not here: what Bowerbird keeps back from trees that are shown (`run/test_shown_trees.py`).
"""

import asyncio
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from support.abuse import TIERS, desk_of
from support.layouts import PATH, SAYS, SECRET, SECRETS, developer_home, make_venv
from support.patience import HANG_S

from bowerbird.core.errors import ConfigError
from bowerbird.sandbox.cpython import run_python
from bowerbird.sandbox.run.limits import RunLimits
from bowerbird.sandbox.run.profile import host_facts
from bowerbird.sandbox.run.toolchains import TOLD

FILES = {".python-version": "3.12\n"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A developer's home, with all its tools on PATH."""
    for name in (*TOLD, "CARGO_HOME", "GOPATH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in developer_home(tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    return tmp_path / "home"


def outside(tool: str) -> str:
    """What a tool says in the user's own shell."""
    return subprocess.run([tool], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("tier", TIERS)
async def test_every_tool_on_path_runs_inside_and_nothing_else_of_the_home_is_seen(
    tmp_path, home: Path, tier: str
):
    """Environments, version managers, installers: the same words as outside, in the order of PATH."""
    outer = [str(home / each) for each in PATH]
    told = {name: outside(name) for name in SAYS if name not in ("shim-tool", "cargo-tool")}
    assert told.items() <= SAYS.items()
    async with desk_of(tmp_path, tier, FILES) as desk:
        for tool, said in {**SAYS, "venv-tool": f"venv-tool {home}/venvs/v"}.items():
            ran = await desk.run([tool])
            assert (ran.exit_code, ran.output.strip()) == (0, said), ran
        inner = (await desk.run("echo $PATH")).output.strip().split(":")
        assert [each for each in inner if each in outer] == outer
        assert inner.index(f"{home}/.pyenv/versions/3.12.1/bin") == inner.index(f"{home}/.pyenv/shims") - 1
        assert (await desk.run("echo $VIRTUAL_ENV $GOROOT $RUSTUP_HOME")).output.split() == [
            f"{home}/venvs/v", f"{home}/sdk/go", f"{home}/.rustup",
        ]  # fmt: skip
        hunt = await desk.run(f"grep -rs {SECRET} {home}; cat {' '.join(str(home / s) for s in SECRETS)}")
        assert SECRET not in hunt.output
        for tree in ("venvs/v", "miniconda3", "bin", ".local/bin", "go/bin"):
            await desk.run(f"rm -rf {home / tree}/*-tool; touch {home / tree}/written")
            assert not (home / tree / "written").exists()
        assert {name: outside(name) for name in told} == told, "all of it is as it was"


@pytest.mark.parametrize("tier", TIERS)
async def test_an_environment_of_the_workspace_is_the_branch_s(tmp_path, monkeypatch, tier: str):
    """Activated in the workspace: programs start by name, and see what the branch has, not the original."""
    venv = make_venv(tmp_path / "ws/.venv")
    (venv / "bin/tool").write_text(f"#!{venv}/bin/python\nimport sys; print(sys.argv[1:], sys.prefix)\n")
    long = f"#!/bin/sh\n'''exec' \"{venv}/bin/python\" \"$0\" \"$@\"\n' '''\nprint('long')\n"
    (venv / "bin/long-tool").write_text(long)
    os.mkfifo(venv / "bin/fifo")
    for name in ("tool", "long-tool"):
        (venv / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{venv}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("VIRTUAL_ENV", str(venv))
    async with desk_of(tmp_path, tier) as desk:
        root = desk.sandbox.root
        ran = await desk.run("tool a 'b c'; long-tool; which python; echo $VIRTUAL_ENV")
        assert ran.output.splitlines() == [
            f"['a', 'b c'] {root}/.venv", "long", f"{root}/.venv/bin/python", f"{root}/.venv",
        ]  # fmt: skip
        await desk.run("echo 'print(2)' > $(echo .venv/lib/python3*/site-packages)/tool2.py")
        assert (await desk.run(["python", "-m", "tool2"])).output == "2\n"
        assert not list(venv.glob("lib/python3*/site-packages/tool2.py"))
        if tier == "copy":
            assert (await desk.run(f"cat {venv}/pyvenv.cfg")).exit_code != 0, "D-7: not the original"


@pytest.mark.parametrize("tier", TIERS)
async def test_packages_installed_in_editable_mode_are_the_branch_s(tmp_path, tier: str):
    """GI acceptance 1: by a path, as most build tools write it, or by a finder, as setuptools does for others."""
    root = tmp_path / "ws"
    site = next(make_venv(root / ".venv").glob("lib/python3*/site-packages"))
    (site / "_project.pth").write_text(f"import sys\n{root}/src\n{tmp_path}/elsewhere\n{root}/gone\n")
    finder = f"from __future__ import annotations\nMAPPING: dict[str, str] = {{'flat': '{root}/libs/flat'}}\n"
    (site / "__editable___flat_1_0_finder.py").write_text(finder + "MAPPINGS = broken(\n")
    (site / "__editable__.flat.pth").write_text(f"{root}/libs\n" if tier == "overlay" else "\xff\n")
    files = {"src/project.py": "said = 1\n", "libs/flat/__init__.py": "said = 2\n"}
    python = [".venv/bin/python", "-c", "import project, flat; print(project.said, flat.said)"]
    async with desk_of(tmp_path, tier, files) as desk:
        ran = await desk.run(python)
        assert ran.output == "1 2\n", ran
        await desk.branch.write_file("src/project.py", "said = 'changed'\n")
        assert (await desk.run(python)).output == "changed 2\n"


async def test_background_runs_and_the_python_tool_have_it_too(tmp_path, home: Path):
    async with desk_of(tmp_path, "overlay", FILES) as desk:
        ran = await run_python(desk.sandbox, "import sys; print(sys.prefix)")
        assert ran.command.output == f"{home}/venvs/v\n"
        await desk.sandbox.python.run("import sys")
        assert (await desk.sandbox.python.run("sys.prefix")).result == repr(f"{home}/venvs/v")
        await desk.sandbox.python.close()
        await desk.sandbox.background.start("venv-tool > said")
        await desk.sandbox.background.finished()
        assert (await desk.branch.read_file("said"))["content"].startswith("venv-tool")


async def test_settings_choose_which_tools_are_shown(tmp_path, home: Path):
    """`sandbox.toolchains`: auto, off, or names."""
    async with desk_of(tmp_path / "1", "overlay", toolchains=("off",)) as desk:
        ran = await desk.run("node-tool || conda-tool || ls " + shlex.quote(str(home)))
        assert ran.exit_code != 0 and "\nnode-tool\n" not in f"\n{ran.output}"
        assert (await desk.run("echo $VIRTUAL_ENV$RUSTUP_HOME")).output == "\n"
    async with desk_of(tmp_path / "2", "overlay", toolchains=("nvm", "conda")) as desk:
        ran = await desk.run("node-tool; conda-tool; volta-tool 2>/dev/null || echo not shown")
        assert ran.output == "node-tool\nconda-tool\nnot shown\n"
    with pytest.raises(ConfigError, match=r"toolchains: 'pyenw'.*pyenv"):
        host_facts(toolchains=("pyenw",))


async def test_an_environment_made_in_a_home_does_not_show_the_home(tmp_path, monkeypatch):
    """A home is no tool, whatever lies in it; nor is what leads to one."""
    home = tmp_path / "home"
    make_venv(home)
    for name in ("diary", "lib/notes", "bin/said"):
        (home / name).write_text(f"#!/bin/sh\necho {SECRET}\n")
    (home / "bin/said").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/bin:{home}:{tmp_path}:{os.environ['PATH']}")
    async with desk_of(tmp_path / "place", "overlay") as desk:
        assert (await desk.run(["said"])).output == f"{SECRET}\n", "what is on PATH is there"
        assert SECRET not in (await desk.run(f"cat {home}/diary {home}/lib/notes")).output


async def test_hosts_shared_memory_language_and_temporary_space_are_as_expected(tmp_path, monkeypatch):
    """GI-17, projects finding 7: suites that look up their host, share memory, or fill `/tmp`."""
    for name, value in {"TZ": "Asia/Kolkata", "LANG": "C.UTF-8", "LC_TIME": "C", "CI": "1"}.items():
        monkeypatch.setenv(name, value)
    async with desk_of(tmp_path, "overlay") as desk:
        ran = await desk.python(
            "import os, socket, time\n"
            "print(socket.gethostbyname(socket.gethostname()), time.strftime('%z'), os.environ.get('CI'))\n"
            "for family in (socket.AF_INET, socket.AF_INET6):\n"
            "    for name in ('localhost', socket.gethostname()):\n"
            "        print(socket.getaddrinfo(name, 80, family)[0][4][0])\n"
            "print(os.environ['LC_TIME'], os.statvfs('/dev/shm').f_blocks * 4096 >> 20)\n"
        )
        assert ran.output.splitlines() == [
            "127.0.0.1 +0530 None", "127.0.0.1", "127.0.0.1", "::1", "::1", "C 2048",
        ]  # fmt: skip
        filled = await desk.run(
            "head -c 200M /dev/zero > /dev/shm/x; head -c 1500M /dev/zero > /tmp/y; stat -c %a /tmp"
        )
        assert (filled.exit_code, filled.output, filled.reason) == (0, "1777\n", None)
        kept = desk.branch.processes().directory / "tmp"
        assert any(kept.iterdir())
        await desk.sandbox.cool_down()
        assert (await desk.run("ls -A /tmp/y /dev/shm")).exit_code != 0
        async with asyncio.timeout(HANG_S):  # what earlier sandboxes left is removed
            while len(list(kept.iterdir())) > 1:
                await asyncio.sleep(0.01)


async def test_shared_memory_and_temporary_files_count(tmp_path):
    """GI-17: `/dev/shm` as memory, also where nobody has it open; `/tmp` as disk, and it is taken back."""
    limits = RunLimits(memory_bytes=256 << 20, disk_bytes=64 << 20)
    async with desk_of(tmp_path, "overlay", limits=limits) as desk:
        held = "head -c 120M /dev/zero > /dev/shm/x; exec python3 -c 'x = bytearray(200 << 20); import time; time.sleep(60)'"
        assert (await desk.run(held)).reason == "memory"
        await desk.run("rm /dev/shm/x")
        over = await desk.run("head -c 900M /dev/zero > /tmp/y; sleep 60")
        assert over.reason == "disk" and "taken back" in (over.note or "")
        assert (await desk.run("ls /tmp/y")).exit_code != 0
