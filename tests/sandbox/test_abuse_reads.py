"""SB-51, acceptance 2: a command looks for what the host keeps from it. No secret may come out, by no way.

The whole corpus SB-51 … SB-57 is in `test_abuse_*`, `test_network` (SB-55), `test_shell_backend`, `test_allowed` and
`test_copy_tier` (SB-56), `tests/monty/test_python_limits` (SB-57). `benchmarks/guards.py` takes each guard away and
shows that its cases then fail.
"""

import asyncio
import os
import secrets

import pytest
from support.abuse import Desk, Host, desk_of, pulse

from bowerbird.core.errors import WorkspaceError

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOOKUPS = {
    "home": 'cat "$KEY" ~/.ssh/* /root/.ssh/* /home/*/.ssh/*; find "$HOST_HOME" -type f -exec cat {} +',
    "data-directory": 'cat "$DATA"/planted "$DATA"/*/planted; find "$DATA" -name "plant*" -exec cat {} +',
    "other-branches": 'cat "$OTHER"/open/planted "$OTHER"/*.jsonl; cp -r "$OTHER" .; cat */open/planted',
    "workspace-under-its-mount": 'cat "$WS"/../planted "$DATA"/../planted ../planted',
    "environ-of-1": "tr '\\0' '\\n' < /proc/1/environ; cat /proc/1/cwd/planted",
    "environ-of-the-server": "for p in $SERVER $NEIGHBOUR; do tr '\\0' '\\n' < /proc/$p/environ; done",
    "all-environs": "cat /proc/[0-9]*/environ | tr '\\0' '\\n'",
    "proc-root": 'for p in self 1 $SERVER $NEIGHBOUR; do cat "/proc/$p/root$KEY" "/proc/$p/cwd/$KEY"; done',
    "proc-fd": "for f in /proc/[0-9]*/fd/*; do [ -p $f ] || timeout 0.5 head -c 300 $f; done",
    "proc-memory": "for p in $SERVER $NEIGHBOUR; do head -c 4096 /proc/$p/mem; cat /proc/$p/maps; done",
    "own-environment": "env; set; cat /proc/self/environ",
    "inherited-descriptors": 'for n in $(seq 0 255); do cat <&$n; done; ls -l /proc/self/fd',
    "links": 'ln -s "$KEY" l; cat l; ln -s / r; cat "r$KEY"; ln "$KEY" h; cat h; cp -L l c; cat c',
    "dot-dot": 'cat ../../../../../../../../../../..$KEY; cd /; cat ".$KEY"',
    "shared-memory": "cat /dev/shm/bowerbird-*; ls -la /dev/shm",
    "terminals-and-disks": "cat /dev/vcs* /dev/mem /dev/kmem /dev/sd* /dev/vd* /dev/tty[0-9]*",
    "kernel-log": "dmesg; cat /dev/kmsg /proc/kmsg /proc/kcore /sys/kernel/debug/*",
}  # fmt: skip

SOCKETS = """
import os, socket, sys
for name in (os.environ["SOCKET"], "link", "\\0" + os.environ["ABSTRACT"], "/var/run/docker.sock",
             "/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/private"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        try:
            asking = socket.socket(socket.AF_UNIX, kind)
            asking.settimeout(2)
            asking.connect(name)
            print("CONNECTED", repr(name), asking.recv(100))
        except OSError as error:
            print(repr(name), error)
"""

RACE = """
import os, sys
key = os.environ["KEY"]
os.makedirs("real", exist_ok=True)
open("real/id_rsa", "w").write("harmless")
while True:
    for name, target in (("file", key), ("turning", os.path.dirname(key))):
        try:
            os.symlink(target, "new")
            os.rename("new", name)
        except OSError:
            pass
        try:
            os.unlink(name)
        except OSError:
            pass
    try:
        open("file", "w").write("harmless")
        os.mkdir("turning")
        open("turning/id_rsa", "w").write("harmless")
        os.unlink("turning/id_rsa")
        os.rmdir("turning")
        os.unlink("file")
    except OSError:
        pass
"""


async def environment(desk: Desk, planted: Host) -> dict[str, str]:
    """What a hostile command is told, and another branch that holds the secret."""
    other = desk.workspace.branch("other")
    await other.write_file("planted", planted.secret)
    directory = desk.place / "data/branches" / other.id
    return {
        **planted.names(), "DATA": str(desk.place / "data"), "WS": str(desk.root), "OTHER": str(directory),
    }  # fmt: skip


