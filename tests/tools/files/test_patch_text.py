"""Unified diffs parsed and applied: TO-19. `git diff` is the oracle for what a patch says."""

import difflib
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.core.errors import ToolError
from bowerbird.tools.files.patch_text import apply_hunks, parse_patch


def git_diff(tmp: Path, old: bytes, new: bytes) -> str:
    (tmp / "old").write_bytes(old)
    (tmp / "new").write_bytes(new)
    run = subprocess.run(
        ["git", "diff", "--no-index", "--text", "-U2", "old", "new"],
        cwd=tmp,
        capture_output=True,
        check=False,
    )
    return run.stdout.decode("utf-8", "surrogateescape")


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "é", "x y"]), max_size=15)


@settings(max_examples=40, deadline=None)
@given(LINES, LINES, st.booleans(), st.booleans())
def test_a_patch_of_git_gives_the_new_file(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], old_open: bool, new_open: bool
) -> None:
    before = "\n".join(old).encode() + (b"" if old_open or not old else b"\n")
    after = "\n".join(new).encode() + (b"" if new_open or not new else b"\n")
    if before == after:
        return
    patch = git_diff(tmp_path_factory.mktemp("p"), before, after)
    (parsed,) = parse_patch(patch)
    assert apply_hunks(before, parsed) == after


def test_hunks_find_lines_that_moved_and_keep_crlf() -> None:
    (patch,) = parse_patch("--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n one\n+two\n three\n")
    moved = b"new\r\nnew\r\none\r\nthree\r\n"
    assert apply_hunks(moved, patch) == b"new\r\nnew\r\none\r\ntwo\r\nthree\r\n"


def test_a_hunk_that_does_not_fit_names_file_number_and_header() -> None:
    (patch,) = parse_patch("--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@ def f():\n-z\n+y\n")
    with pytest.raises(ToolError, match=r"f\.py: hunk 2 \(@@ -9 \+9 @@\) does not fit"):
        apply_hunks(b"a\nq\n", patch)


def test_git_headers_tell_creation_deletion_renaming_and_modes() -> None:
    files = parse_patch(
        "diff --git a/new.sh b/new.sh\nnew file mode 100755\n--- /dev/null\n+++ b/new.sh\n@@ -0,0 +1 @@\n+x\n"
        "diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/from b/to\nsimilarity index 100%\nrename from from\nrename to to\n"
        "diff --git a/mode b/mode\nold mode 100644\nnew mode 100755\n"
        'diff --git "a/t\\303\\266 \\"q\\"" "b/t\\303\\266 \\"q\\""\nnew file mode 100644\n'
        '--- /dev/null\n+++ "b/t\\303\\266 \\"q\\""\n@@ -0,0 +1 @@\n+x\n'
    )
    assert [(f.old, f.new, f.executable, f.renamed) for f in files] == [
        (None, "new.sh", True, False),
        ("old", None, None, False),
        ("from", "to", None, True),
        ("mode", "mode", True, False),
        (None, 'tö "q"', False, False),
    ]


def test_a_patch_without_prefixes_or_with_stripped_blanks_is_read() -> None:
    (patch,) = parse_patch("--- f.py\t2026-01-01\n+++ f.py\t2026-01-02\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n")
    assert patch.new == "f.py"
    assert apply_hunks(b"a\n\nb\n", patch) == b"a\n\nc\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "names no file"), ("hello", "names no file"), ("@@ -1 +1 @@\n-a\n+b\n", "begins with a hunk"),
        ("--- a/f\n+++ b/f\n@@@ -1 -1 +1 @@@\n--a\n++b\n", "a merge's diff"),
        ("*** Begin Patch\n*** Replace File: f\n+b\n", "line that cannot be read"),
        ("*** Begin Patch\n*** Move to: f\n", "no file to move"),
        ("diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", "links"),
        ("diff --git a/f b/g\ncopy from f\ncopy to g\n", "copies"),
        ("diff --git a/f b/f\nindex 1..2\nGIT binary patch\nliteral 3\n", "binary patches"),
        ("diff --git a/f b/f\nBinary files a/f and b/f differ\n", "binary patches"),
    ],
)  # fmt: skip
def test_what_is_no_patch_is_refused(text: str, told: str) -> None:
    with pytest.raises(ToolError, match=told):
        parse_patch(text)


