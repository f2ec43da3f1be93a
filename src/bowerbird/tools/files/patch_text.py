r"""Patches: parsed into changes per file, and a file's hunks applied to its bytes.

Here: pure work on text and bytes, for `apply_patch`, in two forms: unified diffs, and `*** Begin Patch`, as
some models write it. Not here: branches; writing diffs (`workspace/`).

A hunk stands where its context stands. The numbers of a header choose among places that fit, as far as its
counts are right; a place that is not the only one is refused, since a patch at another place is worse than
none. Lines fit that are equal but for blanks at their ends; where none are, but for indentation, which new
lines then get as the file has it, and typographic punctuation. What the patch does not touch stays byte for
byte.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from bowerbird.core.errors import LimitExceeded, ToolError
from bowerbird.core.lines import places, unlike

_HUNK = re.compile(r"@@ *-(\d+)(?:,(\d+))? +\+(\d+)(?:,(\d+))? *(?:@@|$)")
_GIT = re.compile(r'diff --git (?P<old>"(?:[^"\\]|\\.)*"|\S.*?) (?P<new>"(?:[^"\\]|\\.)*"|\S.*)')
_ENVELOPE = re.compile(r"\*\*\* (Add File|Update File|Delete File|Move to): *(\S.*)")
_EDGES = ("*** Begin Patch", "*** End Patch", "*** End of File")
_ESCAPE = re.compile(rb"\\([abfnrtv\"\\]|[0-7]{3})")
_LETTERS = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}
_PUNCTUATION = str.maketrans(
    dict.fromkeys("‐‑‒–—―−", "-") | dict.fromkeys("‘’‚‛", "'") | dict.fromkeys("“”„‟", '"') | {"\xa0": " "}
)
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk.

    Attributes:
        start: the first line as the header says, None where it says nothing that can be believed.
        anchors: lines that stand above, as `@@ class A` names them.
        lines: (` `, `-` or `+`, text without line end).
        ends_open: whether the file ends without a newline after it, None where nothing is said.
        is_last: the file ends with it.
    """

    header: str
    start: int | None
    lines: tuple[tuple[str, str], ...]
    anchors: tuple[str, ...] = ()
    ends_open: bool | None = None
    is_last: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that it takes to be there."""
        return [line for mark, line in self.lines if mark != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that it leaves."""
        return [line for mark, line in self.lines if mark != "-"]


class FilePatch(msgspec.Struct):
    """What a patch does to one file; `old` or `new` is None for creation and deletion.

    `is_whole`: it is deleted, whatever it holds.
    """

    old: str | None = None
    new: str | None = None
    hunks: list[Hunk] = msgspec.field(default_factory=list[Hunk])
    executable: bool | None = None
    renamed: bool = False
    is_whole: bool = False

    @property
    def name(self) -> str:
        """The path to name in messages."""
        return self.new or self.old or "?"

    @property
    def makes_only(self) -> bool:
        """Whether it says itself that there was nothing before, in its numbers if not by name."""
        return bool(self.hunks) and all(hunk.start == 0 and not hunk.old for hunk in self.hunks)


def parse_patch(text: str) -> list[FilePatch]:
    """Return the files of a patch, in its order; several parts for one file are one.

    Raises:
        ToolError: no file in it, a line that cannot be understood, or a binary patch.
    """
    lines = text.split("\n")
    if any(line.endswith("\r") and _begins_part(lines, at) for at, line in enumerate(lines)):
        lines = [line.removesuffix("\r") for line in lines]  # of the patch, not of the file
    files: list[FilePatch] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.startswith("diff --git "):
            files.append(_git_header(line))
        elif line.startswith("*** "):
            _envelope(files, line)
        elif line.startswith("--- ") and index + 1 < len(lines) and lines[index + 1].startswith("+++ "):
            _names(files, line, lines[index + 1])
            index += 1
        elif line.startswith("@@") or (files and _is_body(lines, index)):
            if not files:
                raise ToolError(f"the patch begins with a hunk, not with a file: {line}")
            hunk, index = _hunk(files[-1], lines, index)
            if hunk is not None:
                files[-1].hunks.append(hunk)
            continue
        elif line == "GIT binary patch" or line.startswith("Binary files "):
            raise ToolError(f"{files[-1].name if files else 'the patch'}: binary patches cannot be applied")
        elif files and not files[-1].hunks:
            _extended(files[-1], line)
        index += 1
    if not files:
        raise ToolError(
            "the patch names no file; it needs '--- a/PATH' and '+++ b/PATH' before its hunks, or "
            "'*** Begin Patch' and '*** Update File: PATH'; nothing was changed"
        )
    return _joined(files)