async def everything_in(desk: Desk) -> str:
    """All that the file tools show of a branch."""
    found: list[str] = []
    for path in (await desk.branch.list_files(include_ignored=True))["files"]:
        try:
            found.append((await desk.branch.read_bytes(path)).decode(errors="replace"))
        except WorkspaceError as error:
            found.append(str(error))
    return "\n".join(found)


@pytest.mark.parametrize("name", LOOKUPS)
async def test_no_secret_of_the_host_comes_out(desk: Desk, planted: Host, name: str, monkeypatch):
    monkeypatch.setenv("BOWERBIRD_TEST_API_KEY", planted.secret)
    told = await environment(desk, planted)
    os.lseek(planted.inherited, 0, os.SEEK_SET)
    for place in (desk.place, desk.place / "data", desk.place / "data/branches"):
        (place / "planted").write_text(planted.secret)
    async with pulse():
        result = await desk.run(LOOKUPS[name], env=told, stdin=b"", timeout=20)
    assert planted.secret not in result.output, result.output
    assert planted.secret not in await everything_in(desk)
    assert not planted.asked
    await desk.run("rm -rf ./*; true")
    await desk.assert_usable()


async def test_no_socket_of_the_host_answers(desk: Desk, planted: Host):
    """Docker's, the session bus, an SSH agent: with a path or without, by a link too."""
    await desk.run('ln -sf "$SOCKET" link', env=planted.names())
    async with pulse():
        result = await desk.python(SOCKETS, env=planted.names())
    assert result.exit_code == 0, result.output
    assert "CONNECTED" not in result.output and planted.secret not in result.output
    assert not planted.asked
    await desk.assert_usable()


async def test_a_socket_of_the_branch_s_own_answers(desk: Desk):
    """What is refused to the outside works inside: test suites use such sockets."""
    result = await desk.python(
        "import socket\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('own'); s.listen()\n"
        "c = socket.socket(socket.AF_UNIX); c.connect('own')\n"
        "p, _ = s.accept(); c.sendall(b'hello'); print(p.recv(9))\n"
        "a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))\n"
    )
    assert result.output == "b'hello'\nb'x'\n"
    await desk.assert_usable()


async def test_no_process_of_the_host_is_reached(desk: Desk, planted: Host):
    """Seen by name at most, and only without namespaces; not signalled, not slowed, not limited."""
    limits = "import resource, sys; resource.prlimit(int(sys.argv[1]), resource.RLIMIT_NOFILE, (3, 3))"
    for pid in (planted.neighbour.pid, os.getpid()):
        result = await desk.run(
            f'kill -9 {pid}; kill -STOP {pid}; renice 19 -p {pid}; taskset -p 1 {pid}; '
            f'python3 -c "{limits}" {pid}; gdb -p {pid} -batch; strace -p {pid} & sleep 0.05; kill -9 -1',
            timeout=10,
        )  # fmt: skip
        assert result.tier == desk.tier
    assert planted.neighbour.poll() is None
    assert os.getpriority(os.PRIO_PROCESS, planted.neighbour.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    assert os.sched_getaffinity(planted.neighbour.pid) == os.sched_getaffinity(0)
    if desk.tier == "overlay":
        listed = await desk.run("ls /proc | grep -c '^[0-9]'")
        assert int(listed.output) < 8
    await desk.assert_usable()


@pytest.mark.parametrize("tier", ["overlay", "copy"])
async def test_links_swapped_while_changes_are_taken_lead_nowhere(tmp_path, planted: Host, tier: str):
    """SB-10, SB-11: a background process turns a directory into a link and back as fast as it can."""
    async with desk_of(tmp_path, tier, {"a": "1"}) as desk:
        with desk.sandbox.shown_file("race.py", RACE) as program:
            request = desk.sandbox.request(["python3", program], env=planted.names(), timeout=60)
            running = await desk.sandbox.begin(request)
            try:
                async with pulse():
                    for number in range(25):
                        await desk.run(f"echo {number} > b")
                        for path in ("turning/id_rsa", "file"):
                            try:
                                text = (await desk.branch.read_file(path))["content"]
                                assert planted.secret not in text
                                await desk.branch.write_file(path, secrets.token_hex(4))
                            except WorkspaceError:
                                continue
            finally:
                running.stop("cancel")
                await running.wait()
                await desk.sandbox.end(running)
        assert planted.secret not in await everything_in(desk)
        assert planted.key.read_text() == f"{planted.secret}\n"
        assert sorted(os.listdir(planted.key.parent)) == ["id_rsa"]
        assert all(
            planted.secret.encode() not in path.read_bytes()
            for path in (tmp_path / "data").rglob("*")
            if path.is_file() and not path.is_symlink()
        )
        await asyncio.sleep(0)
        await desk.assert_usable()
