"""The file tools on real branches: TO-9, TO-11 … TO-19, TO-22, acceptance 1, 2, 4, 9, 12, 13."""

import asyncio
import resource
import subprocess
import time
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.abuse import pulse
from support.file_desk import Desk
from support.patience import patience
from support.user_saves import save_at

from bowerbird.core.errors import LandingRefused
from bowerbird.core.messages import ImageBlock
from bowerbird.tools import ToolContext

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 30


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    root = tmp_path / "ws"
    root.mkdir()
    made = Desk(root)
    yield made
    made.workspace.close()


# ---------------------------------------------------------------- reading


async def test_read_file_gives_content_without_numbers_and_the_next_page(desk: Desk) -> None:
    """TO-11."""
    desk.put("a.txt", "".join(f"line {n}\n" for n in range(1, 20_001)))
    assert await desk.text("read_file", path="a.txt", offset=5, limit=2) == (
        "line 5\nline 6\n[more: offset=7 of 20000 lines]"
    )
    seen, offset = "", 1
    while True:
        page = await desk.text("read_file", path="/a.txt", offset=offset)
        assert len(page) <= 50_000
        body, _, note = page.rpartition("[more: offset=")
        seen += body or page
        if not note.endswith("lines]"):
            break
        offset = int(note.split(" ")[0])
    assert seen == (desk.root / "a.txt").read_text()


async def test_read_file_range_shows_line_numbers(desk: Desk) -> None:
    """TO-11, acceptance 9."""
    desk.put("a.py", "one\ntwo\nthree\nfour\n")
    shown = await desk.text("read_file_range", file_path="a.py", start_line=2, end_line=3)
    assert shown.splitlines()[:2] == ["     2\ttwo", "     3\tthree"]
    plain = await desk.text(
        "read_file_range", path="a.py", start_line=2, end_line=2, include_line_numbers=False
    )
    assert plain.splitlines()[0] == "two"


async def test_a_missing_file_is_answered_with_similar_paths(desk: Desk) -> None:
    """TO-11."""
    for path in ("src/server.py", "src/service.py", "src/serve/other.py", "docs/unrelated.md"):
        desk.put(path, "x")
    result = await desk.use("read_file", path="src/servr.py")
    assert result.is_error
    assert "src/server.py" in result.text
    assert "unrelated" not in result.text


async def test_images_become_blocks_and_other_binaries_type_and_size(desk: Desk) -> None:
    """TO-11."""
    kept: list[tuple[bytes, str]] = []

    async def store_blob(data: bytes, kind: str) -> str:
        kept.append((data, kind))
        return "sha256:abc"

    desk.put("p.png", PNG)
    desk.put("b.bin", b"\0\1\2")
    read = desk.tools.get("read_file")
    assert read is not None
    result = await read.call({"path": "p.png"}, desk.context(store_blob=store_blob))
    assert isinstance(result.content, list)
    image = result.content[1]
    assert isinstance(image, ImageBlock)
    assert (image.media_type, image.source.blob) == ("image/png", "sha256:abc")
    assert kept == [(PNG, "image/png")]
    assert await desk.text("read_file", path="b.bin") == "b.bin: a binary file of 3 bytes"
    assert "image/png of 38 bytes" in await desk.text("read_file", path="p.png")


async def test_form_feed_and_line_separators_do_not_count_as_lines(desk: Desk) -> None:
    """Acceptance 12: the numbers of `grep -n`."""
    path = desk.put("odd.txt", "a\x0cb\u2028c\nneedle one\n\x0b\x85needle two\r\nlast needle")
    command = ["grep", "-an", "needle", str(path)]
    grep = (await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)).stdout
    numbers = [int(line.split(b":")[0]) for line in grep.splitlines()]
    found = await desk.use("search_files", pattern="needle")
    assert found.data is not None
    assert [m["line"] for m in found.data["matches"]] == numbers
    for number in numbers:
        assert "needle" in await desk.text("read_file", path="odd.txt", offset=number, limit=1)


async def test_list_files_and_ls_show_totals_and_marks(desk: Desk) -> None:
    """TO-12, TO-13."""
    for path in ("a.py", "src/b.py", ".git/config", "notes.md"):
        desk.put(path, "x")
    (desk.root / "link").symlink_to("a.py")
    assert (
        await desk.text("list_files", pattern="**/*.py") == "a.py\nsrc/b.py\n[2 files; not looked into: .git]"
    )
    assert (await desk.text("glob", pattern="*.py", path="src")).startswith("src/b.py\n")
    assert await desk.text("list_files", limit=1) == (
        "a.py\n[4 files; shown 1-1; next: offset=2; not looked into: .git]"
    )
    listed = (await desk.text("ls")).splitlines()
    assert {"src/", "a.py", "link -> a.py"} <= set(listed)