# ------------------------------------------------------------ as models write them

BOTH = ("--- a/f\n+++ b/f\n", "*** Begin Patch\n*** Update File: f\n")
CLASSES = (
    b"class A:\n    def f(self):\n        go()\n        end()\n\n"
    b"class B:\n    def f(self):\n        go()\n        end()\n"
)


def applied(data: bytes, text: str) -> bytes:
    (patch,) = parse_patch(text)
    return apply_hunks(data, patch)


@pytest.mark.parametrize("head", BOTH)
@pytest.mark.parametrize(
    ("before", "hunk", "after"),
    [
        pytest.param("a\nb\nc\n", "@@\n a\n-b\n+B\n", "a\nB\nc\n", id="a bare header"),
        pytest.param("a\nb\nc\n", " a\n-b\n+B\n c", "a\nB\nc\n", id="no header"),
        pytest.param("a\nb\nc\n", "@@ -7,9 +1,2 @@\n a\n-b\n+B\n", "a\nB\nc\n", id="wrong counts"),
        pytest.param("a\n\nc\n", "@@ -1,3 +1,4 @@\n a\n\n+b\n c\n", "a\n\nb\nc\n", id="an empty line"),
        pytest.param("a\n\nc\n", "@@\n a\n\n-c\n+C\n\n", "a\n\nC\n", id="an empty line at the end"),
        pytest.param("a\nb\n", "@@\na\n-b\n+B\n", "a\nB\n", id="a blank that was forgotten"),
        pytest.param("a  \nb\n", "@@\n a\n-b\t\n+B\n", "a  \nB\n", id="blanks at the end"),
        pytest.param("a\r\nb\r\n", "@@\n a\n-b\n+B\n", "a\r\nB\r\n", id="CRLF"),
        pytest.param("a\r\nb", "@@\n a\n b\n+c\n", "a\r\nb\r\nc", id="CRLF with an open end"),
        pytest.param("a\nb", "@@\n a\n-b\n+B\n", "a\nB", id="an open end"),
        pytest.param("a\nb", "@@\n a\n-b\n", "a\n", id="what had an open end goes"),
        pytest.param("\ufeffa\nb\n", "@@\n-a\n+A\n b\n", "\ufeffA\nb\n", id="a byte order mark"),
        pytest.param("f(‘x’)\nb\n", "@@\n f('x')\n-b\n+B\n", "f(‘x’)\nB\n", id="typographic quotes"),
        pytest.param("x\n\ta\n\t\tb\n", "@@\n     a\n-        b\n+        c\n", "x\n\ta\n\t\tc\n", id="blanks for tabs"),
        pytest.param("    a\n    b\n", "@@\n a\n-b\n+if c:\n+    d\n", "    a\n    if c:\n        d\n", id="dedented"),
        pytest.param("  a\n  b\n  c\n", "@@\n a\n   b\n-  c\n+  d\n", "  a\n  b\n  d\n", id="a slip"),
        pytest.param("a\nb\nc\nd\n", "@@\n-d\n+D\n@@\n-a\n+A\n", "A\nb\nc\nD\n", id="hunks out of order"),
        pytest.param("a\nb\nc\n", "@@\n-a\n+A\n b\n@@\n b\n-c\n+C\n", "A\nb\nC\n", id="context that overlaps"),
        pytest.param("a\nb\n", "@@\n a\n-b\n+B\n```\nThat is all.\n", "a\nB\n", id="a fence"),
    ],
)  # fmt: skip
def test_what_a_person_would_apply_is_applied(head: str, before: str, hunk: str, after: str) -> None:
    assert applied(before.encode(), head + hunk).decode() == after


