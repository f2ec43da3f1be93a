"""Several attempts at one task, judged by commands (DE-21 … DE-26).

Here: what is asked for, room for it, attempts and their checks, the result. Not here: the order
(`ranking`), running a subagent or a command (`runner`).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.core.errors import SandboxUnavailable, WorkspaceError
from bowerbird.core.threads import to_thread
from bowerbird.core.usage import Usage
from bowerbird.models.budget import BudgetRefusal
from bowerbird.subagents.checks import Check, against, touches_checks
from bowerbird.subagents.diff import counts
from bowerbird.subagents.entries import Wanted
from bowerbird.subagents.ranking import Attempt, ranked, row, winner
from bowerbird.subagents.records import SELF, Child, Contest
from bowerbird.subagents.runner import RunCheck
from bowerbird.subagents.session_tree import Running

if TYPE_CHECKING:
    from bowerbird.subagents.calls import Calls

LEAST, MOST, USUAL = 2, 8, 3
# What an attempt is taken to need when room for it is reserved; its calls then reserve exactly.
ESTIMATE = Usage(input_tokens=16_000)
ESTIMATED_OUTPUT = 4_000


class Wish(msgspec.Struct, frozen=True):
    """A tournament as asked for, checked.

    Attributes:
        models: of Bowerbird's own attempts, used in turn.
        agents: who attempts, used in turn: names of other vendors' agents, and `self`.
    """

    task: str
    attempts: int
    checks: tuple[str, ...]
    models: tuple[str, ...]
    merge: str
    agents: tuple[str, ...] = ()

    def problem(self) -> str | None:
        """Return what is wrong with it, None when nothing is."""
        if not self.task.strip():
            return "the task is empty; say what to do"
        if not LEAST <= self.attempts <= MOST:
            return f"attempts is {self.attempts}; use {LEAST} to {MOST}"
        if len(self.agents) > self.attempts:
            return f"{len(self.agents)} agents for {self.attempts} attempts; each agent needs one"
        if self.merge not in ("none", "best"):
            return f"merge is {self.merge!r}; use none or best"
        if not self.checks or not all(check.strip() for check in self.checks):
            return "no checks: name shell commands that tell success, or configure delegation.checks"
        return None

    @property
    def contest(self) -> Contest:
        """What the records of its attempts keep of it, for a tournament that goes on after a restart."""
        return Contest(
            task=self.task, attempts=self.attempts, checks=self.checks, models=self.models, merge=self.merge,
            agents=self.agents,
        )  # fmt: skip

    def wanted(self, count: int) -> list[Wanted]:
        """Return the attempts; each takes the next agent, each of Bowerbird's own the next model.

        >>> [one.provider for one in Wish("x", 3, ("true",), (), "none", ("self", "codex_cli")).wanted(3)]
        ['', 'codex_cli', '']
        """
        agents, models = cycle(self.agents or (SELF,)), cycle(self.models or ("",))
        names = islice(agents, count)
        return [
            Wanted(self.task, model=next(models)) if name == SELF else Wanted(self.task, provider=name)
            for name in names
        ]


def wish(
    task: str,
    attempts: int | None,
    checks: Sequence[str],
    models: Sequence[str],
    merge: str,
    agents: Sequence[str],
) -> Wish:
    """Return what is asked for; without a number one attempt for each agent, three where none is named.

    >>> wish("x", None, ["true"], [], "none", ["self", "codex_cli"]).attempts
    2
    """
    usual = len(agents) if len(agents) >= LEAST else USUAL
    many = usual if attempts is None else attempts
    return Wish(task, many, tuple(checks), tuple(models), merge, tuple(agents))


async def tournament(
    calls: "Calls",
    task: str,
    attempts: int | None,
    checks: Sequence[str],
    models: Sequence[str],
    merge: str,
    agents: Sequence[str] = (),
) -> dict[str, Any]:
    """Run a tournament and return its result, or `{"error"}`."""
    asked = wish(task, attempts, checks or calls.tree.rules.checks, models, merge, agents)
    return await held(calls, asked)


async def held(
    calls: "Calls",
    wish: Wish,
    *,
    contest: Contest | None = None,
    admitted: Callable[[Sequence[Child]], None] = lambda _: None,
) -> dict[str, Any]:
    """Run what is wished for; return the result, or `{"error"}`.

    Args:
        contest: what the attempts' records keep, where no tool call will be made again after a crash.
        admitted: told of the attempts once they are on record.
    """
    problem = wish.problem()
    if problem is not None:
        return {"error": problem}
    try:
        async with AsyncExitStack() as stack:
            check = await stack.enter_async_context(calls.tree.runner.checking(calls.caller.branch))
            return await _Tournament(calls, wish, check, admitted).run(contest)
    except SandboxUnavailable as error:
        return {"error": f"checks cannot run here: {error}"}


class _Tournament:
    """One running tournament."""

    def __init__(
        self, calls: "Calls", wish: Wish, check: RunCheck, admitted: Callable[[Sequence[Child]], None]
    ) -> None:
        self._calls = calls
        self._wish = wish
        self._check = check
        self._admitted = admitted
        self._baseline: asyncio.Task[tuple[Check, ...]] | None = None

    async def run(self, contest: Contest | None) -> dict[str, Any]:
        begun = len(await self._calls.known())  # by this call, in a process that died
        refusal = None if begun else await self._refusal()
        if refusal is not None:
            return {"error": refusal}
        held = [] if begun else self._room()
        fitting = begun or len(held)
        if fitting < LEAST:
            return {"error": f"the budget has no room for {LEAST} attempts of an estimated cost"}
        try:
            admitted = await self._calls.admit(self._wish.wanted(fitting), contest)
        finally:
            # From here on every call of an attempt reserves for itself; nothing else ran in between.
            for reservation in held:
                self._calls.above.purse.settle(reservation, Usage())
        refused = [reason for reason in admitted if isinstance(reason, str)]
        entrants = [entrant for entrant in admitted if not isinstance(entrant, str)]
        if len(entrants) < LEAST:
            return {"error": f"fewer than {LEAST} attempts can start: {refused[0]}"}
        self._admitted([child for child, _ in entrants])
        children = await self._attempts(entrants)
        return await self._result(children, self._said(fitting, refused))

    def _room(self) -> list[str]:
        """Reserve the estimated cost of the attempts; return the reservations that fit."""
        purse = self._calls.above.purse
        held: list[str] = []
        for _ in range(self._wish.attempts):
            found = purse.hold(ESTIMATE, ESTIMATED_OUTPUT, self._calls.caller.price)
            if isinstance(found, BudgetRefusal) or found.max_tokens < ESTIMATED_OUTPUT:
                if not isinstance(found, BudgetRefusal):
                    purse.settle(found.id, Usage())
                break
            held.append(found.id)
        return held

    async def _refusal(self) -> str | None:
        """Return why an agent that was named cannot attempt: nobody competes against fewer unasked."""
        runner = self._calls.tree.runner
        names = [name for name in dict.fromkeys(self._wish.agents) if name != SELF]
        found = await asyncio.gather(*(runner.lacking(name) for name in names))
        return "; ".join(reason for reason in found if reason) or None

    def _said(self, fitting: int, refused: Sequence[str]) -> str:
        notes: list[str] = []
        if fitting < self._wish.attempts:
            notes.append(f"{fitting} of {self._wish.attempts} attempts: the budget has room for no more")
        return "; ".join([*notes, *dict.fromkeys(refused)])

    async def _attempts(self, entrants: Sequence[tuple[Child, Wanted]]) -> list[Child]:
        """Run attempts and, as each ends, its checks; the starting snapshot is checked meanwhile."""
        started = [await self._calls.start(child, wanted) for child, wanted in entrants]
        found = next((child.baseline for child, _ in entrants if child.baseline is not None), None)
        self._baseline = asyncio.create_task(
            self._check_baseline(entrants[0][0], found), name="baseline checks"
        )
        judged = [asyncio.create_task(self._judged(one), name="checks of an attempt") for one in started]
        try:
            await self._calls.wait(started)
            return list(await asyncio.gather(*judged))
        finally:
            left = [task for task in (*judged, self._baseline) if not task.done()]
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)

    async def _judged(self, started: Running | Child) -> Child:
        """Wait for an attempt, run its checks and record what they found."""
        child = await asyncio.shield(started.task) if isinstance(started, Running) else started
        if child.checks is not None or self._calls.caller.stop.reason is not None:
            return child  # judged before a crash; or nobody wants to know any more
        try:
            fork = await self._calls.tree.runner.open(child)
            found = tuple([await self._check(fork, command) for command in self._wish.checks])
        except WorkspaceError:
            if await self._is_discarded(child):
                return msgspec.structs.replace(child, state="discarded")
            raise
        assert self._baseline is not None, "attempts are judged after the baseline began"
        judged = msgspec.structs.replace(child, checks=found, baseline=await asyncio.shield(self._baseline))
        await self._calls.tree.records.put(judged)
        return judged

    async def _is_discarded(self, child: Child) -> bool:
        """Whether somebody threw an attempt away meanwhile: then nobody judges it."""
        present = await self._calls.tree.records.of(child.parent)
        return any(one.number == child.number and one.state == "discarded" for one in present)

    async def _check_baseline(self, first: Child, found: tuple[Check, ...] | None) -> tuple[Check, ...]:
        if found is not None:
            return found  # before a crash
        snapshot, branch = first.snapshot or None, self._calls.caller.branch
        start = await to_thread(partial(branch.fork, "baseline", snapshot=snapshot, throwaway=True))
        try:
            return tuple([await self._check(start, command) for command in self._wish.checks])
        finally:
            await to_thread(start.discard, keep=False)

    async def _result(self, children: Sequence[Child], note: str) -> dict[str, Any]:
        assert self._baseline is not None, "attempts run after the baseline began"
        left = [child for child in children if child.state != "discarded"]
        order = ranked([await self._attempt(child, self._baseline.result()) for child in left])
        best = winner(order)
        rows = [row(attempt, rank) for rank, attempt in enumerate(order, 1)]
        result: dict[str, Any] = {"winner": rows[0]["handle"] if best is not None else None, "ranking": rows}
        if note:
            result["note"] = note
        if best is not None and self._wish.merge == "best":
            await self._calls.caller.earlier()
            result["merge"] = await self._calls.merge(rows[0]["handle"])
        return result

    async def _attempt(self, child: Child, baseline: tuple[Check, ...]) -> Attempt:
        diff = await self._calls.diff(child)
        files, added, removed = counts(diff)
        usage = child.usage
        return Attempt(
            number=child.number,
            completed=child.error is None,
            checks=against(baseline, child.checks or ()),
            files=files,
            added=added,
            removed=removed,
            touched_checks=touches_checks(diff, self._calls.tree.rules.test_globs, self._wish.checks),
            cost=usage.cost,
            tokens=usage.context_tokens + usage.output_tokens,
            seconds=child.elapsed,
            error=child.error,
            agent=child.provider or SELF,
        )
