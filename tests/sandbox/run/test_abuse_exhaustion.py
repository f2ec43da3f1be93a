"""SB-54, SB-32 … SB-36: a command takes all the memory, disk, output and files it can get."""

import os
import resource
import signal
from pathlib import Path

import pytest
from support.abuse import TIERS, Desk, desk_of, pulse
from support.places import memory_place

from bowerbird.sandbox.run.limits import RunLimits
from bowerbird.workspace.tree.open_layer import discard

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]
MIB = 1 << 20
LIMITS = RunLimits(memory_bytes=256 * MIB, pids=64, disk_bytes=64 * MIB, file_bytes=32 * MIB)


# ---------------------------------------------------------------- memory

MEMORY = {
    "own": "kept = [bytearray(b'x') * (16 << 20) for _ in range(512)]",
    "shared": "import mmap\nkept = []\nfor _ in range(512):\n    m = mmap.mmap(-1, 16 << 20)\n"
    "    m.write(b'x' * (16 << 20))\n    kept.append(m)",
    "file-in-memory": "import os\nkept = []\nfor n in range(512):\n    f = os.memfd_create('m')\n    kept.append(f)\n"
    "    os.write(f, b'x' * (16 << 20))",
    "many-processes": "import os, time\nfor _ in range(64):\n    if not os.fork():\n"
    "        kept = bytearray(b'x') * (64 << 20)\n        time.sleep(60)\ntime.sleep(60)",
}


@pytest.mark.parametrize("kind", MEMORY)
@pytest.mark.parametrize("tier", TIERS)
async def test_memory_over_the_limit_ends_the_tree(tmp_path, tier: str, kind: str):
    """SB-32: 8 GiB asked for, 256 MiB allowed; the record says `oom`."""
    async with desk_of(tmp_path, tier, limits=LIMITS) as desk:
        async with pulse():
            result = await desk.python(f"{MEMORY[kind]}\nprint('GOT IT ALL')", timeout=30)
        assert "GOT IT ALL" not in result.output
        assert (result.oom, result.exit_code, result.reason) == (True, 137, "memory"), result
        await desk.assert_usable()


FORKS = """
import os, time
kept = bytearray(b'x') * (300 << 20)
for _ in range(4):
    if not os.fork():
        time.sleep(3)
        os._exit(kept[-1] != 120)
print('ENDED', [os.wait()[1] for _ in range(4)])
"""


@pytest.mark.parametrize("tier", TIERS)
async def test_pages_that_forks_only_read_count_once(tmp_path, tier: str):
    """SB-32: a parent of 300 MiB and 4 forks take 300 MiB, not 1,500: multiprocessing was killed for them."""
    limits = RunLimits(memory_bytes=800 * MIB, pids=64, disk_bytes=64 * MIB)
    async with desk_of(tmp_path, tier, limits=limits) as desk:
        result = await desk.python(FORKS, timeout=60)
        assert (result.exit_code, result.reason) == (0, None), result
        assert "ENDED [0, 0, 0, 0]" in result.output


# ---------------------------------------------------------------- disk


@pytest.mark.parametrize("where", [".", "$HOME", "$TMPDIR"])
@pytest.mark.parametrize("tier", TIERS)
async def test_a_full_quota_ends_the_writer_and_takes_back_what_it_wrote(tmp_path, tier: str, where: str):
    """SB-35, D-8: the writers die within a second, nothing of theirs stays, nothing of before is lost."""
    if tier == "overlay" and where == "$TMPDIR":
        pytest.skip("a file system of its own, 1 GiB in memory")
    async with desk_of(tmp_path, tier, {"a": "1"}, limits=LIMITS) as desk:
        await desk.run("echo before > before")
        line = f'cd "{where}"; for n in $(seq 1 1000); do head -c 4194304 /dev/zero > big$n; done; echo ALL'
        async with pulse():
            result = await desk.run(line, timeout=60)
        assert (result.reason, result.exit_code) == ("disk", 137) and "ALL" not in result.output
        assert result.written == [] and await desk.branch.stat("/big1") is None
        assert (await desk.branch.read_file("/before"))["content"] == "before\n"
        again = await desk.run("echo after > after; sleep 0.6", timeout=30)
        assert again.reason is None, "its home and its temporary files are gone, too"
        assert (await desk.branch.read_file("/after"))["content"] == "after\n"
        await desk.run(f'rm -rf "{where}"/big*', timeout=30)
        await desk.assert_usable()


