"""Patches of both forms, made from real commits, with the faults that models make; and what became of each.

A patch is right when the files are those of the commit, or it is refused with its reason and every file is as it was.
Anything else is wrong: half of it, another place, a tick with nothing changed.
"""

import asyncio
import difflib
import random
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from support.file_desk import Desk

from bowerbird.core.errors import NotFound

LARGEST = 150_000
MARKER = "\\ No newline at end of file"


@dataclass
class Change:
    """One file of a commit; `before` or `after` is None where there is none, `disk` what stands there."""

    old: str | None
    new: str | None
    before: str
    after: str
    disk: str | None = None
    result: str | None = None

    @property
    def stands(self) -> str:
        return self.before if self.disk is None else self.disk

    @property
    def wanted(self) -> str:
        return self.after if self.result is None else self.result


@dataclass
class Hunk:
    """One hunk before it is written: its numbers, and its lines with their marks."""

    start: int
    new_start: int
    lines: list[str]
    anchor: str = ""
    header: str | None = None

    def counts(self) -> tuple[int, int]:
        return sum(line[0] in " -" for line in self.lines), sum(line[0] in " +" for line in self.lines)


@dataclass
class Patch:
    """How it is written."""

    changes: list[Change]
    is_envelope: bool
    chance: random.Random
    context: int = 3
    prefixes: tuple[str, str] = ("a/", "b/")
    hunks: dict[int, list[Hunk]] = field(default_factory=dict[int, "list[Hunk]"])
    texts: list[Callable[[str], str]] = field(default_factory=list[Callable[[str], str]])
    is_split: bool = False

    def lines(self) -> Iterator[Hunk]:
        for hunks in self.hunks.values():
            yield from hunks


# ------------------------------------------------------------ where changes come from


def git(root: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=True).stdout


@cache
def commits(root: Path) -> list[str]:
    """Every commit with a parent that is here; none without a history."""
    try:
        return git(root, "log", "--no-merges", "--min-parents=1", "--format=%H").decode().split()
    except (OSError, subprocess.CalledProcessError):
        return []


def text_of(data: bytes) -> str | None:
    if len(data) > LARGEST or b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def of_history(root: Path, chance: random.Random) -> list[Change]:
    """Up to four text files that one commit changed."""
    while True:
        commit = chance.choice(commits(root))
        parent = f"{commit}^"
        rows = git(root, "diff-tree", "-r", "-M", "-z", "--no-commit-id", parent, commit).decode().split("\0")
        found: list[Change] = []
        at = 0
        while at < len(rows) - 1:
            facts, old = rows[at].split(), rows[at + 1]
            new, at = (rows[at + 2], at + 3) if facts[4][0] in "RC" else (old, at + 2)
            if facts[4][0] not in "AMDR" or any(
                mode[:3] in (":12", "120", ":16", "160") for mode in facts[:2]
            ):
                continue
            before = text_of(b"" if facts[4][0] == "A" else git(root, "show", f"{parent}:{old}"))
            after = text_of(b"" if facts[4][0] == "D" else git(root, "show", f"{commit}:{new}"))
            if (
                before is None
                or after is None
                or before == after
                or (facts[4][0] in "AD" and not before + after)
            ):
                continue
            kind = facts[4][0]
            found.append(Change(None if kind == "A" else old, None if kind == "D" else new, before, after))
        if found:
            return chance.sample(found, min(len(found), chance.choice((1, 1, 1, 2, 3, 4))))


def of_versions(old: Path, new: Path, chance: random.Random) -> list[Change]:
    """A few text files that differ in two versions of a directory."""
    names = sorted({str(p.relative_to(top)) for top in (old, new) for p in top.rglob("*") if p.is_file()})
    found: list[Change] = []
    for name in chance.sample(names, len(names)):
        sides = [text_of(p.read_bytes()) if (p := top / name).is_file() else "" for top in (old, new)]
        before, after = sides
        if before is None or after is None or before == after:
            continue
        found.append(
            Change(
                name if (old / name).is_file() else None,
                name if (new / name).is_file() else None,
                before,
                after,
            )
        )
        if len(found) == chance.choice((1, 2, 3)):
            break
    return found


