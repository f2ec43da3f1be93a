"""GI-19: renaming a directory works wherever it lies, in both tiers (finding 4 of projects.md)."""

import contextlib
import os
import shutil
from pathlib import Path

import pytest
from support.abuse import TIERS
from support.sandboxes import bench_of

from bowerbird.sandbox.settings import SandboxSettings

TREE = {
    "src/pkg/__init__.py": "one\n",
    "src/pkg/deep/er/mod.py": "two\n",
    "src/other/x": "x\n",
    "node_modules/x/index.js": "1\n",
    "top.txt": "top\n",
}
WAYS = {
    "os.rename": "import os; os.rename('src/pkg', 'src/lib')",
    "Path.rename": "from pathlib import Path; Path('src/pkg').rename('src/lib')",
    "absolute": "import os; os.rename(os.path.abspath('src/pkg'), os.path.abspath('src/lib'))",
    "slash": "import os; os.rename('src/pkg/', 'src/lib/')",
    "descriptors": (
        "import os; fd = os.open('src', os.O_RDONLY); "
        "os.rename('pkg', 'lib', src_dir_fd=fd, dst_dir_fd=fd)"
    ),
    "proc": (
        "import os; fd = os.open('src', os.O_RDONLY); "
        "os.rename(f'/proc/self/fd/{fd}/pkg', f'/proc/self/fd/{fd}/lib')"
    ),
    "thread": (
        "import os, threading; t = threading.Thread(target=os.rename, args=('src/pkg', 'src/lib')); "
        "t.start(); t.join()"
    ),
    "onto-empty": "import os; os.mkdir('src/lib'); os.rename('src/pkg', 'src/lib')",
}  # fmt: skip


def settings(tier: str) -> SandboxSettings:
    return SandboxSettings(tier="copy") if tier == "copy" else SandboxSettings()


@pytest.mark.parametrize("tier", TIERS)
async def test_a_directory_of_the_workspace_is_renamed_in_every_way(tmp_path: Path, tier: str):
    for number, way in enumerate(WAYS):
        async with bench_of(tmp_path / str(number), TREE, settings=settings(tier), needs=tier) as bench:
            result = await bench.sandbox.run(["python3", "-c", WAYS[way]])
            assert (result.exit_code, result.output) == (0, ""), (way, result)
            shown = await bench.sandbox.run("ls -A src; cat src/lib/__init__.py src/lib/deep/er/mod.py")
            assert shown.output == "lib\nother\none\ntwo\n", way
            changes = bench.branch.changes()
            assert changes.written == ("/src/lib/__init__.py", "/src/lib/deep/er/mod.py")
            gone = [path for path in changes.deleted if path.endswith(".py")]
            assert gone == ["/src/pkg/__init__.py", "/src/pkg/deep/er/mod.py"]
            renamed = {row.path: row.renamed_from for row in bench.branch.diff().written}
            assert renamed == dict(zip(changes.written, gone, strict=True)), "shown as renames"


@pytest.mark.parametrize("tier", TIERS)
async def test_git_and_node_rename_directories(tmp_path: Path, tier: str):
    async with bench_of(tmp_path, TREE, settings=settings(tier), needs=tier) as bench:
        git = await bench.sandbox.run(
            "git init -q . && git add src && git -c user.name=a -c user.email=b commit -qm one"
            " && git mv src/pkg src/lib && git status --short"
        )
        if git.exit_code != 127:
            assert (git.exit_code, git.output.splitlines()[:2]) == (
                0,
                [
                    "R  src/pkg/__init__.py -> src/lib/__init__.py",
                    "R  src/pkg/deep/er/mod.py -> src/lib/deep/er/mod.py",
                ],
            ), git.output
        script = "require('fs').renameSync('node_modules/x', 'node_modules/.x')"
        node = await bench.sandbox.run(["node", "-e", script])
        if node.exit_code != 127:
            assert (node.exit_code, node.output) == (0, "")
            assert (await bench.sandbox.run("ls -A node_modules")).output == ".x\n"