def _joined(files: Sequence[FilePatch]) -> list[FilePatch]:
    """Take the hunks of several parts for one file together."""
    found: list[FilePatch] = []
    for one in files:
        first = next((f for f in found if f.old == f.new == one.old == one.new and not f.renamed), None)
        if first is None:
            found.append(one)
        else:
            first.hunks += one.hunks
    return found


def apply_hunks(data: bytes, patch: FilePatch) -> bytes:
    """Return `data` with every hunk of `patch` applied.

    Raises:
        ToolError: a hunk does not fit, or fits several places; file, number and the nearest lines are named.
    """
    text = data.decode("utf-8", "surrogateescape")
    spoken = [line for hunk in patch.hunks for _, line in hunk.lines]
    bom = _BOM if text.startswith(_BOM) and not any(line.startswith(_BOM) for line in spoken) else ""
    file = _File(text.removeprefix(bom))
    # Who writes line ends means them; else new lines get those of the file.
    end = "\n" if any(line.endswith("\r") for line in spoken) else file.end
    inserts: dict[int, list[str]] = {}
    deleted: set[int] = set()
    ends_open: bool | None = None
    moved = 0
    for number, hunk in enumerate(patch.hunks, 1):
        try:
            at = _place(file, hunk, moved)
            added = _fitted(file, hunk, at)
            _enter(hunk, at, added, inserts, deleted)
        except (_Unfit, LimitExceeded) as problem:
            header = f"hunk {number} ({hunk.header})" if hunk.header else f"hunk {number}"
            raise ToolError(f"{patch.name}: {header} {problem}; nothing was changed") from None
        if hunk.start is not None and hunk.old:
            moved = at - max(hunk.start - 1, 0)
        if at + len(hunk.old) == len(file.lines) and hunk.ends_open is not None:
            ends_open = hunk.ends_open
    made: list[tuple[str, str]] = []
    for at in range(len(file.lines) + 1):
        made += [(line, end) for line in inserts.get(at, ())]
        if at < len(file.lines) and at not in deleted:
            made.append((file.lines[at], file.ends[at] or end))
    if not made:
        return b""
    last, its_end = made[-1]
    if ends_open is None:  # nothing is said: the end stays as it is where it is the file's own, or new
        ends_open = file.ends[-1:] == [""] and (
            len(file.lines) - 1 not in deleted or len(file.lines) in inserts
        )
    made[-1] = (last, "" if ends_open else its_end)
    return (bom + "".join(line + its_end for line, its_end in made)).encode("utf-8", "surrogateescape")


class _Unfit(Exception):
    """Why a hunk cannot be applied, for the sentence that names it."""


@dataclass
class _File:
    """The lines of a file, without their ends, as they are and as they are compared."""

    text: str
    lines: list[str] = field(init=False)
    ends: list[str] = field(init=False)

    def __post_init__(self) -> None:
        *whole, last = self.text.split("\n")
        self.lines = [line.removesuffix("\r") for line in whole] + ([last] if last else [])
        self.ends = ["\r\n" if line.endswith("\r") else "\n" for line in whole] + ([""] if last else [])

    @property
    def end(self) -> str:
        """How most lines end."""
        return "\r\n" if self.ends.count("\r\n") * 2 > len(self.ends) - self.ends.count("") else "\n"

    @cached_property
    def trimmed(self) -> list[str]:
        """Without blanks at their ends."""
        return [line.rstrip() for line in self.lines]

    @cached_property
    def loose(self) -> list[str]:
        """Without indentation, and with plain punctuation."""
        return [_loose(line) for line in self.lines]

    def has(self, wanted: Sequence[str], at: int, key: Callable[[str], str]) -> bool:
        """Whether `wanted` stands at line `at`, as `key` sees both."""
        here = self.lines[at : at + len(wanted)] if at >= 0 else []
        return len(here) == len(wanted) and all(key(a) == key(b) for a, b in zip(here, wanted, strict=True))


def _loose(line: str) -> str:
    return line.translate(_PUNCTUATION).strip()


