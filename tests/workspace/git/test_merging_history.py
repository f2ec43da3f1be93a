"""GI-1, GI-4, GI-8: what subagents committed survives their merges, and a git directory is never in conflict."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.git_project import GitProject

from bowerbird.workspace import Branch


@pytest.fixture
def project(tmp_path: Path) -> Iterator[GitProject]:
    made = GitProject(tmp_path)
    yield made
    made.close()


def shown_by(project: GitProject, branch: Branch, *git: list[str]) -> list[str]:
    return project.agent(branch, *git)


def test_two_children_that_both_commit_are_merged_and_neither_commit_is_lost(project: GitProject) -> None:
    """The second had five conflicts in `.git`, and its commit could be reached no more."""
    parent = project.workspace.branch()
    children = [parent.fork(), parent.fork()]
    for number, child in enumerate(children):
        project.agent(child, (f"{'ab'[number]}.txt", f"{number}\n"), ["commit", "-qam", f"of child {number}"])
    results = [parent.merge(child) for child in children]
    assert [result.conflicts for result in results] == [(), ()] and results[1].skipped == ()
    subject, status, fsck, other = shown_by(
        project, parent, ["log", "-1", "--format=%s"], ["status", "--porcelain"],
        ["fsck", "--full", "--strict"], ["log", "--format=%s", "-1", f"refs/subagents/{children[1].id}/heads/main"],
    )  # fmt: skip
    assert subject == "of child 0" and other == "of child 1" and fsck == ""
    assert status == "M b.txt"  # the file arrived as any other change
    parent.land(session="s_1")
    assert (project.root / "a.txt").read_text() == "0\n" and (project.root / "b.txt").read_text() == "1\n"
    kept = project.git("for-each-ref", "--format=%(refname) %(subject)", "refs/bowerbird").splitlines()
    assert {row.partition(" ")[2] for row in kept} == {"of child 0", "of child 1"}
    assert project.git("fsck", "--full", "--strict") == ""
    for child in children:  # again, after more work: their commits follow
        project.agent(child, ("c.txt", child.id), ["add", "."], ["commit", "-qm", f"more of {child.id}"])
    assert parent.merge(children[1], ["c.txt"]).conflicts == ()
    assert parent.merge(children[1]).conflicts == ()
    (later,) = shown_by(
        project, parent, ["log", "--format=%s", "-1", f"refs/subagents/{children[1].id}/heads/main"]
    )
    assert later == f"more of {children[1].id}"


def test_a_status_of_the_parent_is_no_conflict_with_a_childs_commit(project: GitProject) -> None:
    """The index is derived: whoever looks last has another one."""
    parent = project.workspace.branch()
    child = parent.fork()
    project.agent(child, ("a.txt", "A\n"), ["commit", "-qam", "of the child"])
    project.agent(parent, ("b.txt", "B\n"), ["add", "b.txt"])
    assert parent.merge(child).conflicts == ()
    subject, fsck = shown_by(project, parent, ["log", "-1", "--format=%s"], ["fsck", "--full", "--strict"])
    assert subject == "of the child" and "error" not in fsck
    assert project.agent(parent, ["status", "--porcelain"])[0].split() == ["M", "b.txt"]


def test_a_file_in_conflict_is_told_without_a_word_about_git(project: GitProject) -> None:
    """GI-8."""
    parent = project.workspace.branch()
    children = [parent.fork(), parent.fork()]
    for number, child in enumerate(children):
        project.agent(child, ("a.txt", f"{number}\n"), ["commit", "-qam", f"of child {number}"])
    assert parent.merge(children[0]).conflicts == ()
    result = parent.merge(children[1])
    assert result.conflicts == ("/a.txt",) == result.skipped and set(result.details) == {"/a.txt"}
    forced = parent.merge(children[1], force=True)
    assert forced.conflicts == ("/a.txt",)
    (subject,) = shown_by(project, parent, ["log", "-1", "--format=%s"])
    assert subject == "of child 0"


@pytest.mark.parametrize("packing", [["gc", "-q"], ["pack-refs", "--all"]], ids=["gc", "pack-refs"])
def test_what_a_child_packed_arrives_too(project: GitProject, packing: list[str]) -> None:
    """GI-4: after gc its refs are lines of one file, and its commit could be reached from nowhere."""
    parent = project.workspace.branch()
    children = [parent.fork(), parent.fork()]
    for number, child in enumerate(children):
        name = f"{'ab'[number]}.txt"
        project.agent(
            child, (name, f"{number}\n"), ["commit", "-qam", f"of child {number}"], ["tag", "t"], packing
        )
    assert [parent.merge(child).conflicts for child in children] == [(), ()]
    own, *others, fsck = shown_by(
        project, parent, ["log", "-1", "--format=%s"],
        *(["log", "-1", "--format=%s", f"refs/subagents/{children[1].id}/{ref}"] for ref in ("heads/main", "tags/t")),
        ["fsck", "--full", "--strict"],
    )  # fmt: skip
    assert own == "of child 0" and others == ["of child 1"] * 2 and fsck == ""


async def test_packed_names_that_are_no_refs_become_no_files(project: GitProject) -> None:
    """A child wrote its `packed-refs` by hand: names that leave the directory, or that stand in each other's way."""
    parent = project.workspace.branch()
    children = [parent.fork(), parent.fork()]
    head = project.git("rev-parse", "HEAD")
    names = (
        "refs/heads/../../../../up",
        "refs/heads/x",
        "refs/heads/x/y",
        "refs/heads/a//b",
        "refs/tags/.hidden",
    )
    for number, child in enumerate(children):
        await child.write_file(
            ".git/packed-refs", "".join(f"{head} {name}\n" for name in (f"refs/tags/t{number}", *names))
        )
    await children[1].write_file(".git/refs/heads/l", f"{head}\n")
    packed = await children[1].read_bytes(".git/packed-refs")
    await children[1].write_file(".git/packed-refs", packed + f"{head} refs/heads/l/under\n".encode())
    assert [parent.merge(child).conflicts for child in children] == [(), ()]
    found = [
        row["name"] for row in (await parent.ls(f".git/refs/subagents/{children[1].id}/heads"))["entries"]
    ]
    assert [name.rstrip("/") for name in found] == ["l", "x"]
    inner = (await parent.ls(f".git/refs/subagents/{children[1].id}/heads/x"))["entries"]
    assert [row["name"] for row in inner] == ["y"]
    assert [
        row["name"] for row in (await parent.ls(f".git/refs/subagents/{children[1].id}/tags"))["entries"]
    ] == ["t1"]