@pytest.mark.parametrize("tier", TIERS)
async def test_one_file_has_a_limit_and_a_sparse_terabyte_costs_nothing(tmp_path, tier: str):
    async with desk_of(tmp_path, tier, limits=LIMITS) as desk:
        async with pulse():
            result = await desk.run(
                "truncate -s 1T sparse; echo $?; dd if=/dev/zero of=sparse bs=1 count=1 seek=1T; echo $?; "
                "dd if=/dev/zero of=long bs=1M count=100 2>/dev/null; echo $?"
            )
        codes = [line for line in result.output.splitlines() if line.isdigit()]
        assert len(codes) == 3 and "0" not in codes, result.output
        assert (await desk.branch.stat("/long"))["size"] <= LIMITS.file_bytes
        await desk.run("rm -f sparse long")
        await desk.assert_usable()


async def test_core_dumps_and_open_files_are_limited(desk: Desk):
    """SB-36."""
    result = await desk.python(
        "import os, resource\n"
        "print(resource.getrlimit(resource.RLIMIT_CORE))\n"
        "kept = []\n"
        "try:\n"
        "    while True: kept.append(os.open('/dev/null', 0))\n"
        "except OSError as error: print(error.errno, len(kept) <= 4096)\n"
    )
    assert result.output == "(0, 0)\n24 True\n"
    crashed = await desk.run("ulimit -c unlimited; kill -SEGV $$")
    assert (crashed.exit_code, crashed.signal) == (139, signal.SIGSEGV) and crashed.written == []
    await desk.assert_usable()


# ---------------------------------------------------------------- output


async def test_a_gigabyte_of_output_is_cut_and_costs_no_memory(desk: Desk):
    """Acceptance 4, SB-16."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with pulse():
        result = await desk.run("yes | head -c 1G; echo the end", timeout=60)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10 * 1024
    assert result.total_bytes == (1 << 30) + len("the end\n") and result.truncated and result.spill_truncated
    raw = result.output.encode()
    assert len(raw) <= 100_000 and raw.startswith(b"y\ny\n") and raw.endswith(b"y\nthe end\n")
    assert result.spill is not None and result.spill in result.output
    assert (await desk.run(["head", "-c", "4", result.spill])).output == "y\ny\n"
    page = await desk.branch.read_file(result.spill, 5, 2)
    assert page["content"] == "y\ny\n"
    await desk.assert_usable()


async def test_output_without_a_newline_is_cut_as_well(desk: Desk):
    async with pulse():
        result = await desk.run("head -c 30M /dev/zero | tr '\\0' x", timeout=30, max_output_bytes=1000)
    assert result.total_bytes == 30 * MIB and len(result.output.encode()) <= 1000
    assert result.output.startswith("xxx") and result.output.endswith("xxx")
    await desk.assert_usable()


async def test_one_byte_that_is_no_utf8_leaves_all_other_text_intact(desk: Desk):
    """Acceptance 5, SB-17."""
    result = await desk.python(
        "import sys\n"
        "for n in range(1000):\n"
        "    sys.stdout.buffer.write(b'line %d' % n + (b'\\xff' if n == 500 else b'') + b'\\n')\n"
    )
    expected = "".join(f"line {n}{chr(0xFFFD) if n == 500 else ''}\n" for n in range(1000))
    assert result.output == expected and not result.truncated
    await desk.assert_usable()


async def test_a_slow_reader_of_live_output_holds_up_no_command(desk: Desk):
    """SB-18."""
    seen: list[int] = []
    result = await desk.run("yes | head -c 20M", on_output=lambda chunk: seen.append(len(chunk)), timeout=30)
    assert result.exit_code == 0 and result.total_bytes == 20 * MIB
    assert len(seen) <= result.duration_ms / 50 + 3
    await desk.assert_usable()


# ---------------------------------------------------------------- files

MANY = """
import os, sys
for n in range(int(sys.argv[1])):
    if n % 1000 == 0:
        os.mkdir(f"many{n}")
        os.chdir(f"many{n}")
    os.close(os.open(str(n), os.O_CREAT | os.O_WRONLY))
    if n % 1000 == 999:
        os.chdir("..")
