"""`apply_patch`, `list_symbols`, `find_references` on real branches: TO-19 … TO-21, AG-49."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.file_desk import Desk

from bowerbird.tools import ToolContext, Toolset


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    root = tmp_path / "ws"
    root.mkdir()
    made = Desk(root)
    yield made
    made.workspace.close()


# ---------------------------------------------------------------- apply_patch (TO-19)

PATCH = """diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
 one
-two
+TWO
diff --git a/new.sh b/new.sh
new file mode 100755
--- /dev/null
+++ b/new.sh
@@ -0,0 +1 @@
+echo
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/from.txt b/to.txt
rename from from.txt
rename to to.txt
--- a/from.txt
+++ b/to.txt
@@ -1 +1 @@
-x
+y
"""


async def test_a_patch_over_several_files_is_applied(desk: Desk) -> None:
    """TO-19."""
    for path, content in {"a.txt": "one\ntwo\n", "gone.txt": "bye\n", "from.txt": "x\n"}.items():
        desk.put(path, content)
    shown = await desk.text("apply_patch", patch=PATCH)
    assert shown.splitlines() == [
        "changed a.txt, 1 hunk", "created new.sh", "deleted gone.txt", "moved from.txt to to.txt, 1 hunk",
    ]  # fmt: skip
    assert desk.branch.changes().record() == {
        "written": ["/a.txt", "/new.sh", "/to.txt"], "deleted": ["/from.txt", "/gone.txt"],
    }  # fmt: skip
    facts = await desk.branch.stat("new.sh")
    assert facts["mode"] & 0o111
    assert await desk.branch.read_bytes("to.txt") == b"y\n"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {"a.txt": "one\nTHREE\n", "gone.txt": "bye\n", "from.txt": "x\n"},
            "a.txt: hunk 1 (@@ -1,2 +1,2 @@)",
        ),
        ({"a.txt": "one\ntwo\n", "gone.txt": "bye\n", "from.txt": "z\n"}, "to.txt: hunk 1"),
        ({"a.txt": "one\ntwo\n", "gone.txt": "bye\n"}, "from.txt"),
        ({"a.txt": "one\ntwo\n", "gone.txt": "bye\n", "from.txt": "x\n", "new.sh": "!"}, "new.sh"),
        ({"a.txt": "one\ntwo\n", "gone.txt": "bye\nmore\n", "from.txt": "x\n"}, "gone.txt"),
    ],
)
async def test_a_reject_changes_nothing_and_names_file_and_hunk(
    desk: Desk, files: dict[str, str], told: str
) -> None:
    """TO-19."""
    for path, content in files.items():
        desk.put(path, content)
    result = await desk.use("apply_patch", patch=PATCH)
    assert result.is_error
    assert told in result.text
    assert desk.branch.changes().record() == {"written": [], "deleted": []}


ENVELOPE = """*** Begin Patch
*** Update File: a.txt
@@
 one