async def test_search_shows_path_line_text_and_aliases_work(desk: Desk) -> None:
    """TO-14, acceptance 9."""
    desk.put("src/a.py", "x = a+b\ny = 2\nA+B\n")
    desk.put("b.md", "a+b\n")
    assert (
        await desk.text("search_files", pattern=r"a\+b", glob="**/*.py") == "src/a.py:1: x = a+b\n[1 match]"
    )
    assert (await desk.text("grep", pattern="y", path="src")).splitlines()[0] == "src/a.py:2: y = 2"
    shown = await desk.text("search_code", query="a+b", path_glob="src/**")
    assert shown.splitlines() == ["src/a.py:1: x = a+b", "src/a.py:3: A+B", "[2 matches]"]
    context = await desk.text("search_files", pattern="y = 2", context=1)
    assert context.splitlines()[:3] == ["src/a.py-1- x = a+b", "src/a.py:2: y = 2", "src/a.py-3- A+B"]


# ---------------------------------------------------------------- confinement (TO-9)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_files", {"pattern": "SECRET", "glob": "../*.txt"}),
        ("search_files", {"pattern": "SECRET", "glob": "etc/*"}),
        ("search_files", {"pattern": "SECRET", "glob": "/proc/self/root/**"}),
        ("list_files", {"pattern": "../*"}),
        ("list_files", {"pattern": "etc/**"}),
        ("read_file", {"path": "../secret.txt"}),
        ("read_file", {"path": "etc/secret.txt"}),
        ("read_file", {"path": "direct.txt"}),
        ("read_file", {"path": "/proc/self/root/etc/passwd"}),
        ("read_file", {"path": "a\0b"}),
        ("ls", {"path": "etc/sub"}),
        ("ls", {"path": "../"}),
        ("list_symbols", {"path": "etc/secret.py"}),
        ("find_references", {"symbol": "SECRET", "path_glob": "../**"}),
    ],
)
async def test_nothing_outside_the_root_is_read(desk: Desk, tool: str, arguments: dict[str, Any]) -> None:
    """Acceptance 1."""
    outside = desk.root.parent / "outside"
    (outside / "sub").mkdir(parents=True)
    for path in (desk.root.parent / "secret.txt", outside / "secret.txt", outside / "secret.py"):
        path.write_text("SECRET = 1\n")
    (desk.root / "etc").symlink_to(outside)
    (desk.root / "direct.txt").symlink_to(outside / "secret.txt")
    result = await desk.use(tool, **arguments)
    assert "SECRET" not in result.text.replace("'SECRET'", "")
    assert "secret.txt\n" not in result.text
    if tool not in ("search_files", "list_files", "find_references"):
        assert result.is_error


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_file", {"path": "../out.txt", "content": "x"}),
        ("write_file", {"path": "etc/out.txt", "content": "x"}),
        ("delete_file", {"path": "etc/secret.txt"}),
        ("move_file", {"src": "a.txt", "dst": "../a.txt"}),
        ("apply_patch", {"patch": "--- /dev/null\n+++ b/../out.txt\n@@ -0,0 +1 @@\n+x\n"}),
        ("write_file", {"path": ".agent/memory.md", "content": "x"}),
        ("write_file", {"path": ".transcripts/t.jsonl", "content": "x"}),
        ("delete_file", {"path": ".tasks", "recursive": True}),
        ("write_file", {"path": ".team/config.json", "content": "x"}),
    ],
)
async def test_nothing_outside_or_reserved_is_written(
    desk: Desk, tool: str, arguments: dict[str, Any]
) -> None:
    """TO-9."""
    outside = desk.root.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("SECRET")
    (desk.root / "etc").symlink_to(outside)
    for name in (".tasks", ".team", ".agent", ".transcripts"):
        desk.put(f"{name}/x", "own")
    desk.put("a.txt", "a")
    result = await desk.use(tool, **arguments)
    assert result.is_error
    assert desk.branch.changes().record() == {"written": [], "deleted": []}
    assert sorted(p.name for p in desk.root.parent.iterdir()) == ["outside", "ws"]
    assert [p.name for p in outside.iterdir()] == ["secret.txt"]


