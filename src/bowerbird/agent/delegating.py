"""Subagents of an `Agent` for programs (DE-20): what the tools do, with typed results (D-20).

Here: the methods, and when they are refused. Not here: what they do (`bowerbird.subagents`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from bowerbird.agent.delegates import Approver, Caller, LibraryDelegate
from bowerbird.agent.options import AgentOptions
from bowerbird.agent.subagent_results import Spawned, SubagentDiscard, SubagentMerge, Tournament
from bowerbird.core.errors import InvalidArgument
from bowerbird.core.forms import convert
from bowerbird.core.ids import new_call_id, new_id

if TYPE_CHECKING:
    from bowerbird.agent.handle import Handle
    from bowerbird.tools.together.delegation import Subagents
    from bowerbird.workspace import Branch


T = TypeVar("T")
Do = Callable[["Subagents"], Awaitable[dict[str, Any]]]


class Delegating:
    """The part of `Agent` that has subagents."""

    __slots__ = ()

    _options: AgentOptions
    _handle: "Handle"

    @property
    def subagents(self) -> "Mapping[str, Branch]":
        """The branches of the subagents that were not discarded, by handle; read them as you like."""
        held = self._handle
        return held.delegate.branches(held.branch().id) if held.delegate is not None else {}

    async def spawn_subagents(self, tasks: Sequence[Any], *, approver: Approver | None = None) -> Spawned:
        """Run subagents at the same time, each on a fork of this agent's branch.

        Args:
            tasks: texts, or `{"task": …, "agent_type"?: …, "model_tier"?: …}`.
            approver: answers their questions; None = what would ask is denied.

        Raises:
            InvalidArgument: `max_subagent_depth` is 0.

        Example:
            made = await agent.spawn_subagents(["Write tests for a.py", "Write tests for b.py"])
            await agent.merge_subagent(made.subagents[0].handle or "")
        """
        return await self._delegated(Spawned, lambda calls: calls.spawn(tasks), approver)

    async def merge_subagent(
        self, handle: str, paths: Sequence[str] | None = None, force: bool = False
    ) -> SubagentMerge:
        """Merge what a subagent changed into this agent's branch.

        Args:
            handle: of the subagent. paths: files or directories, None = all.
            force: take the subagent's version of what conflicts.
        """
        return await self._delegated(SubagentMerge, lambda calls: calls.merge(handle, paths, force))

    async def discard_subagent(self, handle: str) -> SubagentDiscard:
        """Drop a subagent and its fork."""
        return await self._delegated(SubagentDiscard, lambda calls: calls.discard(handle))

    async def run_tournament(
        self,
        task: str,
        *,
        attempts: int = 3,
        checks: Sequence[str] = (),
        models: Sequence[str] = (),
        merge: str = "none",
        approver: Approver | None = None,
    ) -> Tournament:
        """Let several subagents attempt one task; rank them by commands that check the result.

        Args:
            task: what each attempts. attempts: 2 to 8.
            checks: shell commands that exit with 0 on success; none = those of settings.
            models: used in turn; none = the agent's. merge: `none`, or `best` = merge a winner.
        """
        return await self._delegated(
            Tournament, lambda calls: calls.tournament(task, attempts, checks, models, merge), approver
        )

    async def _delegated(self, kind: type[T], do: Do, approver: Approver | None = None) -> T:
        if self._options.max_subagent_depth < 1:
            raise InvalidArgument("max_subagent_depth is 0: this agent has no subagents; use 1 or more")
        delegate = await self._delegate()
        if delegate is None:
            raise InvalidArgument("this agent runs without subagents; use bowerbird.Agent")
        caller = self._as_caller(approver)
        try:
            return convert(await do(delegate.calls(caller)), kind)
        finally:
            await delegate.ended(caller.turn)

    async def _delegate(self) -> LibraryDelegate | None:
        """Return what runs subagents, made at first use; None where depth or class give none."""
        held = self._handle
        if held.delegate is None and self._options.max_subagent_depth > 0:
            made = await self._new_delegate()
            # Another call may have been first meanwhile: numbers are counted in one place.
            held.delegate = held.delegate or made
        return held.delegate

    async def _new_delegate(self) -> LibraryDelegate | None:
        """Return what runs this agent's subagents; `bowerbird.Agent` binds it."""
        return None

    def _as_caller(self, approver: Approver | None) -> Caller:
        options, turn, call = self._options, new_id("t"), new_call_id()
        branch = self._handle.branch()
        return Caller(
            branch=branch.bound(turn=turn, call=call),
            session=branch.id,
            turn=turn,
            call=call,
            agent=options.name or "agent",
            mode=options.mode,
            policy=options.effective_policy,
            limits=options.effective_limits,
            approver=approver,
        )
