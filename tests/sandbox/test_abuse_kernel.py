"""SB-53, SB-25, SB-26: a command asks the kernel for what would break its confinement."""

import os
import platform
import stat
from pathlib import Path

import pytest
from support.abuse import Desk, Host, pulse

from bowerbird.sandbox.run import seccomp

pytestmark = pytest.mark.asyncio(loop_scope="module")
HAS_CC = Path("/usr/bin/cc").exists()
SETUID = [path for path in ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount") if Path(path).exists()]

CALLS = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
zero = ctypes.c_ulong(0)
for word in sys.argv[1:]:
    name, number = word.split("=")
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(int(number)), zero, zero, zero, zero, zero, zero)
    print(name, result, errno.errorcode.get(ctypes.get_errno(), ctypes.get_errno()))
"""

TRICKS = """
import ctypes, errno, fcntl, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(what, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(*[ctypes.c_long(a) for a in arguments])
    if result == 0 and what.startswith("clone"):
        os._exit(0)
    print(what, errno.errorcode.get(ctypes.get_errno()) if result < 0 else f"DONE {result}", flush=True)
def attempt(what, do):
    try:
        print(what, "DONE", do())
    except (OSError, ValueError) as error:
        print(what, errno.errorcode.get(getattr(error, "errno", 0) or 0, error))
clone = 56 if os.uname().machine == "x86_64" else 220
for name in ("NEWNS", "NEWCGROUP", "NEWUTS", "NEWIPC", "NEWUSER", "NEWPID", "NEWNET", "NEWTIME"):
    flag = {"NEWNS": 0x20000, "NEWCGROUP": 0x2000000, "NEWUTS": 0x4000000, "NEWIPC": 0x8000000,
            "NEWUSER": 0x10000000, "NEWPID": 0x20000000, "NEWNET": 0x40000000, "NEWTIME": 0x80}[name]
    call(f"unshare-{name}", 272 if clone == 56 else 97, flag)
    if name != "NEWTIME":
        call(f"clone-{name}", clone, flag | 17, 0, 0, 0, 0)
for family in (16, 17, 38, 40, 44, 45, 46, 99, 2**32 + 16):
    for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):
        call(f"socket-{family}-{kind}", 41 if clone == 56 else 198, family, kind, 9)
try:
    slave = os.openpty()[1]
except OSError:
    slave = 0  # no terminal at all
attempt("TIOCSTI", lambda: fcntl.ioctl(slave, 0x5412, b"x"))
call("TIOCSTI-high-bits", 16 if clone == 56 else 29, slave, 0x1_0000_5412, 0)
attempt("TIOCLINUX", lambda: fcntl.ioctl(0, 0x541C, b"x"))
attempt("mknod-0:0", lambda: os.mknod("a.txt.white", 0o020000, 0))
attempt("mknod-over", lambda: os.mknod("dir/white", 0o020000, 0))
for name in ("user.overlay.opaque", "user.overlay.whiteout", "trusted.overlay.opaque",
             "trusted.overlay.redirect", "user.overlay.redirect", "user.overlay.metacopy",
             "security.capability"):
    attempt(f"xattr-{name}", lambda name=name: os.setxattr("dir", name, b"y"))
    attempt(f"xattr-file-{name}", lambda name=name: os.setxattr("a.txt", name, b"y"))
attempt("setuid", lambda: os.setuid(12345))
attempt("setgroups", lambda: os.setgroups([0, 1]))
attempt("chroot", lambda: os.chroot("dir"))
attempt("sethostname", lambda: socket.sethostname("x"))
attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, 0, -5))
attempt("priority-of-all", lambda: os.setpriority(os.PRIO_USER, 0, 0))
"""

FOREIGN = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>
int main(int count, char **words) {
    long result = -1;
    puts("before"); fflush(stdout);
    if (!strcmp(words[1], "x32")) {
        result = syscall(0x40000000 | SYS_getpid);
    } else {
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L));  /* getpid of the 32-bit table */
    }
    printf("AFTER %ld\\n", result);
    return 0;
}
"""


def numbers(names: list[str]) -> list[str]:
    import pyseccomp

    found = [(name, pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)) for name in names]
    return [f"{name}={number}" for name, number in found if number >= 0]


async def test_every_listed_call_is_refused(desk: Desk):
    """SB-25: EPERM for each, ENOSYS for clone3, so that programs fall back to clone."""
    async with pulse():
        listed = [*seccomp.REFUSED, *(seccomp.TRACING if desk.tier == "copy" else ())]
        result = await desk.python(CALLS, *numbers(listed), "clone3=435")
    told = {line.split()[0]: line.split()[2] for line in result.output.splitlines()}
    assert told.pop("clone3") == "ENOSYS"
    assert len(told) > 35 and set(told.values()) == {"EPERM"}, {n: e for n, e in told.items() if e != "EPERM"}
    await desk.assert_usable()