"""


@pytest.mark.parametrize(("tier", "count"), [("overlay", 100_000), ("copy", 10_000)])
async def test_a_hundred_thousand_files_are_all_there(tier: str, count: int):
    """Fewer without an overlay: each is copied into the branch, which takes a fraction of a millisecond."""
    with memory_place() as place:
        await many_files(place, tier, count)


async def many_files(place: Path, tier: str, count: int) -> None:
    async with desk_of(place, tier) as desk:
        async with pulse():
            result = await desk.python(MANY, count, timeout=120)
        assert result.exit_code == 0 and len(result.written) == count + count // 1000
        await desk.assert_usable()
        assert await desk.branch.stat(f"/many{count - 1000}/{count - 1}") is not None


@pytest.mark.parametrize("tier", TIERS)
async def test_more_directories_than_handles_are_taken(tmp_path, tier: str):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with desk_of(tmp_path, tier) as desk:
        await desk.assert_usable()
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 60, hard))
        try:
            result = await desk.python("import os\nfor n in range(300): os.mkdir(str(n))")
            assert result.exit_code == 0 and len(result.written) == 300
            await desk.run("rm -rf *")
            await desk.assert_usable()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_long_and_odd_names_survive(desk: Desk):
    """255 bytes, bytes that are no text, newlines, quotes, blanks at the ends."""
    names = [
        b"n" * 255,
        "ö".encode() * 127,
        b"\xff\xfe\x80",
        b"line\nbreak",
        b" \t'\"$`\\ ",
        b"-rf",
        b"\x7f\x01",
    ]
    program = (
        "import os, sys\n"
        "for word in sys.argv[1:]:\n"
        "    name = bytes.fromhex(word)\n"
        "    os.mkdir(b'd' + name[1:])\n"
        "    open(b'd' + name[1:] + b'/' + name, 'wb').write(name)\n"
    )
    result = await desk.python(program, *(name.hex() for name in names))
    assert result.exit_code == 0, result.output
    wanted = {os.fsdecode(b"/d" + name[1:] + b"/" + name) for name in names}
    assert wanted <= set(result.written)
    for path in wanted:
        assert await desk.branch.read_bytes(path) == os.fsencode(path).rpartition(b"/")[2]
    desk.branch.mark()
    listed = await desk.python(
        "import os, sys\n"
        "print(all(open(b'd' + n[1:] + b'/' + n, 'rb').read() == n for n in map(bytes.fromhex, sys.argv[1:])))\n",
        *(name.hex() for name in names),
    )
    assert listed.output == "True\n"
    await desk.run(["bash", "-c", "rm -rf ./*"])
    await desk.assert_usable()


DEEP = """
import os
for n in range(2000):
    os.mkdir("deep")
    os.chdir("deep")
open("bottom", "w").write("x")
"""


@pytest.mark.parametrize("tier", TIERS)
async def test_a_tree_two_thousand_deep_breaks_nothing(tier: str):
    """Deeper than a path can name, and than Python's stack."""
    with memory_place() as place:
        await deep_tree(place, tier)


async def deep_tree(place: Path, tier: str) -> None:
    async with desk_of(place, tier, {"a": "1"}) as desk:
        async with pulse():
            result = await desk.python(DEEP, timeout=60)
        assert result.exit_code == 0, result.output
        assert "/deep/deep/deep" in result.written
        await desk.assert_usable()
        desk.branch.mark()
        await desk.assert_usable()
        assert (await desk.run("rm -rf deep; ls", timeout=60)).output == "a\n"
        await desk.assert_usable()
    discard(place / "data")  # deeper than the standard library's own removal goes
    discard(place / "ws")


@pytest.mark.parametrize("tier", TIERS)
async def test_directories_and_files_closed_to_everyone_close_no_branch(tmp_path, tier: str):
    async with desk_of(tmp_path, tier, {"d/f": "1", "g": "2"}) as desk:
        await desk.run("mkdir -p x/y; echo 1 > x/y/z; echo 2 > h; chmod 000 x/y x h g d")
        await desk.assert_usable()
        desk.branch.mark()
        await desk.assert_usable()
        await desk.run("chmod -R u+rwx .; rm -rf x")
        assert sorted(desk.branch.changes().deleted) == []