KEPT = """
import os, stat
def told(top):
    rows, links = [], {}
    for above, dirs, files in os.walk(top):
        for name in [".", *files, *(d for d in dirs if os.path.islink(os.path.join(above, d)))]:
            path = os.path.normpath(os.path.join(above, name))
            s = os.lstat(path)
            kind = stat.S_IFMT(s.st_mode)
            body = os.readlink(path) if os.path.islink(path) else open(path).read() if stat.S_ISREG(kind) else ""
            given = {} if os.path.islink(path) else {n: os.getxattr(path, n) for n in attributes(path)}
            twin = links.setdefault(s.st_ino, os.path.relpath(path, top))
            rows.append((os.path.relpath(path, top), oct(s.st_mode), s.st_mtime_ns, body, given, twin))
    return sorted(rows, key=repr)
def attributes(path):
    try:
        return [n for n in os.listxattr(path) if n.startswith("user.")]
    except OSError:
        return []
before = told("tree")
os.mkdir("below")
os.rename("tree", "below/moved")
after = told("below/moved")
print(before == after, len(before), os.path.lexists("tree"))
if before != after:
    print(before, after, sep="\\n")
"""


@pytest.mark.parametrize("tier", TIERS)
async def test_what_is_in_it_stays_as_it_was(tmp_path: Path, tier: str):
    """Modes, times, links of both kinds, attributes; also what the user may not write."""
    tree = tmp_path / "ws" / "tree"
    (tree / "closed" / "inner").mkdir(parents=True)
    (tree / "run").write_text("run")
    (tree / "closed" / "inner" / "file").write_text("x")
    (tree / "secret").write_text("y")
    (tree / "twin").hardlink_to(tree / "run")
    (tree / "closed" / "third").hardlink_to(tree / "run")
    (tree / "link").symlink_to("run")
    (tree / "dangling").symlink_to("nowhere/at/all")
    (tree / "to-directory").symlink_to("closed")
    with contextlib.suppress(OSError):
        os.setxattr(tree / "run", "user.note", b"kept")
        os.setxattr(tree / "closed", "user.note", b"kept")
    (tree / "run").chmod(0o755)
    (tree / "secret").chmod(0o600)
    for path in (tree / "closed" / "inner", tree / "closed", tree / "run", tree):
        os.utime(path, ns=(1_500_000_000_000_000_001, 1_600_000_000_123_456_789))
    (tree / "closed" / "inner").chmod(0o555 if tier == "overlay" else 0o755)
    (tree / "closed").chmod(0o700)
    async with bench_of(tmp_path, settings=settings(tier), needs=tier) as bench:
        result = await bench.sandbox.run(["python3", "-c", KEPT])
        assert result.output == "True 11 False\n", result.output


BESIDE = """
import os, subprocess, time
def took(act):
    start = time.perf_counter()
    act()
    return time.perf_counter() - start
plain = took(lambda: subprocess.run("cp -a other copied && rm -r other", shell=True, check=True))
print(took(lambda: os.rename("tree", "moved")) / plain, sum(len(files) for _, _, files in os.walk("moved")))
"""


async def test_a_directory_of_many_files_takes_no_longer_than_copying_and_removing_it(tmp_path: Path):
    """GI-19: each file was linked, and the kernel put each on the disk before: 30 times as long, and more."""
    names = [f"d{number % 20}/f{number}" for number in range(2000)]
    files = {f"{top}/{name}": f"{name}\n" for top in ("tree", "other") for name in names}
    async with bench_of(tmp_path, files) as bench:
        result = await bench.sandbox.run(["python3", "-c", BESIDE])
        times, count = result.output.split()
        assert int(count) == 2000 and float(times) < 4, result.output
        renamed = bench.branch.diff(["moved"]).written
        assert len(renamed) == 2000 and not bench.branch.changes().written[0].startswith("/tree")


REFUSED = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, old, new, flags=0):
    done = libc.renameat2(-100, old.encode(), -100, new.encode(), flags)
    print(name, "done" if done == 0 else errno.errorcode[ctypes.get_errno()])
