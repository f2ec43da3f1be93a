"""SB-52: a command tries to change the host. Files, modes, owners, times stay what they were."""

import os
import platform
from pathlib import Path

import pytest
from support.abuse import Desk, Host, pulse, tree_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOADER = "/lib64/ld-linux-x86-64.so.2" if platform.machine() == "x86_64" else "/lib/ld-linux-aarch64.so.1"
HAS_LOADER = Path(LOADER).exists()

# Harmless where they succeed: the system's own files are touched, never emptied or removed. `WROTE` is said
# by whatever leaves no other trace.
ATTEMPTS = {
    "etc": "touch /etc/bowerbird-was-here /etc/passwd /etc/hosts; mkdir /etc/ssl/bowerbird-was-here",
    "usr": "touch /usr/bowerbird-was-here /usr/bin/true; cp /bin/sh /usr/local/bin/bowerbird-was-here",
    "toolchains": 'p=$(python3 -c "import os; print(os.__file__)"); touch "$p" "${p%/*}/was_here.py"',
    "home": 'echo x >> "$KEY"; rm -rf "$HOST_HOME"; touch "$HOST_HOME/was-here"; mv "$HOST_HOME" "$KEY.o"',
    "data-directory": 'echo x > "$DATA/was-here"; rm -f "$OTHER"/manifest.json; touch "$OTHER/open/was-here"',
    "beside-the-workspace": 'echo x > "$WS/../was-here"; echo x > ../was-here; mkdir "$WS/../../was-here"',
    "modes": 'chmod u+r "$KEY" "$HOST_HOME" /usr/bin/true /etc/passwd "$WS"/../*',
    "modes-by-descriptor": "exec 3< /usr/bin/true; chmod u+r /proc/self/fd/3 /dev/fd/3",
    "owners": 'me=$(id -u); chown $me "$KEY" /usr/bin/true; chgrp $(id -g) "$KEY"; chown -h $me "$HOST_HOME"',
    "times": 'for f in "$KEY" "$HOST_HOME" /usr/bin/true /etc/passwd; do touch -h $f; touch -a $f; done',
    "attributes": 'setfattr -n user.x -v y "$KEY"; chattr +d "$KEY" /usr/bin/true; setfacl -m u:1:r "$KEY"',
    "through-a-link": 'ln -s "$KEY" l; echo x > l; chmod 777 l; touch -d 2001-01-01 l; ln -s "$HOST_HOME" d; '
    "rm -rf d/; touch d/was-here",
    "hard-link": 'ln "$KEY" h && echo x > h; ln /usr/bin/true t && touch t; chmod u+r h t',
    "rename": 'mv "$KEY" mine; mv a.txt "$HOST_HOME/"; mv "$DATA" .; mv "$OTHER" "$WS"',
    "descriptor-reopened": "exec 3< /usr/bin/env; exec 4>> /proc/self/fd/3 && echo WROTE; "
    'exec 5<> /dev/fd/3 && echo WROTE; exec 6< "$KEY" && echo x > /dev/fd/6',
    "truncate": 'truncate -s 0 "$KEY"; : > "$KEY"; dd if=/dev/null of="$KEY"; truncate -s +0 /usr/bin/true',
    "bind-mount": 'mkdir m; mount --bind "$HOST_HOME" m && touch m/was-here; umount "$WS" && echo WROTE; '
    "mount -o remount,rw /usr && echo WROTE; mount -t proc p m && echo WROTE",
    "kernel-settings": "cd /proc/sys; for f in kernel/core_pattern kernel/modprobe vm/swappiness; "
    "do (exec 3>> $f) && echo WROTE; done; (exec 3> /proc/sysrq-trigger) && echo WROTE; "
    'n=$(cat /proc/sys/kernel/hostname); hostname "$n" && echo WROTE; true',
    "devices": "mknod sda b 8 0 && echo WROTE; mknod mem c 1 1 && echo WROTE; "
    "(exec 3> /dev/kmsg) && echo WROTE; (exec 3> /dev/filled) && echo WROTE; (exec 3> /filled) && echo WROTE",
    "spills": 'for f in "$SPILLS"/*; do echo x > "$f"; rm -f "$f"; done; touch "$SPILLS/was-here"',
}