async def test_no_trick_gains_a_namespace_a_mark_or_a_terminal(desk: Desk):
    """Nested user namespaces, forged whiteouts and overlay marks, TIOCSTI, raw sockets, other users."""
    shown = {path: await desk.branch.read_bytes(path) for path in ("/a.txt", "/dir/inner.txt", "/bin/tool")}
    async with pulse():
        result = await desk.python(TRICKS, desk.tier)
    done = [line for line in result.output.splitlines() if " DONE" in line]
    if desk.tier == "overlay":
        # The overlay keeps such names apart from its own; a name in `user.` is the file's owner's to give.
        done = [line for line in done if not line.startswith(("xattr-user.", "xattr-file-user."))]
        done = [line for line in done if not line.startswith("priority-of-all")]
    if desk.tier == "copy":
        # A device 0:0 means something to an overlay only; in a copy it is a special file, and no change.
        done = [line for line in done if not line.startswith("mknod-")]
    assert done == [] and result.exit_code == 0, result.output
    assert result.deleted == [] and [path for path in result.written if "white" in path] == []
    for path, content in shown.items():
        assert await desk.branch.read_bytes(path) == content
    listed = await desk.run("cat a.txt dir/inner.txt bin/tool; rm -f a.txt.white dir/white")
    assert listed.output.encode() == b"".join(shown.values())
    await desk.assert_usable()


async def test_forged_marks_delete_and_reveal_nothing_after_a_mark_and_a_remount(desk: Desk):
    """SB-11: what a command sets on its files is data of these files, whatever it is called."""
    await desk.run("mkdir -p made; echo 1 > made/one; echo 2 > dir/two")
    await desk.python(
        "import os\n"
        "for name in ('opaque', 'whiteout', 'redirect', 'metacopy', 'origin', 'impure'):\n"
        "    for path in ('dir', 'made', 'made/one', 'dir/two', '.'):\n"
        "        for value in (b'y', b'x', b'/etc'):\n"
        "            try:\n"
        "                os.setxattr(path, f'user.overlay.{name}', value)\n"
        "            except OSError:\n"
        "                pass\n"
    )
    desk.branch.mark()
    result = await desk.run("cat made/one dir/two dir/inner.txt a.txt; ls dir")
    assert result.output == "1\n2\ninner\nof the workspace\ninner.txt\ntwo\n"
    assert (await desk.branch.read_file("/dir/inner.txt"))["content"] == "inner\n"
    assert [row["name"] for row in (await desk.branch.ls("/dir"))["entries"]] == ["inner.txt", "two"]
    await desk.run("rm -rf made dir/two")
    await desk.assert_usable()


async def test_other_processes_are_not_traced(desk: Desk, planted: Host):
    """ptrace, process_vm_readv, pidfd_getfd: on the host's processes and on the command's own init."""
    result = await desk.python(
        "import ctypes, os, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for pid in (1, os.getppid(), *map(int, sys.argv[1:])):\n"
        "    print('ptrace', libc.ptrace(16, pid, 0, 0))\n"
        "    buffer = ctypes.create_string_buffer(8)\n"
        "    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)\n"
        "    print('vm', libc.process_vm_readv(pid, vector, 1, vector, 1, 0))\n"
        "    handle = libc.syscall(434, pid, 0)\n"
        "    print('fd', libc.syscall(438, handle, 0, 0) if handle >= 0 else -1)\n"
        "    print('kill', libc.kill(pid, 19) if pid != os.getppid() or pid == 1 else -1)\n",
        planted.neighbour.pid,
        os.getpid(),
    )
    lines = result.output.splitlines()
    refused = [line for line in lines if line.endswith(" -1")]
    # Pid 1 of an own namespace may be signalled by its members; the kernel drops what it does not handle.
    others = [line for line in lines if line not in refused and line != "kill 0"]
    assert others == [] and len(lines) == 16, result.output
    assert planted.neighbour.poll() is None
    await desk.assert_usable()


@pytest.mark.skipif(not HAS_CC or platform.machine() != "x86_64", reason="needs cc on x86_64")
async def test_calls_of_a_foreign_abi_end_the_process(desk: Desk):
    """SB-25: the filter knows one table of calls; who uses another is killed."""
    await desk.branch.write_file("foreign.c", FOREIGN)
    assert (await desk.run("cc -o foreign foreign.c")).exit_code == 0
    for kind in ("x32", "i386"):
        result = await desk.run(["./foreign", kind])
        assert (result.output, result.signal) == ("before\n", 31), result
    await desk.run("rm foreign foreign.c")
    await desk.assert_usable()


async def test_setuid_programs_give_no_rights(desk: Desk):
    """SB-26: no capability, no_new_privs; the bit is not in what the branch changed."""
    result = await desk.run(
        "grep -E 'CapEff|CapPrm|CapInh|CapAmb|NoNewPrivs|Seccomp:' /proc/self/status; id -u"
    )
    status = dict(line.split(":\t") for line in result.output.splitlines() if ":\t" in line)
    assert {status[name] for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert result.output.splitlines()[-1] == str(os.getuid()), "one user, mapped one to one"
    result = await desk.run(
        "cp /usr/bin/id mine; chmod 6755 mine; ./mine -u; "
        + "; ".join(f"timeout 2 {p} < /dev/null" for p in SETUID)
    )
    assert result.output.startswith(f"{os.getuid()}\n")
    landing = desk.branch.land(["/mine"], accept=["/mine"])
    assert stat.S_IMODE((desk.root / "mine").stat().st_mode) == 0o755
    landing.undo()
    await desk.run("rm mine")
    await desk.assert_usable()
