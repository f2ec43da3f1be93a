"""Globs, ignore rules, walks (WS-19, WS-31, WS-32)."""

import os
import shutil
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.branches import branch_of
from support.patience import patience
from support.trees import write_tree

from bowerbird.core.errors import InvalidArgument, InvalidPattern
from bowerbird.workspace.tree.glob import compile_glob
from bowerbird.workspace.tree.ignore import IgnoreFile


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("*.py", ["a.py", ".py", "/a.py"], ["d/a.py", "a.PY", "a.pyc"]),
        ("**/*.py", ["a.py", "d/a.py", "d/e/a.py"], ["a.txt"]),
        ("./src/*", ["src/a", "src/.b"], ["src", "src/a/b"]),
        ("/src/**", ["src/a", "src/a/b"], ["src", "srcs/a"]),
        ("src/", ["src/a", "src/a/b"], ["src"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/b/c"]),
        ("**/test/**/*.py", ["test/a.py", "x/test/y/z/a.py"], ["a.py", "tests/a.py"]),
        ("?.t[xy]t", ["a.txt", "\u00e9.tyt"], ["ab.txt", "a.tzt"]),
        ("[!a-c]*", ["d", "D"], ["a", "b1"]),
        ("[]-]x", ["]x", "-x"], ["ax"]),
        ("*.{py,js}", ["a.py", "b.js"], ["a.p"]),
        ("{a,b{c,d}}/**", ["a/x", "bc/x", "bd/y"], ["b/x"]),
        (r"a\*b", ["a*b"], ["axb"]),
        ("a\nb*", ["a\nbc"], ["a b"]),
        ("**", ["a", "a/b"], []),
        ("*a*b*", ["ab", "xaybz"], ["ba"]),
    ],
)
def test_globs(pattern, fits, fails):
    """WS-31"""
    glob = compile_glob(pattern)
    assert [path for path in fits if not glob.match(path)] == []
    assert [path for path in fails if glob.match(path)] == []
    if glob.name_test is not None:
        assert all(glob.name_test(path.rpartition("/")[2]) for path in fits)


@pytest.mark.parametrize(
    "pattern", ["", "/", "a[", "{a", "a\\", "[z-a]", "../x", "a\0", "{" + "a,a}{" * 20 + "a,b}"]
)
def test_malformed_globs_are_refused(pattern):
    """WS-31"""
    with pytest.raises(InvalidPattern):
        compile_glob(pattern)


def test_no_glob_takes_long():
    started = time.monotonic()
    assert not compile_glob("*a" * 20 + "*b").match("a" * 250)
    assert not compile_glob("**/a/" * 12 + "b").match("a/" * 120 + "c")
    assert time.monotonic() - started < patience(2)


_SEGMENT = st.sampled_from(["a", "b", "ab", "*", "?", "a*", "*b", "*a*", "[ab]", "[!a]", "**"])


@given(
    st.lists(_SEGMENT, min_size=1, max_size=4),
    st.lists(st.sampled_from(["a", "b", "ab", "ba", "c"]), min_size=1, max_size=5),
)
def test_a_glob_agrees_with_the_obvious_matcher(segments, names):
    """WS-31"""
    pattern = "/".join(segments)
    glob = compile_glob(pattern)
    assert glob.match("/".join(names)) == _obvious(segments, names)
    starts = ["/".join(names[:count]) for count in range(1, len(names) + 1)]
    assert glob.covers("/".join(names)) == any(map(glob.match, starts))


def _obvious(segments: list[str], names: list[str]) -> bool:
    import fnmatch

    if not segments:
        return not names
    if segments[0] == "**":
        if all(segment == "**" for segment in segments):
            return bool(names)
        return any(_obvious(segments[1:], names[count:]) for count in range(len(names) + 1))
    return bool(names) and fnmatch.fnmatchcase(names[0], segments[0]) and _obvious(segments[1:], names[1:])


