"""Unified diffs parsed and applied: TO-19. `git diff` is the oracle for what a patch says."""

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