-two
+TWO
*** Add File: new.sh
+echo
*** Delete File: gone.txt
*** Update File: from.txt
*** Move to: to.txt
@@
-x
+y
*** End Patch
"""


async def test_a_patch_in_an_envelope_is_applied_under_either_name_of_its_argument(desk: Desk) -> None:
    for path, content in {"a.txt": "one\r\ntwo\r\n", "gone.txt": "bye\n", "from.txt": "x\n"}.items():
        desk.put(path, content)
    shown = await desk.text("apply_patch", input=ENVELOPE)
    assert shown.splitlines() == [
        "changed a.txt, 1 hunk", "created new.sh", "deleted gone.txt", "moved from.txt to to.txt, 1 hunk",
    ]  # fmt: skip
    assert await desk.branch.read_bytes("a.txt") == b"one\r\nTWO\r\n"
    assert await desk.branch.read_bytes("new.sh") == b"echo\n"
    again = await desk.use("apply_patch", patch=ENVELOPE)
    assert again.is_error and "a.txt: hunk 1 (@@) was applied already" in again.text


async def test_a_refusal_shows_the_nearest_lines_and_leaves_the_files_before_it(desk: Desk) -> None:
    desk.put("a.txt", "one\ntwo\n")
    desk.put("b.py", "def f():\n    return 1\n\ndef g():\n    return 2\n")
    patch = f"{BOTH_FIT}--- a/b.py\n+++ b/b.py\n@@ -4,2 +4,2 @@\n def g():\n-    return two\n+    return 3\n"
    result = await desk.use("apply_patch", patch=patch)
    assert result.is_error and result.text.splitlines() == [
        "b.py: hunk 1 (@@ -4,2 +4,2 @@) does not fit the file; line 5 is not '    return two'. The nearest lines:",
        "     4\tdef g():", "     5\t    return 2", "Read the file again; nothing was changed",
    ]  # fmt: skip
    assert desk.branch.changes().record() == {"written": [], "deleted": []}


BOTH_FIT = "--- a/a.txt\n+++ b/a.txt\n@@\n-two\n+TWO\n"


async def test_a_file_that_numbers_say_was_empty_is_made_where_there_is_none(desk: Desk) -> None:
    patch = "--- a/n.txt\n+++ b/n.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n"
    assert await desk.text("apply_patch", patch=patch) == "created n.txt"
    desk.put("there.txt", "z\n")
    refused = await desk.use("apply_patch", patch=patch.replace("n.txt", "there.txt"))
    assert refused.is_error and "no line of the file beside" in refused.text


async def test_a_write_that_is_refused_takes_the_whole_patch_back(desk: Desk) -> None:
    desk.put("a.txt", "one\ntwo\n")
    desk.put("dir/x", "x")
    patch = (
        PATCH.split("diff --git a/new.sh", maxsplit=1)[0]
        + "--- /dev/null\n+++ b/.agent/x\n@@ -0,0 +1 @@\n+x\n"
    )
    result = await desk.use("apply_patch", patch=patch)
    assert result.is_error
    assert "nothing was changed" in result.text
    assert desk.branch.changes().record() == {"written": [], "deleted": []}


# ---------------------------------------------------------------- code


async def test_list_symbols_names_path_line_kind_and_name(desk: Desk) -> None:
    """TO-20."""
    desk.put("src/a.py", "class A:\n    def m(self): pass\n\ndef f(): pass\n")
    assert await desk.text("list_symbols", path="src/a.py") == (
        "src/a.py:1: [class] A\nsrc/a.py:2: [method] m\nsrc/a.py:4: [function] f"
    )
    cut = await desk.use("list_symbols", path="src/a.py", max_results=1)
    assert cut.truncated
    assert "3 symbols; shown 1" in cut.text
    refused = await desk.use("list_symbols", path="notes.txt")
    assert "Python, JavaScript" in refused.text


async def test_find_references_takes_whole_words_and_skips_large_files(desk: Desk) -> None:
    """TO-21."""
    desk.put("a.py", "total = 1\nsubtotal = total\nTOTAL = 2\ncost = $total\n")
    desk.put("huge.txt", "total\n" + "x\n" * 300_000)
    desk.put("node_modules/b.js", "total\n")
    desk.put(".gitignore", "node_modules/\n")
    found = await desk.use("find_references", symbol="total")
    assert found.data is not None
    assert [(r["path"], r["line"]) for r in found.data["references"]] == [
        ("/a.py", 1),
        ("/a.py", 2),
        ("/a.py", 4),
    ]
    assert found.data["skipped_files"] == 1
    assert "1 files skipped" in found.text
    assert "1 ignored directories" in found.text
    assert "a.py:2: subtotal = total" in found.text
    anywhere = await desk.use("find_references", symbol="total", case_sensitive=False, whole_word=False)
    assert anywhere.data is not None
    assert len(anywhere.data["references"]) == 4
    dollar = await desk.use("find_references", symbol="$total")
    assert "a.py:4" in dollar.text
    few = await desk.use("find_references", symbol="total", max_results=1)
    assert (few.truncated, few.text.splitlines()[1]) == (
        True, "[1 shown, there are more; 1 files skipped (over 512 KiB or binary); "
        "1 ignored directories not looked into]",
    )  # fmt: skip


async def test_calls_that_write_one_path_share_a_serial_key(desk: Desk) -> None:
    """AG-49."""

    def keys(name: str, **arguments: Any) -> tuple[str, ...]:
        tool = desk.tools.get(name)
        assert tool is not None
        return tool.serial_keys(arguments)

    assert keys("write_file", path="./a/../b.txt") == keys("edit_file", path="/b.txt") == ("path:/b.txt",)
    assert keys("move_file", src="a", dst="b") == ("path:/a", "path:/b")
    assert keys("apply_patch", patch=PATCH)[0] == "path:/a.txt"
    assert keys("read_file", path="a") == ()


async def test_a_run_without_a_branch_says_so() -> None:
    read = Toolset.builtin("read_file").get("read_file")
    assert read is not None
    result = await read.call({"path": "a"}, ToolContext())
    assert result.is_error
    assert "no branch" in result.text


@pytest.mark.parametrize(
    "patch",
    [
        "--- a/a.txt\n+++ b/a.txt\n@@\n-two\n+two\n",
        "--- a/a.txt\n+++ b/a.txt\n",
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n two\n",
    ],
    ids=["bare header", "no hunk", "context only"],
)
async def test_a_patch_that_changes_nothing_is_no_success(desk: Desk, patch: str) -> None:
    desk.put("a.txt", "one\ntwo\n")
    result = await desk.use("apply_patch", patch=patch)
    assert result.is_error and "nothing was changed" in result.text and "0 hunks" not in result.text
    assert desk.branch.changes().record() == {"written": [], "deleted": []}
