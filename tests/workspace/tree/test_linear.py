"""What a stranger's data can make slow: work grows with its size, not with its square (issue 10, blocker 6).

Times of two sizes in the same run are compared, or work is counted, so that a busy machine does not matter.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.branches import branch_of
from support.cpu_time import cpu

from bowerbird.core.errors import InvalidPattern, ToolError
from bowerbird.tools.files.patch_text import apply_hunks, parse_patch
from bowerbird.workspace.files.editing import edit
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.glob import compile_glob
from bowerbird.workspace.tree.ignore import MOST_PATTERNS, IgnoreFile, extended, ignored

GROWTH = 8  # times the data; quadratic work would take 64 times as long
ALLOWED = 28


def edited(count: int) -> object:
    return edit(b"x" * count, "x", "y", replace_all=True, encoding=None, path="/a")


def edited_utf16(count: int) -> object:
    """U+0A00: its bytes look like a newline where none is."""
    data = b"\xff\xfe" + b"\x00\x0a" * count + b"q\x00" * count
    return edit(data, "q", "y", replace_all=True, encoding=None, path="/a")


def parsed(count: int) -> object:
    return parse_patch("--- a/x\n+++ b/x\n" + "@@ -1 +1 @@\n-a\n+b\n" * count)


def braces(count: int) -> object:
    with pytest.raises(InvalidPattern):
        return compile_glob("{" * count * 100 + "a" + "}" * count * 100)


def names(count: int) -> object:
    rules = IgnoreFile(
        "f*\n" + "\n".join(f"name{number}\n*.end{number}\nstart{number}*" for number in range(count))
    )
    return [rules.decide(f"f{number}", f"f{number}", is_dir=False) for number in range(count)]


@pytest.mark.parametrize(
    ("work", "size"),
    [(edited, 4000), (edited_utf16, 1000), (parsed, 1000), (braces, 50), (names, 200)],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_work_grows_with_the_size(work: Callable[[int], object], size: int) -> None:
    """Engine finding 8: `edit_file` with replace_all; the others have the same cause."""
    assert cpu(lambda: work(size * GROWTH)) < ALLOWED * cpu(lambda: work(size))


def test_rules_of_an_ignore_file_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 rules with stars inside took 150 seconds: each new one compiled all before it again."""
    compiled = 0
    real = re.compile

    def counted(pattern: Any, flags: Any = 0) -> Any:
        nonlocal compiled
        compiled += len(pattern)
        return real(pattern, flags)

    monkeypatch.setattr("bowerbird.workspace.tree.ignore.re.compile", counted)
    text = "\n".join(f"a*x{number}b" for number in range(4000))
    rules = IgnoreFile(text)
    assert rules.decide("aqx1499b", "aqx1499b", is_dir=False) is None  # beyond what one file may have
    assert rules.decide("aqx7b", "aqx7b", is_dir=False) is True
    assert rules.patterns == MOST_PATTERNS
    assert compiled < 10 * len(text)


def test_a_chain_of_ignore_files_has_the_bound_of_one() -> None:
    chain: Any = ()
    for depth in range(10):
        text = "\n".join([f"name{depth}", *(f"a?{depth}x{number}" for number in range(MOST_PATTERNS // 3))])
        chain = extended(chain, text, 1)
    assert sum(rules.patterns for rules, _ in chain) <= MOST_PATTERNS
    assert ignored(chain, "/name0", "name0", is_dir=False) and not ignored(chain, "/n", "n", is_dir=False)


def test_a_hunk_is_looked_for_among_lines_that_are_alike_within_a_bound() -> None:
    hunk = "-a\n-b\n" * 5_000 + "-b\n-a\n+c\n"
    patch = parse_patch(f"--- a/x\n+++ b/x\n@@\n{hunk}")[0]
    with pytest.raises(ToolError, match="too many lines look alike"):
        apply_hunks(b"a\nb\n" * 30_000, patch)
    near = parse_patch("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\n+c\n")[0]
    assert apply_hunks(b"a\n" * 30_000 + b"b\n", near).endswith(b"a\nc\n")


async def test_moved_files_are_read_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engine finding 6: moving a directory and deleting another compared every file with every other."""
    files = {
        f"{folder}/{number}": f"{folder}{number:05d}\n" for folder in ("a", "b") for number in range(120)
    }
    with branch_of(tmp_path, files) as branch:
        await branch.move("a", "moved")
        await branch.delete("b", recursive=True)
        read = 0
        real = Content.read

        def counted(content: Content) -> bytes:
            nonlocal read
            read += 1
            return real(content)

        monkeypatch.setattr(Content, "read", counted)
        diff = branch.diff()
        assert {row.path: row.renamed_from for row in diff.written} == {
            f"/moved/{number}": f"/a/{number}" for number in range(120)
        }
        assert read <= 4 * len(files)
