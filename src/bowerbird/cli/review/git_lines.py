"""What happened in git, and what a landing did with it, as lines for people (GI-2, GI-3).

Here: lines. Not here: files (`drawn.py`), where the facts come from (`bowerbird.workspace.git`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bowerbird.cli.terminal.text import harmless, harmless_path, plural

MOST_SUBJECTS = 20
Row = Mapping[str, Any]


def git_lines(repositories: Sequence[Row]) -> list[str]:
    """Return what happened in git; subjects of commits are indented below their ref.

    >>> row = {"path": "/.git", "is_new": True, "is_removed": False}
    >>> git_lines([row])
    ['git: a new repository, lands with --accept .git']
    """
    return [line for row in repositories for line in _repository(row)]


def _repository(row: Row) -> Iterator[str]:
    path = harmless_path(str(row["path"]).lstrip("/"))
    above = path.removesuffix(".git").rstrip("/")
    name = f"git in {above}" if above else "git"
    if row["is_new"]:
        yield f"{name}: a new repository, lands with --accept {path}"
        return
    if row["is_removed"]:
        yield f"{name}: removed on the branch; yours stays"
        return
    for ref in row["refs"]:
        yield f"{name}: {_ref(ref)}"
        yield from _subjects(ref)
    if row["head"]:
        before, after = (_short(each or "nothing") for each in row["head"])
        yield f"{name}: HEAD went from {before} to {after}"
    for worktree in row["worktrees"]:
        yield f"{name}: working tree {harmless(worktree)}"
    for setting in row["settings"]:
        reasons = harmless("; ".join(setting["reasons"]))
        where = harmless_path(setting["path"].lstrip("/"))
        yield f"{name}: {where} {setting['change']}, lands with --accept: {reasons}"
    for trouble in row["troubles"]:
        yield f"{name}: {harmless(trouble)}"


def _ref(ref: Row) -> str:
    said = [plural(ref["commits"], "commit")] if ref["commits"] else []
    said += [ref["change"]] if ref["change"] != "moved" or not said else []
    return f"{_short(ref['ref'])}: {', '.join([*said, *(['landed'] if ref['landed'] else [])])}"


def _subjects(ref: Row) -> Iterator[str]:
    shown = ref["subjects"][:MOST_SUBJECTS]
    for each in shown:
        yield f"  {harmless(each['id'])} {harmless(each['subject'])}"
    if shown and ref["commits"] > len(shown):
        yield f"  … {ref['commits'] - len(shown)} more"


def history_lines(repositories: Sequence[Row], landed: str = "") -> list[str]:
    """Return what a landing did with commits, and how what stands beside the user's own is brought in.

    Args:
        landed: where files landed with them, what commands begin with: git merges into no changed file.
    """
    lines: list[str] = []
    for row in repositories:
        place = harmless_path(str(row.get("repository") or "").strip("/"))
        where = f" in {place.removesuffix('/.git')}" if place not in ("", ".git") else ""
        for ref in row["refs"]:
            if ref["state"] == "moved":
                lines.append(f"{_short(ref['ref'])}{where} is at {str(ref['id'] or 'nothing')[:12]} now")
                continue
            said = f": {harmless(ref['said'])}" if ref["said"] else ""
            kept = harmless(ref["kept_as"] or "")
            if ref["ref"].startswith("refs/heads/") or not kept:
                came = f"; what came is {kept}" if kept else ""
                lines.append(f"your {_short(ref['ref'])}{where} stays{said}{came}")
            else:  # a stash, a tag: there is none of the user's that could stay
                lines.append(f"{_short(ref['ref'])}{where} came as {kept}{said}")
            lines += [f"  {harmless(command)}" for command in ref["commands"]]
            if landed and ref["ref"].startswith("refs/heads/") and ref["commands"]:
                lines += _first(ref, landed)
        lines += [f"commits did not land: {harmless(trouble)}" for trouble in row["troubles"]]
        lines += [harmless(note) for note in row.get("notes", ())]
        lines += _commit(row.get("commit"))
    return lines


def _first(ref: Row, landed: str) -> list[str]:
    """Return what to do before git's own commands work: the files that landed are changes in its eyes."""
    if ref["state"] == "arrived":
        follow = f"{landed}land --commits fast-forward moves your branch, if it is where the agent began; "
    else:
        follow = ""
    return [f"  {follow}git takes the commands above once the landed files are committed or taken back"]


def commit_of(landing: Row) -> Row | None:
    """Return the commit that a landing made, None where it made none."""
    made = (row.get("commit") for row in landing.get("history") or ())
    return next((commit for commit in made if commit and commit["id"]), None)


def is_uncommitted(landing: Row) -> bool:
    """Whether a commit was asked for that could not be made."""
    return any(row.get("commit") and not row["commit"]["id"] for row in landing.get("history") or ())


def _commit(commit: Row | None) -> list[str]:
    if not commit:
        return []
    said = f"nothing was committed: {harmless(commit['said'])}"
    if commit["id"]:
        said = f"committed {commit['id'][:12]} on {harmless(commit['branch'])}: {harmless(commit['subject'])}"
    return [said, *(harmless(note) for note in commit["notes"])]


def _short(ref: str) -> str:
    return harmless(ref.removeprefix("refs/heads/").removeprefix("refs/"))