@pytest.mark.parametrize(
    ("hunk", "told"),
    [
        ("@@\n go()\n-end()\n+stop()\n", "fits 2 places, lines 3, 8: add lines"),
        ("@@ -99,2 +99,2 @@\n go()\n-end()\n+stop()\n", "fits 2 places"),
        ("@@\n     def f(self):\n-        went()\n+        x()\n", r"line 3 is not '        went\(\)'. The nearest"),
        ("@@\n class B:\n     def f(self):\n         go()\n         end()\n         more()\n-x\n+y\n", "file ends"),
        ("@@\n-zebra\n+y\n", "nothing in it is like"),
        ("@@\n class A:\n-    def g(self):\n+    def f(self):\n", "was applied already"),
        ("@@\n class B:\n     def f(self):\n+        go()\n", "was applied already"),
        ("@@ -3,0 +4 @@\n+x\n", "no line of the file beside"),
        ("@@\n+x\n", "no line of the file beside"),
        ("@@\n class A:\n-x\n+y\n@@\n class A:\n+x\n", "does not fit"),
        ("@@\n-class A:\n+class C:\n@@\n-class A:\n+class D:\n", "changes line 1, as a hunk before"),
        ("@@\n class A:\n+    x = 1\n@@\n class A:\n+    y = 1\n", "adds lines above line 2"),
        ("@@\n class A:\n       def f(self):\n+    x = 1\n", "indented otherwise"),
    ],
)  # fmt: skip
def test_a_place_that_is_not_sure_is_refused_with_the_reason(hunk: str, told: str) -> None:
    with pytest.raises(ToolError, match=told) as refused:
        applied(CLASSES, BOTH[0] + hunk)
    assert str(refused.value).startswith("f: hunk ") and str(refused.value).endswith("nothing was changed")


@pytest.mark.parametrize("hunk", ["@@ class B:\n", "@@ class B:\n@@ def f(self):\n", "@@ -8,2 +8,2 @@\n"])
def test_what_is_named_above_or_a_number_chooses_among_places(hunk: str) -> None:
    made = applied(CLASSES, f"{BOTH[0]}{hunk}         go()\n-        end()\n+        stop()\n")
    assert made == CLASSES[:-6] + b"stop()\n"


def test_parts_for_one_file_are_one_and_new_and_deleted_files_are_told() -> None:
    files = parse_patch(
        "*** Begin Patch\n*** Add File: n\n+x\n\n+y\n*** Update File: f\n@@\n-a\n+b\n*** Delete File: d\n"
        "*** Update File: f\n@@\n-c\n+d\n*** End of File\n*** Update File: g\n*** Move to: h\n*** End Patch\n"
    )
    told = [(f.old, f.new, f.renamed, f.is_whole, len(f.hunks)) for f in files]
    assert told == [
        (None, "n", False, False, 1), ("f", "f", False, False, 2), ("d", None, False, True, 0),
        ("g", "h", True, False, 0),
    ]  # fmt: skip
    assert apply_hunks(b"", files[0]) == b"x\n\ny\n"
    assert apply_hunks(b"a\nc\nc\n", files[1]) == b"b\nc\nd\n"
    with pytest.raises(ToolError, match=r"begin with \+"):
        parse_patch("*** Begin Patch\n*** Add File: n\nx\n+y\n")


@settings(max_examples=150, deadline=None)
@given(LINES, LINES, st.integers(0, 3), st.integers(0, 30), st.booleans())
def test_a_patch_stands_at_its_place_or_nowhere(
    before: list[str], after: list[str], context: int, drift: int, is_bare: bool
) -> None:
    """However alike the lines are; without numbers, by however much the file has grown above, too."""
    top = [f"grown {number}" for number in range(drift if is_bare else 0)]
    diff = list(difflib.unified_diff(before, after, "a/f", "b/f", lineterm="", n=context))
    if is_bare:
        diff = [re.sub("^@@ .*", "@@", line) for line in diff]
    if not diff:
        return
    try:
        made = applied("".join(f"{line}\n" for line in [*top, *before]).encode(), "\n".join(diff) + "\n")
    except ToolError:
        return
    assert made.decode() == "".join(f"{line}\n" for line in [*top, *after])