def _place(file: _File, hunk: Hunk, moved: int) -> int:
    """Return the one line at which `hunk` begins, from 0; `moved` is by how much the hunk before was off."""
    old = hunk.old
    if not old:
        if not file.lines:
            return 0
        if hunk.is_last:
            return len(file.lines)
        raise _Unfit("has no line of the file beside what it adds, so that its place is not sure")
    key, found = str.rstrip, places(file.trimmed, [line.rstrip() for line in old])
    if not found:
        key, found = _loose, places(file.loose, [_loose(line) for line in old])
    if hunk.start is not None:
        first = max(hunk.start - 1, 0)
        said = [at for at in dict.fromkeys((first + moved, first)) if file.has(old, at, _loose)]
        if len(said) == 1 and file.has(old, said[0], key):
            return _not_yet(file, hunk, said[0])
        found = sorted({*found, *said})
        if not said and hunk.new and found and file.has(hunk.new, first + moved, str.rstrip):
            found = []  # where it says, it was applied already; elsewhere nobody wants it
    elif len(found) > 1:
        found = _chosen(file, hunk, found)
    if len(found) == 1:
        return _not_yet(file, hunk, found[0])
    if found:
        lines = ", ".join(str(at + 1) for at in found[:5]) + (" …" if len(found) > 5 else "")
        many = f"{len(found)} places" if len(found) <= 5 else "several places"
        raise _Unfit(
            f"fits {many}, lines {lines}: add lines above or below, or name the line of the function or "
            "class above it after @@"
        )
    raise _Unfit(_why_not(file, hunk))


def _chosen(file: _File, hunk: Hunk, found: list[int]) -> list[int]:
    """Of several places return those that the lines named above, or the file's end, leave."""
    if hunk.is_last:
        return [at for at in found if at + len(hunk.old) == len(file.lines)] or found
    starts: list[int] = []
    for anchor in hunk.anchors:
        first = min(starts, default=0)
        starts = [at for at, line in enumerate(file.loose) if line == _loose(anchor) and at >= first]
    below: set[int] = set()
    for start in starts:
        # In what is so named all that fit, else the first after it.
        inside = [at for at in found if start <= at < _block_end(file.lines, start)]
        below.update(inside or [at for at in found if at >= start][:1])
    return sorted(below) or found


def _block_end(lines: Sequence[str], start: int) -> int:
    """Return where what begins at a line, a function or a class, ends by its indentation."""
    depth = len(_indent(lines[start]))
    for at in range(start + 1, len(lines)):
        line = lines[at]
        if line.strip() and len(_indent(line)) <= depth and line.strip()[0] not in ")]{":
            return at
    return len(lines)


def _not_yet(file: _File, hunk: Hunk, at: int) -> int:
    """Return `at` unless what is added below the hunk's last line stands there already."""
    adds_only = hunk.lines[-1][0] == "+" and all(mark != "-" for mark, _ in hunk.lines)
    if adds_only and file.has(hunk.new, at, str.rstrip):
        raise _Unfit(f"was applied already, it seems: line {at + 1} and those below are as it makes them")
    return at


def _why_not(file: _File, hunk: Hunk) -> str:
    applied = places(file.trimmed, [line.rstrip() for line in hunk.new], 1)
    if applied and any(mark == "+" for mark, _ in hunk.lines):
        return f"was applied already, it seems: line {applied[0] + 1} and those below are as it makes them"
    return f"does not fit the file; {unlike(file.lines, hunk.old)}"


def _fitted(file: _File, hunk: Hunk, at: int) -> list[str]:
    """Return the lines that `hunk` adds, indented as the file is where the hunk's lines are not."""
    added = [line for mark, line in hunk.lines if mark == "+"]
    here = file.lines[at : at + len(hunk.old)]
    pairs: list[tuple[str, str]] = []
    for (mark, theirs), ours in zip((one for one in hunk.lines if one[0] != "+"), here, strict=True):
        if mark == "-" and theirs.strip() != ours.strip():
            raise _Unfit(f"has other punctuation than line {at + 1} and those below, in what it takes away")
        if theirs.strip():
            pairs.append((_indent(theirs), _indent(ours)))
    off = sum(theirs != ours for theirs, ours in pairs)
    if not off:
        return added
    ways = [way for way in _WAYS if all(way(theirs, pairs) == ours for theirs, ours in pairs)]
    results = {tuple(_reindented(line, way, pairs) for line in added) for way in ways}
    if len(results) == 1 and None not in (made := results.pop()):
        return [line for line in made if line is not None]
    if not ways and off * 2 < len(pairs):  # a slip in what is there anyway
        return added
    raise _Unfit(f"is indented otherwise than the file; {unlike(file.lines, hunk.old)}")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _reindented(line: str, way: "_Way", pairs: Sequence[tuple[str, str]]) -> str | None:
    """Return the line, or None where that way says nothing of its indentation."""
    indent = _indent(line)
    made = way(indent, pairs) if line.strip() else indent
    return None if made is None else made + line[len(indent) :]


