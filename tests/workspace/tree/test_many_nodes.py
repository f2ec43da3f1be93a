"""Values of which a command may make a hundred thousand stop nothing else (findings, reliability 12)."""

import gc

from bowerbird.workspace.tree.fork_point import Base
from bowerbird.workspace.tree.nodes import ROOT_ENTRY, Entry, Node

DEEP = 200_000


def test_the_garbage_collector_does_not_look_through_what_layers_hold():
    """Reliability 12: after `touch` of 100,000 files it stopped the event loop for a quarter of a second."""
    entry = Entry("file", 0o644, 1, 0, 0)
    node = Node(entry, cut=True)
    found = (entry, node, Base(entry), {"name": node}, Node(ROOT_ENTRY, cut=False, children={"name": node}))
    assert [gc.is_tracked(value) for value in found] == [False] * len(found)


def test_trees_deeper_than_any_stack_can_be_dropped():
    node = Node(None, cut=True)
    for _ in range(DEEP):
        node = Node(ROOT_ENTRY, cut=False, children={"a": node})
    del node