# ------------------------------------------------------------ how they are written


def cut(text: str) -> list[str]:
    """Its lines, an open end marked."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else [*lines[:-1], lines[-1] + "\0"]


def hunks_of(change: Change, context: int) -> list[Hunk]:
    before, after = cut(change.before), cut(change.after)
    found: list[Hunk] = []
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(context):
        lines: list[str] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [f" {line}" for line in before[a:b]]
            else:
                lines += [f"-{line}" for line in before[a:b]] + [f"+{line}" for line in after[c:d]]
        top, left = group[0][1], group[0][3]
        anchor = next(
            (
                one
                for one in reversed(before[:top])
                if re.match(r"\s*(class|def|async def|function|export) ", one)
            ),
            "",
        )
        hunk = Hunk(top + 1, left + 1, lines, anchor)
        hunk.start -= hunk.counts()[0] == 0
        hunk.new_start -= hunk.counts()[1] == 0
        found.append(hunk)
    return found


def written(patch: Patch) -> str:
    parts: list[str] = ["*** Begin Patch"] if patch.is_envelope else []
    for number, change in enumerate(patch.changes):
        hunks = patch.hunks[number]
        head = _envelope_head(change) if patch.is_envelope else _unified_head(change, patch)
        if patch.is_split and len(hunks) > 1 and change.old == change.new:
            parts += head + _body(hunks[:1], patch) + head + _body(hunks[1:], patch)
        elif patch.is_envelope and (change.old is None or change.new is None):
            parts += head + [line.rstrip("\0") for hunk in hunks for line in hunk.lines if change.new]
        else:
            parts += head + _body(hunks, patch)
    text = "\n".join([*parts, *(["*** End Patch"] if patch.is_envelope else [])]) + "\n"
    for fault in patch.texts:
        text = fault(text)
    return text


def _envelope_head(change: Change) -> list[str]:
    if change.old is None:
        return [f"*** Add File: {change.new}"]
    if change.new is None:
        return [f"*** Delete File: {change.old}"]
    moved = [f"*** Move to: {change.new}"] if change.new != change.old else []
    return [f"*** Update File: {change.old}", *moved]


def _unified_head(change: Change, patch: Patch) -> list[str]:
    a, b = patch.prefixes
    head = [
        f"--- {a}{change.old}" if change.old else "--- /dev/null",
        f"+++ {b}{change.new}" if change.new else "+++ /dev/null",
    ]
    if not a or patch.chance.random() < 0.5:
        return head
    names = f"diff --git a/{change.old or change.new} b/{change.new or change.old}"
    if change.old is None or change.new is None:
        return [names, f"{'new' if change.old is None else 'deleted'} file mode 100644", *head]
    moved = [f"rename from {change.old}", f"rename to {change.new}"] if change.old != change.new else []
    return [names, *moved, "index 1234567..89abcde 100644", *head]


def _body(hunks: Sequence[Hunk], patch: Patch) -> list[str]:
    parts: list[str] = []
    for hunk in hunks:
        left, right = hunk.counts()
        numbers = f"@@ -{hunk.start},{left} +{hunk.new_start},{right} @@"
        parts.append(hunk.header if hunk.header is not None else "@@" if patch.is_envelope else numbers)
        for line in hunk.lines:
            parts.append(line.removesuffix("\0"))
            if line.endswith("\0") and not patch.is_envelope:
                parts.append(MARKER)
    return parts


# ------------------------------------------------------------ faults


def none(_: Patch) -> None:
    """Nothing is wrong with it."""


def wrong_counts(patch: Patch) -> None:
    for hunk in patch.lines():
        left, right = (max(0, count + patch.chance.choice((-2, -1, 0, 1, 2, 5))) for count in hunk.counts())
        hunk.header = f"@@ -{hunk.start},{left} +{hunk.new_start},{right} @@"


def wrong_numbers(patch: Patch) -> None:
    for hunk in patch.lines():
        if hunk.start:
            hunk.start = hunk.new_start = max(1, hunk.start + patch.chance.randint(-40, 40))


def bare(patch: Patch) -> None:
    for hunk in patch.lines():
        hunk.header = patch.chance.choice(("@@", "@@ @@", "@@ ... @@"))


def anchored(patch: Patch) -> None:
    for hunk in patch.lines():
        hunk.header = f"@@ {hunk.anchor}".rstrip()


def told_otherwise(patch: Patch, otherwise: Callable[[str], str]) -> None:
    """Let some lines of the files that no hunk changes be others than the patch says."""
    for number, change in enumerate(patch.changes):
        if not change.old or not change.new:
            continue
        changed = {
            line[1:].rstrip("\0") for hunk in patch.hunks[number] for line in hunk.lines if line[0] != " "
        }
        lines = [line for line in change.before.split("\n") if line and line not in changed]
        some = {line for line in lines if patch.chance.random() < 0.5}
        change.disk, change.result = (
            "\n".join(otherwise(line) if line in some else line for line in text.split("\n"))
            for text in (change.before, change.after)
        )


def trailing_lost(patch: Patch) -> None:
    told_otherwise(patch, lambda line: line + "  ")


def trailing_added(patch: Patch) -> None:
    for hunk in patch.lines():
        hunk.lines = [
            line + "  " if line[0] != "+" and line[-1] not in "\0\1" and patch.chance.random() < 0.3 else line
            for line in hunk.lines
        ]


def blanks_stripped(patch: Patch) -> None:
    for hunk in patch.lines():
        hunk.lines = [line if line != " " else " \1" for line in hunk.lines]
    patch.texts.insert(0, lambda text: text.replace(" \1\n", "\n"))


def less_context(patch: Patch) -> None:
    patch.context = patch.chance.choice((0, 1, 2))


def more_context(patch: Patch) -> None:
    patch.context = patch.chance.choice((6, 12, 25))


def context_line_missing(patch: Patch) -> None:
    for hunk in patch.lines():
        places = [at for at, line in enumerate(hunk.lines) if line[0] == " "]
        if places and patch.chance.random() < 0.7:
            del hunk.lines[patch.chance.choice(places)]


def context_line_invented(patch: Patch) -> None:
    for hunk in patch.lines():
        hunk.lines.insert(patch.chance.choice((0, len(hunk.lines))), " a line that nobody ever wrote")


def removed_line_misremembered(patch: Patch) -> None:
    for hunk in patch.lines():
        places = [at for at, line in enumerate(hunk.lines) if line[0] == "-" and line.strip("-\0 ")]
        if places:
            at = patch.chance.choice(places)
            hunk.lines[at] = hunk.lines[at].replace("\0", "") + " # and more"


def crlf_files(patch: Patch) -> None:
    for change in patch.changes:
        if change.old:
            change.disk, change.result = (
                text.replace("\n", "\r\n") for text in (change.before, change.after)
            )
            change.result = change.result if change.new else None


def crlf_patch(patch: Patch) -> None:
    patch.texts.append(lambda text: text.replace("\n", "\r\n"))


def no_prefixes(patch: Patch) -> None:
    patch.prefixes = ("", "")


def same_prefixes(patch: Patch) -> None:
    patch.prefixes = ("a/", "a/")


def no_final_newline(patch: Patch) -> None:
    for change in patch.changes:
        if change.old and change.new and change.before.rstrip("\n") != change.after.rstrip("\n"):
            change.before, change.after = change.before.rstrip("\n"), change.after.rstrip("\n")


def final_newline_made(patch: Patch) -> None:
    for change in patch.changes:
        if change.old and change.new:
            change.before = change.before.rstrip("\n")
            # `*** Begin Patch` has no word for it.
            change.result = change.after.rstrip("\n") if patch.is_envelope else None


def marker_lost(patch: Patch) -> None:
    no_final_newline(patch)
    patch.texts.append(lambda text: text.replace(MARKER + "\n", ""))


def fences(patch: Patch) -> None:
    words = patch.chance.choice(("Here is the patch:\n\n```diff\n", "```\n", "apply_patch <<'EOF'\n"))
    end = "EOF\n" if "EOF" in words else "```\n\nIt changes what was asked for.\n"
    patch.texts.append(lambda text: words + text + end)


def tabs_in_files(patch: Patch) -> None:
    def tabbed(text: str) -> str:
        return re.sub(r"^(    )+", lambda found: "\t" * (len(found[0]) // 4), text, flags=re.MULTILINE)

    for number, change in enumerate(patch.changes):
        # A hunk without an indented line that stays says nothing of how deep one is.
        if (
            change.old
            and change.new
            and all(any(re.match(r"[ -]    ", line) for line in hunk.lines) for hunk in patch.hunks[number])
        ):
            change.disk, change.result = tabbed(change.before), tabbed(change.after)


def dedented(patch: Patch) -> None:
    for hunk in patch.lines():
        indents = [len(line) - 1 - len(line[1:].lstrip()) for line in hunk.lines if line[1:].strip("\0 ")]
        less = min(indents, default=0)
        hunk.lines = [line[0] + line[1 + less :] if line[1:].strip("\0 ") else line for line in hunk.lines]


def context_line_indented(patch: Patch) -> None:
    for hunk in patch.lines():
        places = [at for at, line in enumerate(hunk.lines) if line[0] == " " and line.strip()]
        if sum(line[0] != "+" and bool(line[1:].strip()) for line in hunk.lines) > 2 and places:
            at = patch.chance.choice(places)
            hunk.lines[at] = "   " + hunk.lines[at]


def context_mark_lost(patch: Patch) -> None:
    for hunk in patch.lines():
        places = [at for at, line in enumerate(hunk.lines) if re.match(r" \w", line)]
        if places:
            at = patch.chance.choice(places)
            hunk.lines[at] = hunk.lines[at][1:]
            hunk.header = "@@"


def applied(patch: Patch) -> None:
    for change in patch.changes:
        if change.old and change.new == change.old:
            change.disk = change.after


def out_of_order(patch: Patch) -> None:
    for hunks in patch.hunks.values():
        hunks.reverse()


def doubled(patch: Patch) -> None:
    for change in patch.changes:
        if change.old and change.new and change.before.endswith("\n") and change.after.endswith("\n"):
            change.disk, change.result = change.before * 2, change.after + change.before


def doubled_bare(patch: Patch) -> None:
    doubled(patch)
    bare(patch)


def doubled_anchored(patch: Patch) -> None:
    doubled(patch)
    anchored(patch)


def drifted(patch: Patch) -> None:
    top = "".join(f"a new line {number}\n" for number in range(patch.chance.randint(1, 60)))
    for change in patch.changes:
        if change.old and change.new:
            change.disk, change.result = top + change.before, top + change.after


def two_parts(patch: Patch) -> None:
    patch.is_split = True


def overlapping_context(patch: Patch) -> None:
    for number, change in enumerate(patch.changes):
        before = cut(change.before)
        for hunk in patch.hunks[number]:
            end = hunk.start - 1 + hunk.counts()[0]
            more = patch.chance.randint(1, 12)
            hunk.lines += [f" {line}" for line in before[end : end + more]]


def unlike_punctuation(patch: Patch) -> None:
    told_otherwise(patch, lambda line: line.replace("'", "’").replace(" - ", " – "))


Fault = Callable[[Patch], None]
BEFORE: tuple[Fault, ...] = (less_context, more_context, no_final_newline, final_newline_made, marker_lost)
"""Those that are there before hunks are made."""
HARMLESS: tuple[Fault, ...] = (
    none, wrong_counts, wrong_numbers, bare, anchored, trailing_lost, trailing_added, blanks_stripped, more_context,
    crlf_files, crlf_patch, no_prefixes, same_prefixes, no_final_newline, final_newline_made, marker_lost, fences,
    tabs_in_files, dedented, context_line_indented, context_mark_lost, out_of_order, doubled, drifted, two_parts,
    overlapping_context, unlike_punctuation,
)  # fmt: skip
"""A person would apply it all the same: right, or refused for its place is not the only one."""
HARMFUL: tuple[Fault, ...] = (
    less_context, context_line_missing, context_line_invented, removed_line_misremembered, applied, doubled_bare,
    doubled_anchored,
)  # fmt: skip
FAULTS = HARMLESS + HARMFUL
SECOND: tuple[Fault, ...] = (
    wrong_counts,
    bare,
    trailing_added,
    blanks_stripped,
    no_prefixes,
    out_of_order,
    two_parts,
    fences,
)
"""Every other patch has one of these besides."""


# ------------------------------------------------------------ what became of it


@dataclass
class Outcome:
    """`kind`: right, refused, or wrong."""

    seed: int
    fault: str
    is_envelope: bool
    kind: str
    told: str
    patch: str


def made(seed: int, changes_of: Callable[[random.Random], list[Change]]) -> tuple[str, Patch]:
    """The patch of a seed, and the name of its fault."""
    chance = random.Random(seed)
    fault = FAULTS[seed // 2 % len(FAULTS)]
    patch = Patch(changes_of(chance), seed % 2 == 1, chance)
    if fault in BEFORE:
        fault(patch)
    patch.hunks = {number: hunks_of(change, patch.context) for number, change in enumerate(patch.changes)}
    if fault not in BEFORE:
        fault(patch)
    if chance.random() < 0.5:
        chance.choice(SECOND)(patch)
    return fault.__name__, patch


def is_harmless(fault: str) -> bool:
    return fault in {one.__name__ for one in HARMLESS}


async def judged(place: Path, seed: int, changes_of: Callable[[random.Random], list[Change]]) -> Outcome:
    """Apply the patch of a seed on a branch of a new directory, and look."""
    fault, patch = made(seed, changes_of)
    text = written(patch)
    place.mkdir()
    desk = Desk(place)
    try:
        for change in patch.changes:
            if change.old:
                desk.put(change.old, change.stands)
        result = await desk.use("apply_patch", patch=text)
        kind, told = "right", result.text
        if result.is_error:
            kind = "refused"
            if desk.branch.changes().record() != {"written": [], "deleted": []}:
                kind, told = "wrong", f"refused, and left half: {told}"
            elif not told.startswith(
                (
                    "the patch",
                    *(str(c.new or c.old) for c in patch.changes),
                    *(str(c.old) for c in patch.changes),
                )
            ):
                kind, told = "wrong", f"refused without naming a file: {told}"
        else:
            left = [name for change in patch.changes if (name := await _unlike(desk, change))]
            if left:
                kind, told = "wrong", f"not as the commit: {', '.join(left)}"
            elif desk.branch.changes().record() == {"written": [], "deleted": []}:
                kind, told = "wrong", "a tick, and nothing is changed"
    finally:
        desk.workspace.close()
    return Outcome(seed, fault, patch.is_envelope, kind, told, text)


async def _unlike(desk: Desk, change: Change) -> str | None:
    names = {name for name in (change.old, change.new) if name}
    for name in names:
        wanted = change.wanted.encode() if name == change.new else None
        try:
            found = await desk.branch.read_bytes(name)
        except NotFound:
            found = None
        if found != wanted:
            return name
    return None


def judge(
    place: Path, seeds: Sequence[int], changes_of: Callable[[random.Random], list[Change]]
) -> list[Outcome]:
    """Every seed's outcome."""

    async def every() -> list[Outcome]:
        side_by_side = asyncio.Semaphore(4)

        async def one(seed: int) -> Outcome:
            async with side_by_side:
                return await judged(place / str(seed), seed, changes_of)

        return await asyncio.gather(*map(one, seeds))

    return asyncio.run(every())