_LINE = st.text("ab*/!?.", max_size=6) | st.sampled_from(
    ["a/", "/b", "!a", "a/**", "**/b", "*.a", "a*", "\\!a", "# c", "a b "]
)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the oracle")
@pytest.mark.parametrize("seed", range(12))
def test_ignore_rules_agree_with_git(tmp_path, seed):
    """WS-32: git decides, on random rules and a fixed tree."""
    import random

    rng = random.Random(seed)
    names = ["a", "b", "ab", "a.a", "ba", "a b"]
    paths = sorted({"/".join(rng.choice(names) for _ in range(rng.randint(1, 3))) for _ in range(40)})
    paths = [p for p in paths if not any(q.startswith(p + "/") for q in paths)]
    write_tree(tmp_path, dict.fromkeys(paths, ""))
    subprocess.run(["git", "init", "-q", tmp_path], check=True, env={**os.environ, "HOME": str(tmp_path)})
    pieces = ["a", "b", "ab", "*", "?", "*.a", "a*", "**", "[ab]", "a b"]
    for _ in range(25):
        lines = []
        for _ in range(rng.randint(1, 4)):
            body = "/".join(rng.choice(pieces) for _ in range(rng.randint(1, 3)))
            lines.append(rng.choice(["", "", "!"]) + rng.choice(["", "/"]) + body + rng.choice(["", "/"]))
        (tmp_path / ".gitignore").write_text("\n".join(lines) + "\n")
        listed = subprocess.run(
            ["git", "-C", tmp_path, "ls-files", "-z", "--others", "--exclude-standard"],
            check=True,
            capture_output=True,
            env={**os.environ, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"},
        ).stdout
        kept = {name for name in listed.decode().split("\0") if name and name != ".gitignore"}
        rules = IgnoreFile("\n".join(lines))
        mine = {path for path in paths if not _ignored(rules, path)}
        assert mine == kept, lines


def _ignored(rules: IgnoreFile, path: str) -> bool:
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        above = "/".join(parts[:count])
        if rules.decide(parts[count - 1], above, is_dir=count < len(parts)):
            return True
    return False


TREE = {
    ".gitignore": "*.log\n/build/\nnode_modules/\n!keep.log\n",
    ".ignore": "secret.txt\n",
    "a.py": "",
    "debug.log": "",
    "keep.log": "",
    "secret.txt": "",
    ".hidden": "",
    "build/out.o": "",
    "src/build/in.o": "",
    "src/.gitignore": "!debug.log\n*.tmp\n",
    "src/debug.log": "",
    "src/x.tmp": "",
    "src/.bowerbirdignore": "*.big\n",
    "src/data.big": "",
    "src/node_modules/m/i.js": "",
    ".git/config": "",
    ".git/HEAD": "",
}


async def test_listing_skips_what_is_ignored_and_says_so(tmp_path):
    """WS-19, WS-32: dotfiles are listed, ignored directories named."""
    with branch_of(tmp_path, TREE) as branch:
        record = await branch.list_files()
        assert record == {
            "files": ["/.gitignore", "/.hidden", "/.ignore", "/a.py", "/keep.log", "/src/.bowerbirdignore",
                      "/src/.gitignore", "/src/build/in.o", "/src/debug.log"],
            "total": 9,
            "offset": 1,
            "truncated": False,
            "pruned": ["/.git", "/build", "/src/node_modules"],
        }  # fmt: skip
        everything = await branch.list_files(include_ignored=True)
        assert (everything["total"], everything["pruned"]) == (len(TREE), [])
        assert (await branch.read_file("build/out.o"))["content"] == ""


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("build/**", ["/build/out.o"]),
        ("**/node_modules/**", ["/src/node_modules/m/i.js"]),
        ("debug.log", ["/debug.log"]),
        (".git/*", ["/.git/HEAD", "/.git/config"]),
        ("**/*.log", ["/keep.log", "/src/debug.log"]),
        ("src/node_modules/*/*.js", ["/src/node_modules/m/i.js"]),
    ],
)
async def test_a_pattern_that_names_something_ignored_includes_it(tmp_path, pattern, files):
    """WS-32"""
    with branch_of(tmp_path, TREE) as branch:
        assert (await branch.list_files(pattern))["files"] == files
        found = await branch.search_files("^", pattern)
        assert found["matches"] == []  # the files are empty


async def test_ignore_files_of_the_branch_count_and_the_workspaces_deleted_ones_do_not(tmp_path):
    """WS-32: rules are read from the merged view."""
    with branch_of(tmp_path, {".gitignore": "a\n", "a": "x", "b": "x", "d/a": "x", "d/b": "x"}) as branch:
        assert (await branch.list_files())["files"] == ["/.gitignore", "/b", "/d/b"]
        await branch.write_file(".gitignore", "b\n")
        assert (await branch.list_files())["files"] == ["/.gitignore", "/a", "/d/a"]
        assert [m["path"] for m in (await branch.search_files("x"))["matches"]] == ["/a", "/d/a"]
        await branch.delete(".gitignore")
        await branch.write_file("d/.ignore", "b\n")
        assert (await branch.list_files())["files"] == ["/a", "/b", "/d/.ignore", "/d/a"]


async def test_a_page_of_a_listing_has_an_exact_total(tmp_path):
    """WS-19, WS-31"""
    with branch_of(tmp_path, {f"d{n % 7}/f{n:05}": "" for n in range(120)}) as branch:
        whole = (await branch.list_files())["files"]
        assert whole == sorted(whole, key=os.fsencode)
        page = await branch.list_files(offset=101, limit=15)
        assert (page["files"], page["total"], page["truncated"]) == (whole[100:115], 120, True)
        last = await branch.list_files(offset=116, limit=15)
        assert (last["files"], last["truncated"]) == (whole[115:], False)
        for bad in ({"offset": 0}, {"limit": -1}):
            with pytest.raises(InvalidArgument):
                await branch.list_files(**bad)
        with pytest.raises(InvalidPattern):
            await branch.list_files("[")


async def test_a_listing_of_merged_layers_equals_one_of_the_plain_tree(tmp_path):
    """WS-19: through forks and layers."""
    with branch_of(tmp_path, {"a/x.py": "1", "a/y.py": "1", "b/x.py": "1", "c/d/e.py": "1"}) as branch:
        await branch.delete("a/x.py")
        await branch.write_file("a/n.py", "2")
        child = branch.fork()
        await child.delete("b", recursive=True)
        await child.move("c", "z")
        grand = child.fork()
        await grand.write_file("b/again.py", "3")
        assert (await grand.list_files("**/*.py"))["files"] == [
            "/a/n.py",
            "/a/y.py",
            "/b/again.py",
            "/z/d/e.py",
        ]
        assert (await child.list_files("**/*.py"))["files"] == ["/a/n.py", "/a/y.py", "/z/d/e.py"]
        assert (await grand.list_files("b/*"))["files"] == ["/b/again.py"]
        assert (await branch.list_files("{b,c}/**"))["files"] == ["/b/x.py", "/c/d/e.py"]
