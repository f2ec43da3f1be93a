"""GI-16, D-26: where the sandbox is why a command failed, one line says so, once, and which setting changes it."""

import subprocess
from pathlib import Path

import pytest
from support.abuse import TIERS, desk_of

from bowerbird.sandbox.run.limits import RunLimits

LIMITS = RunLimits(memory_bytes=64 << 20, pids=200)


@pytest.mark.parametrize("tier", TIERS)
async def test_each_cause_is_said_once_with_its_setting(tmp_path, tier: str):
    async with desk_of(tmp_path, tier, limits=LIMITS) as desk:
        name = "import socket; socket.getaddrinfo('example.org', 443)"
        trace = "echo 'ptrace(PTRACE_TRACEME): Operation not permitted'; exit 1"
        cases = {
            "sandbox.network": ["python3", "-c", name],
            "sandbox.read_only": "printf '#!/no/such/python\n' > s; chmod +x s; ./s",
            "sandbox.pids": 'echo "RuntimeError: can\'t start new thread"; exit 1',
            "sandbox.disk_bytes": "ulimit -f 1; head -c 9000 /dev/zero > big",
        }
        if tier == "copy":
            cases["ptrace"] = trace  # in the other tier it works
        if tier == "overlay":
            cases["sandbox.memory_bytes"] = "head -c 40M /dev/zero > /dev/shm/x"
        for setting, command in cases.items():
            first, second = await desk.run(command), await desk.run(command)
            assert first.note is not None and setting in first.note, (setting, first)
            assert second.note is None or setting not in second.note, (setting, second)


async def test_a_server_of_ones_own_is_refused_in_the_copy_tier_and_it_is_said_why(tmp_path):
    """SB-27: no mode shares the host's network, so there is no loopback without bubblewrap either."""
    serve = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); print('listens')"
    async with desk_of(tmp_path, "copy", limits=LIMITS) as desk:
        said = await desk.run(["python3", "-c", serve])
        assert "Operation not permitted" in said.output and "bubblewrap" in (said.note or ""), said
    async with desk_of(tmp_path / "other", "overlay", limits=LIMITS) as desk:
        served = await desk.run(["python3", "-c", serve])
        assert "listens" in served.output and served.note is None, served


async def test_a_program_that_is_only_outside_is_named_and_one_that_is_nowhere_is_not(tmp_path, monkeypatch):
    tool = tmp_path / "bin/own-tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    async with desk_of(tmp_path, "overlay", toolchains=("off",)) as desk:
        for command in ("own-tool", ["own-tool"]):
            desk.sandbox._causes._told.clear()  # pyright: ignore[reportPrivateUsage]
            said = (await desk.run(command)).note or ""
            assert str(tool) in said and "sandbox.toolchains" in said
        assert (await desk.run("no-such-tool")).note is None
        assert (await desk.run("own-tool || true")).note is None, "it did not fail"


async def test_no_output_makes_the_note_tell_what_files_the_host_has(tmp_path: Path):
    """An output may name any path: what is said is the same for one that exists and one that does not."""
    there, nowhere = tmp_path / "there", tmp_path / "gone"
    there.write_text("x")
    there.chmod(0o755)
    async with desk_of(tmp_path, "overlay") as desk:
        said = [
            ((await desk.run(f"echo '{path}: bad interpreter'; exit 1")).note or "").replace(str(path), "")
            for path in (there, nowhere)
        ]
        assert said[0] == said[1] != ""


@pytest.mark.parametrize("tier", TIERS)
async def test_a_hidden_file_that_a_command_misses_is_named_with_the_setting(tmp_path: Path, tier: str):
    """GI-16: a suite whose fixture is hidden fails as if the file were gone; another missing file is nobody's."""
    files, hide = {"fixtures/.netrc": "machine a"}, {"hide": (".netrc",)}
    async with desk_of(tmp_path, tier, files, workspace=hide) as desk:
        commands = [
            ["python3", "-c", "import pathlib; pathlib.Path('fixtures/.netrc').resolve().open()"],
            "cat fixtures/.netrc",
            "cd fixtures && cat .netrc",
            "echo \"Error: ENOENT: no such file or directory, open 'fixtures/.netrc'\"; exit 1",
            "echo 'open fixtures/.netrc: no such file or directory'; exit 1",
        ]
        for command in commands:
            desk.sandbox._causes._told.clear()  # pyright: ignore[reportPrivateUsage]
            said = await desk.run(command)
            assert "workspace.show" in (said.note or "") and ".netrc" in (said.note or ""), said
        for other in ("cat fixtures/gone", "cat /elsewhere/.netrc", "cat ../.netrc"):
            desk.sandbox._causes._told.clear()  # pyright: ignore[reportPrivateUsage]
            assert "workspace.show" not in ((await desk.run(other)).note or ""), other


async def test_a_clone_that_stumbles_over_links_is_told_how_to_copy(tmp_path: Path):
    """GI-16: on an overlay a hard link to a file of the workspace has another number than the file."""
    async with desk_of(tmp_path, "overlay", {"a.txt": "a"}) as desk:
        commit = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "one"]
        for words in (["git", "init", "-q", "."], ["git", "add", "."], commit):
            subprocess.run(words, cwd=desk.root, check=True)
        said = await desk.run("git clone -q . clone")
        assert said.exit_code == 0 or "--no-hardlinks" in (said.note or ""), said
        assert (await desk.run("git clone -q --no-hardlinks . copied")).exit_code == 0
