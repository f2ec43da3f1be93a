"""Subagents of one session: what its runs are offered, and whose they are (DE-2, DE-15).

Here: depth, and a session's place in its tree. Not here: what a call does (`calls`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bowerbird.agent.delegates import Caller, Delegate
from bowerbird.subagents.records import Child, MemoryRecords
from bowerbird.subagents.roles import guidance
from bowerbird.subagents.runner import ChildRunner
from bowerbird.subagents.session_tree import Rules, Tree
from bowerbird.tools.together.subagents import SUBAGENT_TOOLS

if TYPE_CHECKING:
    from bowerbird.subagents.calls import Above, Calls
    from bowerbird.workspace import Branch


class Delegation:
    """Runs subagents for a session; implements `agent.delegates.Delegate`.

    Args:
        tree: shared with everything above and below. above: None for a session that is nobody's child.
    """

    def __init__(self, tree: Tree, above: "Above | None" = None) -> None:
        self.tree = tree
        self._above = above

    @property
    def depth(self) -> int:
        """How deep the session is: 0 for one that is nobody's child."""
        return self._above.depth if self._above is not None else 0

    @property
    def offers(self) -> Sequence[str]:
        """See `Delegate`."""
        return SUBAGENT_TOOLS if self.depth < self.tree.rules.max_depth else ()

    @property
    def guidance(self) -> str:
        """See `Delegate`."""
        return guidance(self.tree.types)

    def calls(self, caller: Caller) -> "Calls":
        """See `Delegate`."""
        from bowerbird.subagents.calls import Above, Calls

        above = self._above
        if above is None:
            purse = self.tree.group(caller.session).purse(caller)
            above = Above(root=caller.session, turn=caller.turn, purse=purse, depth=0)
        return Calls(self.tree, caller, above, self.below)

    def below(self, child: Child, above: "Above") -> Delegate | None:
        """Return what runs a subagent's own subagents, None where depth ends."""
        from bowerbird.subagents.calls import Above

        if child.depth >= self.tree.rules.max_depth:
            return None
        here = Above(root=above.root, turn=above.turn, purse=above.purse, depth=child.depth)
        return Delegation(self.tree, here)


class LibraryDelegation(Delegation):
    """Subagents of an `Agent` in a program; implements `agent.delegates.LibraryDelegate`.

    Args:
        runner: runs them. rules: of settings, with the agent's own depth.
        forks: open branches of subagents, by id.
    """

    def __init__(self, runner: ChildRunner, rules: Rules, forks: "Mapping[str, Branch]") -> None:
        self._records = MemoryRecords()
        super().__init__(Tree(runner, self._records, rules))
        self._forks = forks

    async def ended(self, turn: str) -> None:
        """See `LibraryDelegate`."""
        await self.tree.quiet(turn)

    def branches(self, session: str) -> "Mapping[str, Branch]":
        """See `LibraryDelegate`."""
        return {c.handle: self._forks[c.fork] for c in self._records.now(session) if c.state != "discarded"}