async def test_reserved_directories_are_readable_and_never_listed(desk: Desk) -> None:
    """TO-9."""
    for name in (".agent", ".transcripts", ".tasks", ".team"):
        desk.put(f"{name}/x.md", "needle")
    desk.put("src/.agent/mine.md", "needle")
    desk.branch.write_private(".transcripts/t.jsonl", "needle")
    assert (await desk.text("list_files")).splitlines()[:-1] == ["src/.agent/mine.md"]
    assert (await desk.text("list_files", pattern=".agent/**")).splitlines() == ["[0 files]"]
    assert (await desk.text("ls")).splitlines() == ["src/", "[1 entry]"]
    assert (await desk.text("search_files", pattern="needle")).splitlines()[
        0
    ] == "src/.agent/mine.md:1: needle"
    assert await desk.text("read_file", path=".agent/x.md") == "needle"
    assert await desk.text("read_file", path=".transcripts/t.jsonl") == "needle"


@pytest.mark.parametrize("form", ["src/a.py", "./src/a.py", "/src/a.py", "{root}/src/a.py"])
async def test_every_form_of_a_path_means_the_same_file(desk: Desk, form: str) -> None:
    """TO-9."""
    desk.put("src/a.py", "here\n")
    assert await desk.text("read_file", path=form.format(root=desk.root)) == "here\n"


# ---------------------------------------------------------------- cost (acceptance 2, 13)


async def test_a_backtracking_pattern_answers_at_once_and_the_loop_stays_free(desk: Desk) -> None:
    """Acceptance 2."""
    desk.put("evil.txt", "a" * 34 + "!\n")
    started = time.monotonic()
    async with pulse(most_s=0.05):
        found = await desk.use("search_files", pattern="(a+)+$")
    assert time.monotonic() - started < patience(1)
    assert not found.is_error


async def test_link_loops_and_sparse_giants_cost_nothing(desk: Desk) -> None:
    """Acceptance 13."""
    (desk.root / "loop").symlink_to(".")
    desk.put("a.txt", "x")
    with (desk.root / "sparse.bin").open("wb") as file:
        file.truncate(3 * 1024**3)
    await desk.use("list_files", pattern="nothing")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    shown = await desk.text("list_files")
    assert time.monotonic() - started < patience(1)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1024
    assert "loop/" not in shown
    assert "sparse.bin" in shown


# ---------------------------------------------------------------- writing


async def test_write_file_creates_and_replaces(desk: Desk) -> None:
    """TO-15."""
    made = await desk.use("write_file", file_path="new/a.txt", content="é\n")
    assert made.text == "created new/a.txt (3 bytes)"
    diff = {"text": "@@ -0,0 +1,1 @@\n+é\n", "added": 1, "removed": 0}
    assert made.data == {"written": "/new/a.txt", "bytes": 3, "diff": diff}
    again = await desk.use("write_file", path="new/a.txt", content="")
    assert again.text == "replaced new/a.txt (0 bytes)"
    assert again.data is not None and (again.data["bytes"], again.data["diff"]["removed"]) == (0, 1)
    assert not (desk.root / "new").exists()  # the user's files change by landing only


@pytest.mark.parametrize(
    ("old", "new"), [("old", "new"), ("old_text", "new_text"), ("old_string", "new_string")]
)
async def test_edit_file_shows_the_change(desk: Desk, old: str, new: str) -> None:
    """TO-16, acceptance 9."""
    desk.put("a.py", "one\ntwo\nthree\nfour\n")
    result = await desk.use("edit_file", path="a.py", **{old: "two\nthree", new: "TWO"})
    assert result.data is not None
    assert (result.data["path"], result.data["replacements"]) == ("/a.py", 1)
    assert (result.data["diff"]["added"], result.data["diff"]["removed"]) == (1, 2)
    assert result.text == "a.py: 1 replacement\n@@ -1,4 +1,3 @@\n one\n-two\n-three\n+TWO\n four"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"old": "nowhere", "new": "x"}, "old is not in a.txt"), ({"old": "a", "new": "b"}, "2"),
        ({"old": "a", "new": "a"}, ""), ({"old": "", "new": "x"}, ""),
    ],
)  # fmt: skip
async def test_an_edit_that_is_not_clear_changes_nothing(
    desk: Desk, arguments: dict[str, str], told: str
) -> None:
    desk.put("a.txt", "a b a\n")
    result = await desk.use("edit_file", path="a.txt", **arguments)
    assert result.is_error
    assert told in result.text
    assert result.data == {"error": result.text}
    assert desk.branch.changes().written == ()