_Way = Callable[[str, Sequence[tuple[str, str]]], str | None]


def _deeper(indent: str, pairs: Sequence[tuple[str, str]]) -> str | None:
    """All lines lost, or got, the same at their beginning."""
    theirs, ours = pairs[0]
    if ours.endswith(theirs):
        return ours[: len(ours) - len(theirs)] + indent
    more = theirs[: len(theirs) - len(ours)]
    return indent[len(more) :] if theirs.endswith(ours) and indent.startswith(more) else None


def _tabs(width: int) -> _Way:
    """Blanks stand where the file has tabs."""
    return lambda indent, _: (
        "\t" * (len(indent) // width) + " " * (len(indent) % width) if not indent.strip(" ") else None
    )


def _blanks(width: int) -> _Way:
    """Tabs stand where the file has blanks."""
    return lambda indent, _: " " * (len(indent) * width) if not indent.strip("\t") else None


_WAYS: tuple[_Way, ...] = (_deeper, *(make(width) for make in (_tabs, _blanks) for width in (2, 3, 4, 8)))


def _enter(hunk: Hunk, at: int, added: list[str], inserts: dict[int, list[str]], deleted: set[int]) -> None:
    """Note what `hunk`, which begins at line `at`, adds before which line, and which lines it takes away."""
    mine: dict[int, list[str]] = {}
    new = iter(added)
    for mark, _ in hunk.lines:
        if mark == "+":
            mine.setdefault(at, []).append(next(new))
            continue
        if mark == "-":
            if at in deleted:
                raise _Unfit(f"changes line {at + 1}, as a hunk before it does")
            deleted.add(at)
        at += 1
    if both := mine.keys() & inserts.keys():
        raise _Unfit(f"adds lines above line {min(both) + 1}, as a hunk before it does")
    inserts.update(mine)


def _is_body(lines: Sequence[str], at: int) -> bool:
    """Whether a line is of a hunk that has no header; right below a file's name it may have lost its mark."""
    is_first = at > 0 and lines[at - 1].startswith(("*** Add", "*** Update", "*** Move", "+++ "))
    return (lines[at][:1] in ("+", "-", " ") and lines[at] != "-- ") or (is_first and bool(lines[at].strip()))


def _begins_part(lines: Sequence[str], at: int) -> bool:
    """Whether a line begins another hunk or file; `--- x` in a hunk may be the text `-- x` that goes."""
    line = lines[at]
    if line.startswith(("@@", "diff --git ", "*** ")) or line.rstrip("\r") == "GIT binary patch":
        return True
    following = [*lines[at + 1 : at + 3], "", ""]
    return (
        line.startswith("--- ") and following[0].startswith("+++ ") and following[1][:2] in ("@@", "", "\r")
    )


def _git_header(line: str) -> FilePatch:
    match = _GIT.fullmatch(line)
    if match is None:
        raise ToolError(f"the patch has a header that cannot be read: {line}")
    return FilePatch(_path(match["old"]), _path(match["new"]))


def _envelope(files: list[FilePatch], line: str) -> None:
    """Read a `*** …` line."""
    match = _ENVELOPE.match(line)
    if match is None:
        if line.rstrip() not in _EDGES:
            raise ToolError(f"the patch has a line that cannot be read: {line}; nothing was changed")
        return
    name = match[2].strip()
    if match[1] == "Move to":
        if not files or files[-1].old is None:
            raise ToolError(f"the patch has no file to move before: {line}; nothing was changed")
        files[-1].new, files[-1].renamed = name, name != files[-1].old
        return
    kind = match[1].split()[0]
    files.append(
        FilePatch(
            None if kind == "Add" else name, None if kind == "Delete" else name, is_whole=kind == "Delete"
        )
    )


def _names(files: list[FilePatch], old_line: str, new_line: str) -> None:
    old, new = _path(old_line[4:].split("\t", maxsplit=1)[0]), _path(new_line[4:].split("\t", maxsplit=1)[0])
    if not files or files[-1].hunks or (files[-1].old or files[-1].new) not in (old, new):
        files.append(FilePatch())
    files[-1].old, files[-1].new = old, new
    if old is not None and new is not None and old != new:
        files[-1].renamed = True


def _extended(patch: FilePatch, line: str) -> None:
    """Read git's extra header lines."""
    if re.match(r"(new|old|deleted)( file)? mode 1[26]0000", line):
        raise ToolError(f"{patch.name}: links and submodules cannot be patched; nothing was changed")
    if line.startswith("copy from "):
        raise ToolError(f"{patch.name}: copies cannot be patched; write the new file; nothing was changed")
    if line.startswith(("new file mode ", "new mode ")):
        patch.executable = line.endswith("755")
    if line.startswith("new file mode "):
        patch.old = None
    elif line.startswith("deleted file mode "):
        patch.new = None
    elif line.startswith("rename from "):
        patch.old, patch.renamed = _path(line[12:], prefixed=False), True
    elif line.startswith("rename to "):
        patch.new, patch.renamed = _path(line[10:], prefixed=False), True


def _path(text: str, *, prefixed: bool = True) -> str | None:
    """Return the path in a header, without quotes and `a/` or `b/`; None for /dev/null."""
    text = text.strip()
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        raw = _ESCAPE.sub(_unescaped, text[1:-1].encode("utf-8", "surrogateescape"))
        text = raw.decode("utf-8", "surrogateescape")
    if text == "/dev/null":
        return None
    return text[2:] if prefixed and text[:2] in ("a/", "b/") else text


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([_LETTERS[code] if code in _LETTERS else int(code, 8) & 255])


def _hunk(patch: FilePatch, lines: Sequence[str], index: int) -> tuple[Hunk | None, int]:
    """Return the hunk at `index`, None when it changes nothing, and where it ends."""
    header, anchors, numbers, begun = "", list[str](), None, index
    while index < len(lines) and lines[index].startswith("@@"):
        header = lines[index]
        if header.startswith("@@@"):
            raise ToolError(f"{patch.name}: a merge's diff cannot be applied: {header}; nothing was changed")
        numbers = _HUNK.match(header)
        said = header.removeprefix("@@").strip().removesuffix("@@").strip()
        if numbers is None and any(letter.isalnum() for letter in said):
            anchors.append(said)
        index += 1
    start: int | None = None
    body: Sequence[str] | None = None
    if numbers is not None:
        header = numbers[0]
        body = _counted(lines, index, int(numbers[2] or 1), int(numbers[4] or 1))
        # Of numbers that are wrong in one thing, no other is believed.
        start = None if body is None else int(numbers[1])
    if body is None:
        body = _uncounted(lines, index)
    after = index + len(body)
    is_last = after < len(lines) and lines[after].rstrip() == "*** End of File"
    found: list[tuple[str, str]] = []
    open_sides: dict[str, bool] = {}
    for line in body:
        if line.startswith("\\"):
            open_sides |= dict.fromkeys("-+" if not found or found[-1][0] == " " else found[-1][0], True)
        elif line[:1] in ("+", "-", " "):
            found.append((line[0], line[1:]))
        else:  # editors strip the blank of an empty line, models forget one
            found.append(("+" if patch.old is None and not line.strip() else " ", line))
    wrong = next((line for mark, line in found if mark != "+"), None)
    if patch.old is None and wrong is not None:
        raise ToolError(
            f"{patch.name}: a new file's lines begin with +; this does not: {wrong}; nothing was changed"
        )
    if all(mark == " " for mark, _ in found) and not open_sides:
        return None, max(after, begun + 1)
    return Hunk(
        header,
        start,
        tuple(found),
        tuple(anchors),
        open_sides.get("+", False) if open_sides else None,
        is_last,
    ), after


def _counted(lines: Sequence[str], index: int, left: int, right: int) -> Sequence[str] | None:
    """Return the lines of a hunk by the counts of its header, None where they are wrong."""
    at = index
    while (left > 0 or right > 0) and at < len(lines) and (not (mark := lines[at][:1]) or mark in "+- \\"):
        left -= mark in (" ", "-", "")
        right -= mark in (" ", "+", "")
        at += 1
    if left or right:
        return None
    while at < len(lines) and lines[at].startswith("\\"):
        at += 1
    goes_on = at < len(lines) and lines[at][:1] in ("+", "-", " ")
    return None if goes_on and not _begins_part(lines, at) and lines[at] != "-- " else lines[index:at]


def _uncounted(lines: Sequence[str], index: int) -> Sequence[str]:
    """Return the lines of a hunk up to the last before another part that can be one of a hunk."""
    at = end = index
    while at < len(lines) and not _begins_part(lines, at):
        at += 1
        if lines[at - 1][:1] in ("+", "-", " ", "\\"):
            end = at
    return lines[index:end]
