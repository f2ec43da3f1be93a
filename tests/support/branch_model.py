"""A pure-Python model of branches, merges, landings and undos: dicts and a simple line merge.

Here: what the workspace chapter says, written a second time, without files and without any
code of the package. Not here: driving the real thing beside it (`branch_histories.py`).

A version is None (absent), ("link", target) or ("file", bytes, mode). Lines are unique within
a file, so any correct diff finds the same unchanged lines and the line merge below needs
no diff algorithm.
"""

from dataclasses import dataclass, field

Version = tuple[str, bytes, int] | None
Tree = dict[str, Version]


def lines_of(data: bytes) -> list[bytes]:
    return data.split(b"\n")  # the last piece is what follows the last LF


def merge_text(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Three-way merge by the lines all three share; None when both changed between two of them."""
    sides = [lines_of(side) for side in (base, ours, theirs)]
    # The piece after the last LF is no line of its own: glue it to the end of the file.
    tails = [side.pop() for side in sides]
    shared = [line for line in sides[0] if line in set(sides[1]) and line in set(sides[2])]
    out: list[bytes] = []
    at = [0, 0, 0]
    for anchor in [*shared, None]:
        chunks: list[list[bytes]] = []
        for index, side in enumerate(sides):
            end = side.index(anchor, at[index]) if anchor is not None else len(side)
            chunk = [line + b"\n" for line in side[at[index] : end]]
            if anchor is None and tails[index]:
                chunk.append(tails[index])
            chunks.append(chunk)
            at[index] = end + 1
        old, mine, other = chunks
        if other in (old, mine):
            out += mine
        elif mine == old:
            out += other
        else:
            return None
        if anchor is not None:
            out.append(anchor + b"\n")
    return b"".join(out)


def decide(base: Version, ours: Version, theirs: Version) -> tuple[str, Version]:
    """("none" | "take" | "conflict", result); of a conflict the result is theirs."""
    if theirs in (ours, base):
        return "none", ours
    if ours == base:
        return "take", theirs
    if ours is None or theirs is None or ours[0] != theirs[0] or ours[0] == "link":
        return "conflict", theirs
    old = base if base is not None and base[0] == "file" else None
    if ours[2] == theirs[2] or (old is not None and theirs[2] == old[2]):
        mode = ours[2]
    elif old is not None and ours[2] == old[2]:
        mode = theirs[2]
    else:
        return "conflict", theirs
    if ours[1] == theirs[1] or (old is not None and theirs[1] == old[1]):
        data: bytes | None = ours[1]
    elif old is not None and ours[1] == old[1]:
        data = theirs[1]
    else:
        data = merge_text(old[1], ours[1], theirs[1]) if old is not None else None
    if data is None:
        return "conflict", theirs
    result = ("file", data, mode)
    return ("none", ours) if result == ours else ("take", result)


@dataclass(eq=False)
class ModelBranch:
    """One branch: what it stands on, what it overrides, and from which bases."""

    ws: Tree
    parent: "ModelBranch | None" = None
    lower: Tree = field(default_factory=dict[str, Version])
    own: Tree = field(default_factory=dict[str, Version])
    base: Tree = field(default_factory=dict[str, Version])
    landed: dict[str, object] = field(default_factory=dict[str, object])
    # By the child itself: another one may get the id of a child that is gone.
    merged: dict["ModelBranch", Tree] = field(default_factory=dict["ModelBranch", Tree])
    sealed: set[str] = field(default_factory=set[str])

    def seal(self) -> None:
        """The open layer was frozen: what it holds leaves a trace when it is deleted."""
        self.sealed = set(self.own)

    def below(self, path: str) -> Version:
        return self.lower[path] if path in self.lower else self.ws.get(path)

    def view(self, path: str) -> Version:
        return self.own[path] if path in self.own else self.below(path)

    def put(self, path: str, version: Version) -> None:
        if path not in self.own:
            if version is None and self.below(path) is None:
                return
            self.base[path] = self.below(path)
        self.own[path] = version
        if (
            version is None
            and path not in self.sealed
            and self.base[path] is None
            and self.below(path) is None
        ):
            # Made and deleted again in the open layer: the branch never knew the path.
            del self.own[path], self.base[path]

    def changes(self) -> list[str]:
        return sorted(path for path, version in self.own.items() if version != self.base[path])

    def fork(self) -> "ModelBranch":
        self.seal()
        return ModelBranch(self.ws, self, {**self.lower, **self.own})

    def ancestors(self) -> list["ModelBranch"]:
        return [] if self.parent is None else [self.parent, *self.parent.ancestors()]

    # ------------------------------------------------------------ merge

    def merge(self, child: "ModelBranch", paths: list[str] | None, force: bool) -> dict[str, list[str]]:
        child.seal()
        self.seal()
        memory = self.merged.setdefault(child, {})
        result: dict[str, list[str]] = {key: [] for key in ("written", "deleted", "conflicts", "skipped")}
        moved = [path for path, version in memory.items() if child.view(path) != version]
        pending = [path for path in child.changes() if path not in memory]
        for path in sorted({*moved, *pending}):
            if paths is not None and path not in paths:
                continue
            base = memory[path] if path in memory else child.base[path]
            theirs = child.view(path)
            action, version = decide(base, self.view(path), theirs)
            if action == "conflict":
                result["conflicts"].append(path)
                if not force:
                    result["skipped"].append(path)
                    continue
            if action != "none":
                self.put(path, version)
                self.sealed.add(path)
                result["deleted" if version is None else "written"].append(path)
            memory[path] = theirs
        return result

    # ------------------------------------------------------------ landing

    def land(self, paths: list[str] | None, force: bool, partial: bool) -> "ModelLanding | list[str]":
        """Return the landing, or the refused paths when nothing landed."""
        self.seal()
        entries: list[ModelEntry] = []
        refused: list[str] = []
        for path in self.changes():
            if paths is not None and path not in paths:
                continue
            current, new = self.ws.get(path), self.own[path]
            action, version = decide(self.base[path], current, new)
            if action == "conflict" and not force:
                refused.append(path)
                continue
            after = current if action == "none" else version
            entries.append(ModelEntry(path, current, after, self.base[path], new))
        missing = [path for path in paths or () if path not in self.changes()]
        if (refused or missing) and not partial:
            return sorted([*refused, *missing])
        for entry in entries:
            self._write(entry)
            joined = entry.after != entry.new
            self.landed[entry.path] = object() if joined else entry.after
        self.follow()
        return ModelLanding(self, entries, sorted([*refused, *missing]))

    def _write(self, entry: "ModelEntry") -> None:
        self.ws[entry.path] = entry.after
        self.base[entry.path] = entry.new

    def follow(self) -> None:
        for path, seen in self.landed.items():
            current = self.ws.get(path)
            if (
                seen is not current
                and seen != current
                and path in self.own
                and self.own[path] == self.base[path]
            ):
                self.own[path] = self.base[path] = current
                self.landed[path] = current
                self.seal()

    # ------------------------------------------------------------ snapshots

    def restore(self, snapshot: Tree) -> None:
        self.seal()
        for path in list(self.own):
            if path in snapshot:
                self.own[path] = snapshot[path]
            else:
                self.own[path] = self.base[path] = self.below(path)


@dataclass
class ModelEntry:
    path: str
    before: Version
    after: Version
    base: Version
    new: Version


@dataclass(eq=False)
class ModelLanding:
    branch: ModelBranch
    entries: list[ModelEntry]
    refused: list[str]
    undoes: "ModelLanding | None" = None

    def undo(self, force: bool) -> "ModelLanding | list[str]":
        """Return the undo, or the paths that later edits refuse."""
        branch = self.branch
        entries: list[ModelEntry] = []
        refused: list[str] = []
        for entry in self.entries:
            if entry.before == entry.after:
                continue
            current = branch.ws.get(entry.path)
            action, version = decide(entry.after, current, entry.before)
            if action == "none":
                continue
            if action == "conflict" and not force:
                refused.append(entry.path)
                continue
            base = new = None
            if entry.path in branch.own:
                base = branch.base[entry.path]
                how, earlier = decide(entry.new, base, entry.base)
                new = base if how == "none" else earlier if how == "take" else version
            entries.append(ModelEntry(entry.path, current, version, base, new))
        if refused:
            return sorted(refused)
        for entry in entries:
            branch.ws[entry.path] = entry.after
            if entry.path in branch.own:
                branch.base[entry.path] = entry.new
                if branch.own[entry.path] != entry.new:
                    branch.landed.pop(entry.path, None)
        return ModelLanding(branch, entries, [], self)