os.mkdir("empty"); os.mkdir("made"); open("made/x", "w").close()
attempt("full", "src/pkg", "src/other")
attempt("file", "src/pkg", "top.txt")
attempt("below", "src", "src/pkg/in")
attempt("above", "src/pkg", "src")
attempt("missing", "nothing", "src/x")
attempt("dot", "src/.", "src/x")
attempt("itself", "src/pkg", "src/pkg")
attempt("other-mount", "node_modules", os.environ["TMPDIR"] + "/pkg")
attempt("noreplace-there", "src/pkg", "empty", 1)
attempt("noreplace", "src/pkg", "src/lib", 1)
attempt("exchange-made", "made", "empty", 2)
attempt("file-rename", "top.txt", "src/top.txt")
print(sorted(os.listdir(".")), sorted(os.listdir("src")), os.listdir("src/lib"))
"""


@pytest.mark.parametrize("tier", TIERS)
async def test_what_the_kernel_refuses_stays_refused(tmp_path: Path, tier: str):
    files = {name: text for name, text in TREE.items() if "deep" not in name}
    async with bench_of(tmp_path, files, settings=settings(tier), needs=tier) as bench:
        result = await bench.sandbox.run(["python3", "-c", REFUSED])
        rows = dict(line.split(" ", 1) for line in result.output.splitlines()[:-1])
        assert rows.pop("other-mount") in (("EXDEV",) if tier == "overlay" else ("EXDEV", "done"))
        if tier == "copy":
            rows.pop("noreplace"), rows.pop("noreplace-there")
        expected = {
            "full": "ENOTEMPTY", "file": "ENOTDIR", "below": "EINVAL", "above": "ENOTEMPTY", "missing": "ENOENT",
            "dot": "EBUSY", "itself": "done", "noreplace-there": "EEXIST", "noreplace": "done",
            "exchange-made": "done", "file-rename": "done",
        }  # fmt: skip
        assert rows == {name: expected[name] for name in rows}, result.output
        assert ".bowerbird" not in result.output, "nothing half made is left"


STATIC = """
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>
int main(void) {
    if (vfork() == 0) _exit(rename("src/pkg", "src/lib") != 0);
    int status = 0; wait(&status);
    printf("%d\\n", status);
    return rename("node_modules", "vendor") != 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
async def test_static_programs_and_vfork_children_rename_too(tmp_path: Path):
    async with bench_of(tmp_path, {**TREE, "r.c": STATIC}) as bench:
        assert (await bench.sandbox.run("cc -static -o r r.c")).exit_code == 0
        result = await bench.sandbox.run("./r && ls -A src vendor")
        assert result.output == "0\nsrc:\nlib\nother\n\nvendor:\nx\n"


async def test_a_directory_that_is_too_deep_is_not_renamed_and_the_record_says_why(tmp_path: Path):
    """Bounded: EXDEV, as without a supervisor, and one line after the output."""
    deep = "/".join("d" for _ in range(300))
    async with bench_of(tmp_path, {f"src/{deep}/f": "x"}) as bench:
        result = await bench.sandbox.run(["python3", "-c", "import os; os.rename('src', 'new')"])
        assert "Invalid cross-device link" in result.output and result.exit_code == 1
        assert result.note is not None and "src is more than 250 directories deep" in result.note
        assert (await bench.sandbox.run("ls -A")).output == "src\n"


async def test_a_caller_that_is_killed_meanwhile_leaves_either_tree_and_nothing_half_made(tmp_path: Path):
    files = {f"many/d{i % 40}/f{i}": "x" for i in range(4000)}
    async with bench_of(tmp_path, files) as bench:
        result = await bench.sandbox.run(
            'python3 -c \'import os; os.rename("many", "moved")\' & pid=$!; '
            "until ls -A | grep -q bowerbird-rename; do :; done; kill -9 $pid; wait $pid; sleep 0.5; ls -A"
        )
        assert result.output.splitlines()[-1] in ("many", "moved"), result.output
        left = result.output.splitlines()[-1]
        found = await bench.sandbox.run(f"find {left} -type f | wc -l; ls -A")
        assert found.output == f"4000\n{left}\n"
