"""SB-2 … SB-6, acceptance 1: which tier a host gives, what it says of it, and that nothing runs below it."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.abuse import TIERS, desk_of, patience

from bowerbird.core.errors import SandboxUnavailable
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.probe import Bubblewrap
from bowerbird.sandbox.run.limits import RunLimits
from bowerbird.sandbox.run.status import OVERDUE
from bowerbird.sandbox.run.toolchains import TOLD
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Workspace

TESTS = Path(__file__).parents[1]
DENIED = """
import asyncio, json, os, sys
from pathlib import Path
from bowerbird.core.errors import SandboxUnavailable
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Workspace

async def main(place):
    told = {}
    for minimum in ("copy", "overlay"):
        host = SandboxHost(place / "data", SandboxSettings(minimum=minimum))
        with Workspace(place / "ws", data_dir=place / "data") as workspace:
            branch = workspace.branch()
            status = await host.status()
            told[minimum] = {"tier": status.tier, "reasons": status.reasons, "isolation": status.isolation}
            try:
                sandbox = await host.sandbox(branch)
                runs = []
                for line in ("cat a; echo made > made", "cat made; cat " + str(place / "outside"),
                             "echo x > " + str(place / "ws/a"), "unshare -U true", "id -u; grep CapEff /proc/self/status"):
                    done = await sandbox.run(line)
                    runs.append([done.exit_code, done.output, done.written, done.tier])
                told[minimum]["runs"] = runs
                told[minimum]["changes"] = branch.changes().record()
            except SandboxUnavailable as error:
                told[minimum]["refused"] = str(error)
        await host.close()
    print(json.dumps(told))