def outside(desk: Desk, planted: Host) -> dict[str, object]:
    """What a command must not change: the workspace, somebody's home, the system."""
    system = ["/etc/passwd", "/etc/hosts", "/etc/group", "/usr", "/usr/bin", "/usr/bin/true", "/usr/bin/env"]
    system += ["/usr/local/bin", os.__file__, str(Path(os.__file__).parent)]
    found: dict[str, object] = {}
    for path in (*system, str(planted.key.parents[1]), str(desk.place), str(desk.root)):
        seen = os.lstat(path)
        times = (seen.st_mtime_ns, seen.st_ctime_ns) if path != str(desk.place) else None
        found[path] = (seen.st_mode, seen.st_uid, seen.st_gid, seen.st_size, times)
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/pid_max", "/proc/sys/kernel/hostname"):
        found[path] = Path(path).read_text()
    return {**found, "workspace": tree_of(desk.root), "home": tree_of(planted.key.parents[1])}


def spills(desk: Desk) -> Path:
    """Where whole outputs are kept, on the host."""
    return desk.sandbox.spill_path("x").parent


@pytest.mark.parametrize("name", ATTEMPTS)
async def test_nothing_of_the_host_changes(desk: Desk, planted: Host, name: str):
    other = desk.workspace.branch("other")
    told = {
        **planted.names(), "DATA": str(desk.place / "data"), "WS": str(desk.root),
        "OTHER": str(desk.place / "data/branches" / other.id),
        "SPILLS": "/run/bowerbird/out" if desk.tier == "overlay" else str(spills(desk)),
    }  # fmt: skip
    kept = spills(desk) / "kept.txt"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("whole output")
    before = outside(desk, planted)
    async with pulse():
        result = await desk.run(ATTEMPTS[name], env=told, timeout=20)
    assert outside(desk, planted) == before
    assert planted.secret not in result.output and "WROTE" not in result.output, result.output
    assert kept.read_text() == "whole output" and sorted(p.name for p in kept.parent.iterdir()) == [
        "kept.txt"
    ]
    own = ("/copy/tree/", "/tmp/t_")  # of this branch: what it may write
    assert not [p for p in desk.place.rglob("was-here") if not any(name in str(p) for name in own)]
    await desk.branch.delete("/a.txt") if await desk.branch.stat("/a.txt") else None
    await desk.run("rm -rf ./*; true")
    await desk.assert_usable()


async def test_the_workspace_by_its_own_path_is_the_branch_or_closed(desk: Desk):
    """SB-7: commands find the branch there; without namespaces they find the workspace, to read only."""
    before = tree_of(desk.root)
    result = await desk.run(
        f'echo x > "{desk.root}/made" ; rm -rf "{desk.root}/dir"; ls {desk.root}', timeout=10
    )
    assert tree_of(desk.root) == before
    if desk.tier == "overlay":
        assert "/made" in result.written
    else:
        assert result.output.count("Permission denied") >= 2 and result.written == []
    await desk.run("rm -rf ./*; true")
    await desk.assert_usable()


async def test_a_program_without_the_execute_bit_gains_nothing_by_the_loader(desk: Desk, planted: Host):
    if not HAS_LOADER:
        pytest.skip("no loader at the usual place")
    before = outside(desk, planted)
    result = await desk.run(
        "cp /usr/bin/touch t; chmod 644 t; ./t /usr/was-here; "
        f'for f in /usr/bowerbird-was-here "$HOST_HOME/was-here" here; do {LOADER} ./t "$f"; done; ls here',
        env=planted.names(),
    )  # fmt: skip
    assert outside(desk, planted) == before
    assert result.output.endswith("here\n"), "the branch itself stays writable"
    await desk.assert_usable()
