"""GI-18: debuggers and sanitizers work on a command's own processes in the overlay tier."""

import shutil
from pathlib import Path

import pytest
from support.sandboxes import bench_of

from bowerbird.sandbox.settings import SandboxSettings

TRACE = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
child = os.fork()
if child == 0:
    if libc.ptrace(0, 0, None, None) != 0:
        os._exit(9)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(3)
_, status = os.waitpid(child, 0)
if os.WIFEXITED(status):
    print("refused")
else:
    word = ctypes.create_string_buffer(b"seen")
    address = ctypes.addressof(word)
    libc.ptrace(7, child, None, None)
    print("traced", os.WEXITSTATUS(os.waitpid(child, 0)[1]))
print("init", libc.ptrace(16, 1, None, None))
"""
LEAK = "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(7); p = 0; return 0; }\n"
CLEAN = "int main(void) { return 0; }\n"


@pytest.mark.parametrize(("tier", "expected"), [("overlay", "traced 3"), ("copy", "refused")])
async def test_a_process_traces_its_child_in_the_overlay_tier_only(tmp_path: Path, tier: str, expected: str):
    settings = SandboxSettings(tier="copy") if tier == "copy" else SandboxSettings()
    async with bench_of(tmp_path, settings=settings, needs=tier) as bench:
        result = await bench.sandbox.run(["python3", "-c", TRACE])
        assert result.output.splitlines() == [expected, "init -1"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
async def test_gdb_strace_and_the_leak_sanitizer_work(tmp_path: Path):
    async with bench_of(tmp_path, {"leak.c": LEAK, "clean.c": CLEAN}) as bench:
        built = await bench.sandbox.run(
            "cc -g -fsanitize=address -o leak leak.c && cc -g -fsanitize=address -o clean clean.c && cc -g -o plain clean.c"
        )
        if built.exit_code == 0:  # the compiler may lack the sanitizer's library
            assert (await bench.sandbox.run("./clean")).exit_code == 0
            leak = await bench.sandbox.run("./leak")
            assert "7 byte(s) leaked" in leak.output and leak.exit_code != 0, leak.output
        gdb = await bench.sandbox.run("gdb -q -batch -ex 'break main' -ex run -ex bt ./plain")
        assert gdb.exit_code == 127 or "#0  main" in gdb.output, gdb.output
        strace = await bench.sandbox.run("strace -f -e trace=execve /bin/true")
        assert strace.exit_code == 127 or "+++ exited with 0 +++" in strace.output, strace.output