async def test_editing_one_line_of_a_latin1_crlf_file_keeps_all_other_bytes(desk: Desk) -> None:
    """Acceptance 4."""
    before = "caf\xe9\r\none\r\ntwo\r\nna\xefve".encode("latin-1")
    desk.put("old.txt", before)
    shown = await desk.text("read_file", path="old.txt")
    assert shown == "caf\ufffd\none\ntwo\nna\ufffdve"
    await desk.text("edit_file", path="old.txt", old="one\ntwo", new="ONE\nTWO\nTHREE")
    after = await desk.branch.read_bytes("old.txt")
    assert after == before.replace(b"one\r\ntwo", b"ONE\r\nTWO\r\nTHREE")


async def test_delete_and_move(desk: Desk) -> None:
    """TO-17."""
    desk.put("d/a.txt", "x")
    desk.put("b.txt", "y")
    refused = await desk.use("delete_file", path="d")
    assert refused.is_error
    assert (await desk.text("delete_file", path="d", recursive=True)).startswith("deleted d, d/a.txt")
    assert await desk.text("move_file", src="b.txt", dst="c.txt") == "moved b.txt to c.txt"
    assert desk.branch.changes().record() == {"written": ["/c.txt"], "deleted": ["/b.txt", "/d", "/d/a.txt"]}


async def test_show_changes_is_a_patch_and_names_what_it_left_out(desk: Desk) -> None:
    """TO-18."""
    assert await desk.text("show_changes") == "no changes"
    desk.put("a.txt", "one\n")
    await desk.use("edit_file", path="a.txt", old="one", new="two")
    for n in range(30):
        await desk.use("write_file", path=f"big/{n:02d}.txt", content=f"{n} line of text\n" * 200)
    shown = await desk.text("show_changes", paths=["a.txt"])
    assert "-one\n+two\n" in shown
    everything = await desk.use("show_changes")
    assert everything.truncated
    assert len(everything.text) <= 50_000
    assert everything.data is not None
    assert everything.data["left_out"][-1] == "big/29.txt"
    assert "more files; call show_changes with paths: " in everything.text


# ---------------------------------------------------------------- others change files (TO-22)


async def test_writing_over_another_ones_change_is_refused_once(desk: Desk) -> None:
    """TO-22."""
    desk.put("a.txt", "v1\n")
    await desk.use("read_file", path="a.txt")
    await desk.branch.write_file("a.txt", "theirs\n")
    refused = await desk.use("write_file", path="/a.txt", content="mine\n")
    assert refused.is_error
    assert "read it again" in refused.text
    assert await desk.branch.read_bytes("a.txt") == b"theirs\n"
    assert not (await desk.use("write_file", path="a.txt", content="mine\n")).is_error
    assert not (await desk.use("write_file", path="a.txt", content="mine again\n")).is_error


async def test_reading_again_makes_a_write_fine(desk: Desk) -> None:
    desk.put("a.txt", "v1\n")
    await desk.use("read_file", path="a.txt")
    await desk.branch.write_file("a.txt", "theirs\n")
    await desk.use("read_file", path="./a.txt")
    assert not (await desk.use("write_file", path="a.txt", content="mine\n")).is_error


async def test_a_file_that_was_never_read_is_not_written_over_unless_insisted_and_then_in_conflict(
    desk: Desk,
):
    file = desk.put("never-read.txt", "the user's\n")
    assert "read it" in (await desk.use("write_file", path="./never-read.txt", content="mine\n")).text
    assert not (await desk.use("write_file", path="never-read.txt", content="mine\n")).is_error
    with pytest.raises(LandingRefused, match="never-read"):
        desk.branch.land()
    assert file.read_text() == "the user's\n"


async def test_a_write_where_nothing_was_is_in_conflict_with_what_its_user_makes_meanwhile(
    desk: Desk,
) -> None:
    for event in count():
        name = f"new{event}.txt"
        with save_at(event, lambda name=name: desk.put(name, "the user's\n")) as came:
            written = not (await desk.use("write_file", path=name, content="mine\n")).is_error
            if not came():
                break
        desk.branch.land(partial=True)
        assert (desk.root / name).read_text() == "the user's\n", f"{written=} at event {event}"
    assert event > 3


