"""What one call of a caller does with subagents: the records of DE-5 … DE-13.

Here: admission, waiting, merging, discarding, reading. Not here: one subagent's run (`session_tree`),
tournaments (`tournament`), the tools' parameters (`bowerbird.tools.together.subagents`).
"""

import asyncio
import posixpath
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.agent.delegates import Caller, Delegate
from bowerbird.agent.stop import StopSignal
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.subagents.diff import child_diff, summary
from bowerbird.subagents.entries import Wanted, admit, read_entry
from bowerbird.subagents.records import OPEN, Child, Contest
from bowerbird.subagents.runner import Job
from bowerbird.subagents.session_tree import Running, Tree
from bowerbird.subagents.shared_budget import Purse

if TYPE_CHECKING:
    from bowerbird.workspace import Hunk

_READ_CHARS = 200_000
_LOST_CHARS = 4_000
_MERGED = ("written", "deleted", "conflicts", "skipped", "merged", "unknown")


class Above(msgspec.Struct, frozen=True, kw_only=True):
    """Where a caller stands in its tree: the session and turn above all, its purse, how deep it is."""

    root: str
    turn: str
    purse: Purse
    depth: int


DelegateOf = Callable[[Child, Above], Delegate | None]


class Calls:
    """Subagents on behalf of one call; implements `tools.subagents.Subagents`.

    Args:
        tree: shared by the session and all below. caller: who calls. above: where it stands.
        delegate_of: gives a subagent what runs its own.
    """

    def __init__(self, tree: Tree, caller: Caller, above: Above, delegate_of: DelegateOf) -> None:
        self.tree = tree
        self.caller = caller
        self.above = above
        self._delegate_of = delegate_of

    # ------------------------------------------------------------ starting

    async def spawn(self, tasks: Sequence[Any]) -> dict[str, Any]:
        """See `Subagents.spawn`."""
        if not tasks:
            return {"error": "no tasks provided"}
        wanted = [read_entry(entry) for entry in tasks]
        made = await self.run(wanted)
        return {"subagents": [await self._entry(w, m) for w, m in zip(wanted, made, strict=True)]}

    async def task(self, description: str, prompt: str, agent_type: str) -> dict[str, Any]:
        """See `Subagents.task`."""
        kind = self.tree.types.get(agent_type)
        if kind is None:
            return {"error": f"there is no agent_type {agent_type!r}; there are {', '.join(self.tree.types)}"}
        (child,) = await self.run([Wanted(prompt, agent_type)])
        if isinstance(child, str):
            return {"error": child}
        facts = {"handle": child.handle, "description": description, "agent_type": agent_type}
        if kind.changes == "drop":
            await self._drop(child)
        if child.error is not None:
            kept = "" if kind.changes == "drop" else f"\nIts fork is kept: {child.handle}"
            return {**facts, "error": child.error, "text": f"{child.error}{kept}"}
        text = child.result or ""
        if kind.changes == "drop":
            return {**facts, "result": text, "text": text}
        await self.caller.earlier()
        merged = await self._merge(child, None, force=False, whole=True)
        if merged["conflicts"] or merged["skipped"]:
            paths = ", ".join(dict.fromkeys((*merged["conflicts"], *merged["skipped"])))
            text += (
                f"\n\nNothing was merged: your branch has changed where this subagent did ({paths}). Its "
                f"handle is {child.handle}: look with read_subagent, take what fits with merge_subagent."
            )
        return {**facts, "result": child.result, "merge": merged, "text": text}

    async def run(self, wanted: Sequence[Wanted]) -> list[Child | str]:
        """Run subagents to their ends; return records, and reasons in place of those not started.

        Those that this very call has started before, in a process that died, are resumed or taken from
        the record.
        """
        admitted = await self.admit(wanted)
        return await self.wait([m if isinstance(m, str) else await self.start(*m) for m in admitted])

    async def wait(self, started: Sequence[Running | Child | str]) -> list[Child | str]:
        """Return what became of started subagents; a cancelled caller's are stopped."""
        tasks = [running.task for running in started if isinstance(running, Running)]
        slot = self.tree.slot(self.caller.session)
        try:
            async with slot.lent() if slot is not None and tasks else nullcontext():
                if tasks:
                    await asyncio.wait(tasks)
        except asyncio.CancelledError:
            # A process that is shut down leaves them to the next one; whoever was stopped stops them.
            leaves = self.tree.runner.lasting and self.caller.returns and self.caller.stop.reason is None
            for running in started:
                if isinstance(running, Running) and leaves:
                    running.task.cancel()
                elif isinstance(running, Running):
                    running.job.stop.set("cancelled")
            if tasks:
                await asyncio.wait(tasks)
            raise
        return [s.task.result() if isinstance(s, Running) else s for s in started]

    async def admit(
        self, wanted: Sequence[Wanted], contest: Contest | None = None
    ) -> list[tuple[Child, Wanted] | str]:
        """Record what the caps let in, with its fork; return reasons in place of the rest."""
        problems = [await self._problem(one) for one in wanted]
        above, records = self.above, self.tree.records
        async with self.tree.group(above.root).admission:
            known = {child.index: child for child in await self.known()}
            verdicts = admit(
                problems,
                self.tree.rules.caps,
                in_turn=await records.turn_count(above.root, above.turn) - len(known),
                unmerged=await records.open_count(above.root)
                - sum(child.state in OPEN for child in known.values()),
            )
            fresh = [i for i, verdict in enumerate(verdicts) if verdict is None] if not known else []
            known.update(await self._make({i: wanted[i] for i in fresh}, contest))
        refused = "not started when this call was first made"
        return [
            (known[i], one) if i in known else verdicts[i] or refused for i, one in enumerate(wanted)
        ]  # fmt: skip

    async def known(self) -> list[Child]:
        """Return the subagents that this very call has made before, in a process that died."""
        caller = self.caller
        children = await self.tree.records.of(caller.session)
        return [child for child in children if child.call == caller.call and child.turn == caller.turn]

    async def _make(self, wanted: dict[int, Wanted], contest: Contest | None) -> dict[int, Child]:
        if not wanted:
            return {}
        caller, above, records = self.caller, self.above, self.tree.records
        first = await records.next_number(caller.session)
        names = [_name(caller.agent, first + place) for place in range(len(wanted))]
        forks = await self.tree.runner.fork(caller, names)
        children: dict[int, Child] = {}
        for place, ((index, one), fork) in enumerate(zip(wanted.items(), forks, strict=True)):
            children[index] = Child(
                parent=caller.session,
                number=first + place,
                session=f"{caller.session}.sub{first + place}",
                root=above.root,
                root_turn=above.turn,
                turn=caller.turn,
                call=caller.call,
                index=index,
                name=names[place],
                parent_branch=caller.branch.id,
                fork=fork.id,
                snapshot=(fork.parent or {}).get("snapshot", ""),
                task=one.task,
                agent_type=one.agent_type,
                depth=above.depth + 1,
                created=now_iso(),
                model=one.model or (f"tier:{one.tier}" if one.tier else ""),
                provider=one.provider,
                contest=contest,
            )
        await records.add(list(children.values()))
        return children

    async def start(self, child: Child, wanted: Wanted) -> Running | Child:
        """Start or resume a recorded subagent, or return the record of one that has ended."""
        if child.state != "running":
            return child
        job = Job(
            child=child,
            fork=await self.tree.runner.open(child),
            kind=self.tree.types[child.agent_type],
            wanted=wanted,
            caller=self.caller,
            stop=StopSignal(self.caller.stop),
            purse=self.above.purse,
            delegate=self._delegate_of(child, self.above),
            seconds=self.tree.rules.caps.child_s,
        )
        return self.tree.start(job)

    async def _problem(self, wanted: Wanted) -> str | None:
        kind = self.tree.types.get(wanted.agent_type)
        if kind is None:
            known = ", ".join(self.tree.types)
            return f"there is no agent_type {wanted.agent_type!r}; there are {known}"
        if not wanted.task.strip():
            return "the task is empty; say what to do"
        return await self.tree.runner.refusal(wanted, kind)

    async def _entry(self, wanted: Wanted, made: Child | str) -> dict[str, Any]:
        if isinstance(made, str):
            return {"handle": None, "task": wanted.task, "error": made}
        entry: dict[str, Any] = {"handle": made.handle, "task": made.task}
        if made.error is not None:
            return {**entry, "error": made.error}
        return {**entry, "result": made.result, "diff": await self.diff(made)}

    async def diff(self, child: Child) -> dict[str, Any]:
        """Return what a subagent changed."""
        return await to_thread(child_diff, await self.tree.runner.open(child))

    # ------------------------------------------------------------ handles

    async def merge(
        self, handle: str, paths: Sequence[str] | None = None, force: bool = False
    ) -> dict[str, Any]:
        """See `Subagents.merge`."""
        child = await self._find(handle)
        if child is None:
            return _unknown(handle)
        if child.session in self.tree.running:
            return {"error": f"{handle} is still running; wait for its end, or discard it"}
        return await self._merge(child, paths, force=force, whole=False)

    async def discard(self, handle: str) -> dict[str, Any]:
        """See `Subagents.discard`."""
        child = await self._find(handle)
        if child is None:
            return _unknown(handle)
        await self._drop(child)
        return {"discarded": handle}

    async def read(self, handle: str, path: str = "") -> dict[str, Any]:
        """See `Subagents.read`."""
        child = await self._find(handle)
        if child is None:
            return _unknown(handle)
        fork = await self.tree.runner.open(child)
        if not path:
            diff = await to_thread(child_diff, fork, _READ_CHARS)
            text = "\n\n".join(filter(None, (summary(diff), diff["patch"]))) or "no changes"
            return {"handle": handle, **diff, "text": text}
        shown = "/" + posixpath.normpath("/" + path.strip()).lstrip("/")
        if shown in (await to_thread(fork.changes)).deleted:
            return {"handle": handle, "path": shown, "deleted": True, "text": f"{shown} is deleted"}
        record = await fork.read_file(path)
        is_binary = record["binary"]
        text = f"{shown}: a binary file of {record['size']:,} bytes" if is_binary else record["content"]
        return {"handle": handle, **record, "deleted": False, "text": text}

    async def _merge(
        self, child: Child, paths: Sequence[str] | None, *, force: bool, whole: bool
    ) -> dict[str, Any]:
        fork = await self.tree.runner.open(child)
        found = await to_thread(self.caller.branch.merge, fork, paths, force=force, whole=whole)
        if not found.skipped or found.written or found.deleted:
            await self.tree.records.put(msgspec.structs.replace(child, state="merged"))
        record = found.record()
        merged = {name: record[name] for name in _MERGED}
        lost = {path: _text_of(one.lost) for path, one in found.details.items() if one.forced}
        return {**merged, "lost": lost} if lost else merged

    async def _drop(self, child: Child) -> None:
        """Free a subagent and everything below it; one that runs is stopped first."""
        await self.tree.stop(child.session)
        for inner in await self.tree.records.of(child.session):
            if inner.state != "discarded":
                await self._drop(inner)
        await self.tree.runner.forget(child)
        ended = await self.tree.records.of(child.parent)
        present = next(one for one in ended if one.number == child.number)
        await self.tree.records.put(msgspec.structs.replace(present, state="discarded"))

    async def _find(self, handle: str) -> Child | None:
        children = await self.tree.records.of(self.caller.session)
        return next((c for c in children if c.handle == handle and c.state != "discarded"), None)

    async def tournament(
        self,
        task: str,
        attempts: int | None,
        checks: Sequence[str],
        models: Sequence[str],
        merge: str,
        agents: Sequence[str] = (),
    ) -> dict[str, Any]:
        """See `Subagents.tournament`."""
        from bowerbird.subagents.tournament import tournament

        return await tournament(self, task, attempts, checks, models, merge, agents)


def _text_of(hunks: "Sequence[Hunk] | None") -> str:
    """Return what a forced merge threw away, as a diff of the version that was there."""
    text = "\n".join(hunk.text.rstrip("\n") for hunk in hunks or ())
    return text[:_LOST_CHARS] if hunks is not None else "too large to show"


def _unknown(handle: str) -> dict[str, Any]:
    return {"error": f"unknown subagent handle: {handle!r}"}


def _name(parent: str, number: int) -> str:
    """Return `{parent}_sub{number}`, within the 64 characters of a name."""
    end = f"_sub{number}"
    return parent[: 64 - len(end)] + end
