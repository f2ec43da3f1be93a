"""What models see of files, as pure functions: TO-11 … TO-18, AG-51."""

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.tools.files import aliases
from bowerbird.tools.files.text import diff_pages, directory, listing, matches, page, short_diff


def record(content: str, **changes: Any) -> dict[str, Any]:
    lines = content.count("\n") + (not content.endswith("\n"))
    return {"content": content, "start_line": 1, "total_lines": lines, "next_offset": None, **changes}


def test_a_page_is_the_content_without_line_numbers() -> None:
    assert page(record("a\nb\n")) == ("a\nb\n", False)
    assert page(record("a\nb\n", start_line=7), numbered=True) == ("     7\ta\n     8\tb\n", False)


def test_a_page_that_does_not_hold_all_names_the_next_offset() -> None:
    text, cut = page(record("".join(f"{n}\n" for n in range(1, 1001))), limit=500)
    assert cut
    assert len(text) <= 500
    shown = text.splitlines()
    assert shown[-1] == f"[more: offset={len(shown)} of 1000 lines]"
    text, cut = page(record("a\nb\n", next_offset=3, total_lines=9))
    assert (text, cut) == ("a\nb\n[more: offset=3 of 9 lines]", False)


def test_a_line_longer_than_a_page_is_cut_inside() -> None:
    text, cut = page(record("x" * 1000 + "\nnext\n"), limit=500)
    assert cut
    assert "[line cut]" in text
    assert text.endswith("[more: offset=2 of 2 lines]")


@given(st.text(alphabet="ab\n\x0c\u2028\r", max_size=200), st.integers(210, 400))
def test_pages_one_after_another_give_the_whole_file(content: str, limit: int) -> None:
    """Form feed and U+2028 are no line ends: offsets count as `grep -n` does (WS-26)."""
    lines = content.split("\n")
    offset, seen = 1, ""
    while True:
        rest = "\n".join(lines[offset - 1 :])
        text, _ = page(record(rest, start_line=offset, total_lines=len(lines)), limit=limit)
        body, _, note = text.rpartition("\n[more: offset=")
        if not note or not text.endswith("lines]"):
            seen += text
            break
        seen += body + "\n" if not body.endswith("[line cut]") else "".join(lines[offset - 1]) + "\n"
        offset = int(note.split(" ")[0])
    assert seen.replace("\n", "") == content.replace("\n", "")


def test_listings_end_in_totals_and_the_next_offset() -> None:
    made = listing({"files": ["/a.py", "/b/c.py"], "total": 9, "offset": 3, "truncated": True,
                    "pruned": ["/.git", "/node_modules"]})  # fmt: skip
    assert made == ("a.py\nb/c.py\n[9 files; shown 3-4; next: offset=5; not looked into: .git, node_modules]")


def test_directories_and_links_are_marked() -> None:
    entries = [
        {"name": "a", "type": "dir"}, {"name": "b", "type": "file"},
        {"name": "c", "type": "symlink", "target": "b"}, {"name": "d", "type": "special"},
    ]  # fmt: skip
    made = directory({"entries": entries, "total": 4, "truncated": False}, 1)
    assert made == "a/\nb\nc -> b\nd (special file)\n[4 entries]"


def test_matches_are_path_line_text_then_totals() -> None:
    made = matches({
        "matches": [{"path": "/a.py", "line": 3, "text": "x = 1", "before": ["b"], "after": ["c"]},
                    {"path": "/a.py", "line": 9, "text": "x = 2", "before": [], "after": []}],
        "total": 10_000, "total_is_minimum": True, "offset": 1, "truncated": True,
        "skipped": [{"path": "/big", "reason": "too large"}], "pruned": [],
    })  # fmt: skip
    assert made.splitlines() == [
        "a.py-2- b", "a.py:3: x = 1", "a.py-4- c", "--", "a.py:9: x = 2",
        "[at least 10,000 matches; shown 1-2; next: offset=3; 1 files skipped: big (too large)]",
    ]  # fmt: skip


def test_a_short_diff_shows_each_changed_place_with_context() -> None:
    before = "".join(f"line {n}\n" for n in range(40))
    after = before.replace("line 5\n", "five\n").replace("line 30\n", "thirty\n")
    made = short_diff(before, after).splitlines()
    assert made[0] == "@@ -4,5 +4,5 @@"
    assert [line for line in made if line[0] in "+-"] == ["-line 5", "+five", "-line 30", "+thirty"]
    assert len(short_diff(before, before.replace("line", "LINE")).splitlines()) == 61


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_a_short_diff_takes_the_old_lines_out_and_the_new_ones_in(old: list[str], new: list[str]) -> None:
    made = short_diff("".join(f"{x}\n" for x in old), "".join(f"{x}\n" for x in new)).splitlines()
    gone = [line[1:] for line in made if line.startswith("-")]
    come = [line[1:] for line in made if line.startswith("+")]
    left = list(old)
    for line in gone:
        left.remove(line)
    assert sorted(left + come) == sorted(new)


@dataclass
class Made:
    """A patch that counts how often it is asked for."""

    path: str
    text: str
    asked: int = 0

    def sections(self) -> list[str]:
        self.asked += 1
        return [self.text]


def test_a_long_diff_is_paged_by_whole_files() -> None:
    one = "diff --git a/{n} b/{n}\n--- a/{n}\n+++ b/{n}\n@@ -1 +1 @@\n-a\n+b\n"
    made = [Made(f"/f{n}.py", one.format(n=f"f{n}.py")) for n in range(100)]
    text, left = diff_pages(made, limit=3000)
    assert len(text) <= 3000
    assert text.count("diff --git") + len(left) == 100
    assert left[-1] == "f99.py"
    assert sum(each.asked for each in made) == 100 - len(left) + 1  # no more are made than are shown
    assert diff_pages(made) == ("".join(each.text for each in made), [])


def test_aliases_translate_paths_into_globs() -> None:
    """TO-12, TO-14."""
    assert aliases.glob({"pattern": "*.py", "path": "/src/"}) == {"pattern": "src/*.py"}
    assert aliases.glob({"pattern": "*.py", "path": "."}) == {"pattern": "*.py"}
    assert aliases.grep({"pattern": "x", "path": "src"}) == {"pattern": "x", "glob": "{src,src/**/*}"}
    assert aliases.grep({"pattern": "x", "path": "src", "include": "*.py"}) == {
        "pattern": "x", "glob": "src/**/*.py",
    }  # fmt: skip
    assert aliases.grep({"pattern": "x", "glob": "*.py"}) == {"pattern": "x", "glob": "*.py"}