asyncio.run(main(Path(sys.argv[1])))
"""


def test_without_user_namespaces_commands_run_on_a_copy_and_the_status_says_why(tmp_path):
    """Acceptance 1: really denied to the process, by a filter on the calls that make them."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/a").write_text("of the workspace\n")
    (tmp_path / "outside").write_text("secret")
    ran = subprocess.run(
        [sys.executable, "-m", "support.denying", sys.executable, "-c", DENIED, str(tmp_path)],
        cwd=TESTS, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    allowed = told["copy"]
    assert allowed["tier"] == "copy" and allowed["isolation"] == ["landlock", "seccomp"]
    assert "EPERM" in allowed["reasons"]["overlay"] or "not permitted" in allowed["reasons"]["overlay"]
    assert "user namespaces" in allowed["reasons"]["overlay"] and "sysctl" in allowed["reasons"]["overlay"]
    assert "names" in allowed["reasons"]["copy"], "what this tier cannot hide"
    first, second, third, fourth, fifth = allowed["runs"]
    assert first == [0, "of the workspace\n", ["/made"], "copy"]
    assert second[1].startswith("made\n") and "secret" not in second[1] and second[0] != 0
    assert third[0] != 0 and (tmp_path / "ws/a").read_text() == "of the workspace\n"
    assert fourth[0] != 0 and fifth[1].endswith("CapEff:\t0000000000000000\n")
    assert allowed["changes"] == {"written": ["/made"], "deleted": []}
    refused = told["overlay"]["refused"]
    assert "'overlay'" in refused and ("EPERM" in refused or "not permitted" in refused)


async def test_a_minimum_that_is_not_met_refuses_every_command(tmp_path):
    """SB-5: tier wanted, failed step and remedy are named; nothing ran."""
    with Workspace(data_dir=tmp_path) as workspace:
        for settings in (
            SandboxSettings(tier="none"),
            SandboxSettings(tier="copy", minimum="overlay"),
        ):
            host = SandboxHost(tmp_path, settings)
            try:
                for _ in range(2):
                    with pytest.raises(SandboxUnavailable, match=r"doctor"):
                        await host.sandbox(workspace.branch())
            finally:
                await host.close()


async def test_the_status_is_the_specified_record(tmp_path):
    """SB-6; the probe takes a second at most."""
    host = SandboxHost(tmp_path)
    try:
        started = time.monotonic()
        status = await host.status()
        assert time.monotonic() - started < patience(2)
        assert status.tier == "overlay" and status.reasons["overlay"] is None
        assert set(status.isolation) >= {"userns", "mountns", "pidns", "netns", "ipcns", "utsns", "seccomp"}
        assert (status.network, status.minimum) == ("closed", "copy")
        assert set(status.limits) == {"memory", "pids", "disk"} and status.probed_at.endswith("+00:00")
        assert list(tmp_path.glob(".probe-*")) == [], "taken down again"
        assert await host.status() is status and await host.status(again=True) is not status
    finally:
        await host.close()


async def test_a_copy_larger_than_allowed_is_refused_with_both_counts(tmp_path):
    """SB-12."""
    files = {f"f{n}": "x" * 1000 for n in range(30)}
    for limits in ({"copy_max_files": 20}, {"copy_max_bytes": 20_000}):
        async with desk_of(tmp_path / str(len(limits)) / next(iter(limits)), "copy", files, **limits) as desk:
            with pytest.raises(SandboxUnavailable, match=r"30 entries and 30000 bytes.*max_files.*max_bytes"):
                await desk.run("true")
            assert (await desk.branch.read_file("f1"))["total_lines"] == 1


async def test_a_branch_of_nothing_is_at_workspace(tmp_path):
    """SB-7."""
    with Workspace(data_dir=tmp_path) as workspace:
        host = SandboxHost(tmp_path)
        try:
            sandbox = await host.sandbox(workspace.branch())
            result = await sandbox.run("pwd; ls -A; echo x > made")
            assert (result.output, result.written) == ("/workspace\n", ["/made"])
            assert (await sandbox.run("cat made")).output == "x\n"
        finally:
            await host.close()


async def test_idle_sandboxes_end_and_the_least_used_first(tmp_path):
    """SB-9: what they held is kept."""
    async with desk_of(tmp_path, "overlay", warm_s=0.0) as desk:
        await desk.run("echo x > made; touch $HOME/here")
        assert desk.sandbox.warm
        await desk.sandbox.cool_down()
        assert not desk.sandbox.warm
        assert (await desk.run("cat made; ls $HOME")).output == "x\nhere\n"


@pytest.mark.parametrize("tier", TIERS)
async def test_an_answer_that_nobody_waits_for_any_more_is_taken_for_no_other(tmp_path, tier: str):
    """A command that ends while its limits are looked at leaves such an answer; the next may be a mount's."""
    async with desk_of(tmp_path, tier) as desk:
        await desk.run("true")
        warm = desk.sandbox._projection._warm
        for number in range(20):
            looking = asyncio.create_task(warm.usage())
            await asyncio.sleep(0)
            looking.cancel()
            await asyncio.wait([looking])
            assert looking.cancelled()
            await desk.branch.write_file("f", f"{number}")
            desk.branch.mark()
            assert (await desk.run("cat f")).output == f"{number}"
            assert (await warm.usage()).processes == 0


async def test_at_most_four_commands_of_a_branch_run_at_once(tmp_path):
    """SB-20: more wait, and all end."""
    async with desk_of(tmp_path, "overlay", limits=RunLimits(pids=200)) as desk:
        line = "mine=$(mktemp -d lockXXXXXXXX); set -- lock*; echo $#; sleep 0.1; rmdir $mine"
        results = await asyncio.gather(*(desk.run(line) for _ in range(9)))
        assert max(int(r.output) for r in results) <= 4 and all(r.exit_code == 0 for r in results)


async def test_the_command_sees_the_specified_environment_and_files(tmp_path, monkeypatch):
    """SB-21, SB-23, SB-24: nothing of the server's own; no other descriptor than three."""
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "x")
    async with desk_of(tmp_path, "overlay", {"a": "1"}, env={"MINE": "y"}) as desk:
        seen = await desk.run("env | cut -d= -f1 | sort; ls /proc/self/fd | wc -l", env={"ALSO": "z"})
        *names, descriptors = seen.output.split()
        wanted = {"PATH", "HOME", "LANG", "TERM", "TMPDIR", "PWD", "MINE", "ALSO"}
        others = {n for n in names if n not in wanted and not n.startswith("LC_")}
        assert wanted <= set(names) and others <= {
            "TZ", "LANGUAGE", *TOLD,
            "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0", "GIT_CONFIG_SYSTEM",
            "GIT_DISCOVERY_ACROSS_FILESYSTEM", "SHLVL", "_", "OLDPWD",
        }  # fmt: skip
        assert descriptors == "4", "three, and the one that looks"
        etc = (await desk.run("ls -A /etc; cat /etc/passwd; ls -A / /home /run")).output
        allowed = {
            "passwd", "group", "hosts", "nsswitch.conf", "resolv.conf", "ssl", "ca-certificates", "ld.so.cache",
            "alternatives", "localtime", "services", "protocols", "host.conf", "gai.conf", "os-release",
            "mime.types", "timezone", "maven", *(path.name for path in Path("/etc").glob("java-*")),
        }  # fmt: skip
        assert set(etc.split("agent:x")[0].split()) <= allowed and "root:" not in etc
        assert (await desk.run("git status; git config safe.directory")).output.endswith("*\n")


