"""Values of which a command may make a hundred thousand stop nothing else (findings, reliability 12)."""

import gc
from pathlib import Path

import pytest
from support.branches import branch_of

from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.fork_point import Base
from bowerbird.workspace.tree.nodes import ROOT_ENTRY, Entry, Node

DEEP = 200_000


def test_the_garbage_collector_does_not_look_through_what_layers_hold():
    """Reliability 12: after `touch` of 100,000 files it stopped the event loop for a quarter of a second."""
    entry = Entry("file", 0o644, 1, 0, 0)
    node = Node(entry, cut=True)
    found = (entry, node, Base(entry), {"name": node}, Node(ROOT_ENTRY, cut=False, children={"name": node}))
    assert [gc.is_tracked(value) for value in found] == [False] * len(found)


async def test_files_that_were_only_touched_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reliability 12: each turn after `touch` of 100,000 files compared all of them again, twice."""
    with branch_of(tmp_path, {f"d/{number}": "same\n" for number in range(40)} | {"e": "old\n"}) as branch:
        for number in range(40):
            await branch.write_file(f"d/{number}", "same\n")
        await branch.write_file("e", "new\n")
        branch.mark()
        assert branch.changes().written == ("/e",)
        read: list[Content] = []
        real = Content.read
        monkeypatch.setattr(Content, "read", lambda content: (read.append(content), real(content))[1])
        assert branch.changes().written == ("/e",)
        assert len(read) <= 2, "only what is a change"
        await branch.write_file("d/7", "else\n")
        assert branch.changes().written == ("/d/7", "/e")
        branch.mark()
        assert branch.changes().written == ("/d/7", "/e")


def test_trees_deeper_than_any_stack_can_be_dropped():
    node = Node(None, cut=True)
    for _ in range(DEEP):
        node = Node(ROOT_ENTRY, cut=False, children={"a": node})
    del node