@pytest.mark.parametrize("change", ["edit_file", "apply_patch"])
async def test_who_changes_a_line_knows_nothing_of_what_its_user_saved_beside_it(
    desk: Desk, change: str
) -> None:
    file = desk.put("a.txt", "one\ntwo\nthree\n")
    await desk.use("read_file", path="a.txt")
    file.write_text("the user's\none\ntwo\nthree\n")
    if change == "edit_file":
        await desk.text(change, path="a.txt", old="three", new="3")
    else:
        await desk.text(change, patch="--- a/a.txt\n+++ b/a.txt\n@@ -2,2 +2,2 @@\n two\n-three\n+3\n")
    refused = await desk.use("write_file", path="a.txt", content="one\ntwo\n3\n4\n")
    assert refused.is_error and "read it again" in refused.text
    assert not (await desk.use("write_file", path="a.txt", content="one\ntwo\n3\n4\n")).is_error
    desk.branch.land(partial=True)
    assert "the user's" in file.read_text()


async def test_a_patch_that_is_refused_leaves_what_was_read_of_its_files_as_it_was(desk: Desk) -> None:
    refusals = 0
    for event in count():
        first, second = (f"{name}{event}.txt" for name in "ab")
        file, other = desk.put(first, "one\ntwo\n"), desk.put(second, "one\ntwo\n")
        await desk.use("read_file", path=first)
        patch = "".join(
            f"--- a/{name}\n+++ b/{name}\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" for name in (first, second)
        )
        with save_at(event, lambda at=other: at.write_text("other\n")) as came:
            refused = (await desk.use("apply_patch", patch=patch)).is_error
            if not came():
                break
        file.write_text("the user's\none\ntwo\n")
        if refused:
            refusals += 1
            written = await desk.use("write_file", path=first, content="one\n2\n")
            assert written.is_error and "read it again" in written.text
            assert not (await desk.use("write_file", path=first, content="one\n2\n")).is_error  # it insists
        desk.branch.land(partial=True)
        assert "the user's" in file.read_text()
    assert refusals > 3


async def test_an_edit_of_a_changed_file_proceeds_and_says_so(desk: Desk) -> None:
    """TO-22: until it is read again."""
    desk.put("a.txt", "one\ntwo\n")
    await desk.use("read_file", path="a.txt")
    await desk.branch.write_file("a.txt", "zero\none\ntwo\n")
    shown = await desk.text("edit_file", path="a.txt", old="two", new="TWO")
    assert "changed by someone else since you read it" in shown
    assert "changed by someone else" in await desk.text("edit_file", path="a.txt", old="TWO", new="2")
    await desk.use("read_file", path="a.txt")
    assert "changed by someone else" not in await desk.text("edit_file", path="a.txt", old="2", new="3")


async def test_another_agents_reads_are_its_own(desk: Desk) -> None:
    desk.put("a.txt", "v1\n")
    await desk.use("read_file", path="a.txt")
    await desk.branch.write_file("a.txt", "theirs\n")
    write = desk.tools.get("write_file")
    assert write is not None
    other = ToolContext(branch=desk.branch.bound("t_1", "call_x"), call="call_x")
    assert "you have not read" in (await write.call({"path": "a.txt", "content": "b"}, other)).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a\nb\n".encode("utf-16"), "one\ntwo\n".encode("utf-16"), id="utf-16"),
        pytest.param(
            b"\xfe\xff" + "a\n".encode("utf-16-be"), b"\xfe\xff" + "one\ntwo\n".encode("utf-16-be"), id="be"
        ),
        pytest.param(b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfone\ntwo\n", id="utf-8 with a mark"),
        pytest.param(b"a\r\nb\r\n", b"one\r\ntwo\r\n", id="crlf"),
        pytest.param("a\r\n".encode("utf-16"), "one\r\ntwo\r\n".encode("utf-16"), id="utf-16 and crlf"),
        pytest.param(b"a\nb\n", b"one\ntwo\n", id="plain"),
    ],
)
async def test_writing_a_whole_file_keeps_its_encoding_and_line_ends(desk: Desk, before: bytes, after: bytes):
    desk.put("a.txt", before)
    await desk.use("read_file", path="a.txt")
    text = await desk.text("write_file", path="a.txt", content="one\ntwo\n")
    assert await desk.branch.read_bytes("a.txt") == after
    assert ("kept as it was" in text) == (after != b"one\ntwo\n")


async def test_writing_over_what_is_no_utf_8_says_that_it_is_now(desk: Desk):
    desk.put("a.txt", "caf\xe9\n".encode("latin-1"))
    await desk.use("read_file", path="a.txt")
    assert "it was not UTF-8 before, and is now" in await desk.text(
        "write_file", path="a.txt", content="café\n"
    )