async def test_what_one_process_found_out_the_next_one_knows_until_a_start_fails(tmp_path):
    """Finding engine 8: the first run of each process waited for a probe, also where it ran no command."""

    async def found(settings: SandboxSettings, *, remember: bool = True, again: bool = False) -> str:
        host = SandboxHost(tmp_path, settings, remember=remember)
        try:
            return (await host.status(again=again)).probed_at
        finally:
            await host.close()

    settings = SandboxSettings()
    first = await found(settings)
    assert await found(settings) == first
    assert await found(settings, remember=False) != first, "a server looks itself"
    assert await found(SandboxSettings(tier="copy")) != first, "other settings"
    second = await found(settings, again=True)
    assert second != first and await found(settings) == second
    host = SandboxHost(tmp_path, settings, remember=True)
    assert (await host.status()).probed_at == second
    await host.start_failed()
    assert (await host.status()).probed_at not in (first, second)
    (tmp_path / "sandbox/status.json").write_text("{")
    await host.close()
    assert await found(settings) != second, "a broken record is no record"


async def test_a_probe_that_did_not_end_in_time_says_nothing_of_the_host(tmp_path, monkeypatch):
    """SB-4: a busy machine at the start of a server took commands away from all of its sessions."""
    settings = SandboxSettings()
    host = SandboxHost(tmp_path, settings, remember=True)
    with monkeypatch.context() as busy:
        busy.setattr("bowerbird.sandbox.probe._STEP_S", 0.001)
        status = await host.status()
        assert (status.tier, set(status.reasons.values())) == ("none", {OVERDUE})
        assert not (tmp_path / "sandbox/status.json").exists(), "no other process is told"
    monkeypatch.setattr("bowerbird.sandbox.host.REPEAT_S", float("inf"))
    assert await host.status() is status, "not each who asks pays for a probe"
    monkeypatch.setattr("bowerbird.sandbox.host.REPEAT_S", 0.0)
    assert (await host.status()).tier in ("overlay", "copy")
    await host.close()
    host = SandboxHost(tmp_path, settings, remember=True)
    assert (await host.status()).tier in ("overlay", "copy")
    await host.close()


async def test_after_a_failed_start_the_host_is_looked_at_anew(tmp_path, monkeypatch):
    """SB-4: after any start failure."""
    async with desk_of(tmp_path, "overlay") as desk:
        before = (await desk.host.status()).probed_at
        monkeypatch.setattr(desk.host, "_bwrap", Bubblewrap("/nonexistent/bwrap", None))
        with pytest.raises(SandboxUnavailable):
            await desk.run("true")
        assert (await desk.host.status()).probed_at != before
        await desk.assert_usable()


async def test_a_slow_helper_makes_no_other_conversation_wait(tmp_path):
    """Law 5: the helper that mounts and starts was asked on the event loop; on a busy machine all stood still."""
    async with desk_of(tmp_path, "overlay", {"a": "1"}) as desk:
        await desk.run("true")
        await desk.sandbox.cool_down()
        helper = desk.host.warden._process
        assert helper is not None
        went_on: list[float] = []

        def go_on() -> None:
            went_on.append(time.monotonic())
            helper.send_signal(signal.SIGCONT)

        helper.send_signal(signal.SIGSTOP)
        later = threading.Timer(1.5, go_on)
        later.start()
        running = asyncio.create_task(desk.run("cat a"))
        await asyncio.sleep(0.1)
        beat = time.monotonic()
        assert (await running).output == "1"
        assert beat < went_on[0]
