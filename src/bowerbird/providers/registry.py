"""The one place that doors ask: which agents there are, how they are, a run in its session (PR-8, PR-30).

Here: agents made when they are first needed, probes in time, the order of a run. Not here: any agent, where a
program's branch comes from (`Places`, which app/ gives), rows (`sessions`).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from bowerbird.config.sections.agent import ProviderEntry, ProvidersSection
from bowerbird.core.errors import BowerbirdError, InvalidArgument, NotAllowed
from bowerbird.core.timestamps import now_iso
from bowerbird.providers.catalogue import CatalogueEntry
from bowerbird.providers.choosing import offered, settings_of, timeout_of
from bowerbird.providers.contract.agent import OnEvent, ProviderAgent
from bowerbird.providers.contract.errors import (
    AgentError,
    AgentExecutionError,
    AgentNotFound,
    AgentTimeout,
    shown,
)
from bowerbird.providers.contract.types import (
    AgentInfo,
    AgentProbe,
    AgentRequest,
    AgentResponse,
    AgentType,
    BranchRef,
    MemoryLog,
    check_prompt,
)
from bowerbird.providers.outcomes import failed
from bowerbird.providers.sessions import Asked, PastRun, ProviderSessions

if TYPE_CHECKING:
    from bowerbird.store.rows.providers import ProviderSessionRow

PROBE_ALL_S = 11.0  # of the twelve that a list may take: the rest is for the machine
Maker = Callable[[CatalogueEntry, ProviderEntry], ProviderAgent]
ThreadMemory = Callable[[str, str], Awaitable[Sequence[MemoryLog] | None]]


class Places(Protocol):
    """Where the changes of a program's runs are: the branch of a session of its owner's."""

    async def of(
        self, entry: CatalogueEntry, request: AgentRequest, session: "ProviderSessionRow", owner: str
    ) -> tuple[str, BranchRef]:
        """Return the session and branch that a run works on; may make them.

        Raises:
            BowerbirdError: there is none for it; says why.
        """
        ...

    async def untouched(self, thread_id: str) -> None:
        """Raise AgentSessionError where a session's branch has changes that nobody has reviewed yet."""
        ...

    async def land(self, thread_id: str, owner: str) -> dict[str, Any]:
        """Land what a run changed, as far as it needs nobody's word; return what landed and what stayed."""
        ...

    async def ran(self, thread_id: str) -> None:
        """Hear that a run on this session's branch has ended."""
        ...


@dataclass(slots=True, eq=False)
class _Made:
    """An agent as settings had it; `busy` = how many runs and probes it is in."""

    settings: ProviderEntry
    agent: ProviderAgent
    busy: int = 0


class Registry:
    """See `AgentRegistry`.

    Args:
        settings: returns those in force; agents are made anew where theirs have changed.
        makers: what makes the agents of each type; one whose type is not here cannot be run.
        sessions: where runs are kept.
        places: of programs' changes.
        thread_memory: returns what was said in a session of Bowerbird's to its owner.
        probe_s: seconds that all probes together may take.
    """

    def __init__(
        self,
        settings: Callable[[], ProvidersSection],
        makers: Mapping[AgentType, Maker],
        sessions: ProviderSessions,
        places: Places,
        thread_memory: ThreadMemory,
        probe_s: float = PROBE_ALL_S,
    ) -> None:
        self._settings = settings
        self._makers = makers
        self._sessions = sessions
        self._places = places
        self._thread_memory = thread_memory
        self._probe_s = probe_s
        self._agents: dict[str, _Made] = {}
        self._replaced: set[_Made] = set()  # those that are busy still
        self._closing: set[asyncio.Task[None]] = set()
        self._probes: dict[str, tuple[float, AgentProbe]] = {}
        self._probing: set[asyncio.Task[AgentProbe]] = set()
        self._running: set[asyncio.Task[AgentResponse]] = set()
        self.active: set[int] = set()

    def list_agents(self) -> Sequence[AgentInfo]:
        """Return the agents that settings offer, in catalogue order."""
        return [self._made(entry).agent.info for entry in offered(self._settings())]

    async def probe_agent(self, name: str, *, live: bool = False) -> AgentProbe:
        """Probe one agent; an unknown name is `unavailable`, "Unknown agent"."""
        entry = self._known(name)
        if entry is None:
            return AgentProbe(name, "unavailable", "Unknown agent", None, None, now_iso())
        return (await self._probed([entry], live=live))[0]

    async def probe_all(self, *, max_age_s: float = 0.0) -> Sequence[AgentProbe]:
        """Return one probe for each agent within 12 s whatever hangs; not older than `max_age_s` seconds."""
        entries = offered(self._settings())
        since = time.monotonic() - max_age_s
        fresh = {name: probe for name, (at, probe) in self._probes.items() if max_age_s > 0 and at >= since}
        missing = [entry for entry in entries if entry.name not in fresh]
        fresh.update({probe.name: probe for probe in await self._probed(missing, live=False)})
        return [fresh[entry.name] for entry in entries]

    def timeout(self, name: str) -> float:
        """Return the seconds that a run of an agent may take where the request says nothing."""
        entry = self._known(name)
        if entry is None:
            raise _unknown(name)
        return timeout_of(entry, settings_of(entry, self._settings()), AgentRequest("-"))

    async def get_operative(self) -> Sequence[AgentInfo]:
        """Return the agents that can be used now."""
        working = {probe.name for probe in await self.probe_all() if probe.status == "operative"}
        return [info for info in self.list_agents() if info.name in working]

    async def health(self, name: str) -> AgentProbe:
        """Probe one agent for real."""
        return await self.probe_agent(name, live=True)

    async def run(
        self, name: str, request: AgentRequest, *, owner: str, on_event: OnEvent | None = None
    ) -> AgentResponse:
        """Run an agent in a session of `owner`'s; see `AgentRegistry.run`.

        Raises:
            AgentNotFound: no such agent. InvalidArgument: a prompt or session id that is none. NotAllowed: a
                run without review where settings do not allow it. Nothing was started or kept.
        """
        entry = self.check(name, request)
        began = time.monotonic()
        try:
            session = await self._sessions.opened(name, request.session_id, owner)
        except AgentError as error:
            return failed(request, error)
        request = msgspec.structs.replace(request, session_id=session.session_id)
        # Kept as a task, so that closing the registry can end it; cancelling the caller ends it too.
        task = asyncio.ensure_future(self._in_turn(entry, request, session, owner, on_event, began))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await task
        finally:
            if not task.done():
                task.cancel()

    def check(self, name: str, request: AgentRequest) -> CatalogueEntry:
        """Return the agent that a request can be given to; raises what `run` raises before anything starts.

        One without review (PR-21) is asked about here, so that no door forgets it.
        """
        entry = self._known(name)
        if entry is None:
            raise _unknown(name)
        check_prompt(request.prompt)
        if not request.direct:
            return entry
        if entry.type != "cli":
            raise InvalidArgument(f"{entry.name} has no files, so there is nothing to land; leave direct out")
        if request.branch is not None or request.metadata.get("caller_thread") is not None:
            raise InvalidArgument("a run on a fork is reviewed: ask for the fork, or for no review")
        if not self._settings().allow_direct:
            raise NotAllowed(
                f"what {entry.name} changes would land without review, and settings do not allow that; "
                "an admin sets providers.allow_direct"
            )
        return entry

    async def memory(self, session_id: str, *, owner: str) -> Sequence[MemoryLog] | None:
        """Return the newest 50 messages of a provider session or of one of Bowerbird's (PR-32)."""
        found = await self._sessions.memory(session_id, owner)
        return found if found is not None else await self._thread_memory(session_id, owner)

    async def session(self, session_id: str, *, owner: str) -> "ProviderSessionRow | None":
        """Return a session of this person's with an agent, None without one."""
        return await self._sessions.session(session_id, owner)

    async def past_runs(self, owner: str | None, most: int = 50) -> list[PastRun]:
        """Return the newest runs of a person, or of all for None, the newest first."""
        return await self._sessions.past_runs(owner, most)

    async def close(self) -> None:
        """Stop all runs and probes, and close the agents."""
        tasks = [*self._running, *self._probing]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PROBE_ALL_S)
        made = (*self._agents.values(), *self._replaced)
        self._agents, self._replaced = {}, set()
        for each in made:
            await each.agent.close()
        if self._closing:
            await asyncio.wait(self._closing)

    # ------------------------------------------------------------ one run

    async def _in_turn(
        self,
        entry: CatalogueEntry,
        request: AgentRequest,
        session: "ProviderSessionRow",
        owner: str,
        on_event: OnEvent | None,
        began: float,
    ) -> AgentResponse:
        wait_s = timeout_of(entry, settings_of(entry, self._settings()), request)
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._sessions.turn(session.session_id, wait_s))
            except TimeoutError:
                why = f"another run in session {session.session_id} took all of its {wait_s:g} s"
                return failed(request, AgentTimeout(why), execution_time=time.monotonic() - began)
            asked = await self._sessions.ask(session, request.prompt, {"trace_id": request.trace_id})
            self.active.add(asked.message_id)
            try:
                response = await self._asked(entry, request, asked, owner, on_event, began)
            except BaseException as error:
                stopped = isinstance(error, asyncio.CancelledError)
                said = "it was stopped" if stopped else f"it failed: {type(error).__name__}"
                await asyncio.shield(
                    self._sessions.answered(asked, failed(request, AgentExecutionError(said)))
                )
                raise
            finally:
                self.active.discard(asked.message_id)
            await asyncio.shield(self._sessions.answered(asked, response))
            return response

    async def _asked(
        self,
        entry: CatalogueEntry,
        request: AgentRequest,
        asked: Asked,
        owner: str,
        on_event: OnEvent | None,
        began: float,
    ) -> AgentResponse:
        session = asked.session
        request = msgspec.structs.replace(
            request, history=asked.history, native_session_id=session.native_session_id
        )
        thread_id: str | None = None
        try:
            if entry.type == "cli":
                thread_id, branch = await self._places.of(entry, request, session, owner)
                await self._sessions.place(session.session_id, thread_id, branch)
                request = msgspec.structs.replace(request, branch=branch)
                if request.direct:
                    await self._places.untouched(thread_id)
            with self._in_use(entry) as agent:
                response = await _answer(agent, request, on_event)
            if request.direct and thread_id is not None and response.error is None:
                response = await self._landed(response, thread_id, owner)
        except BowerbirdError as error:  # no branch, no sandbox: said like every failure
            response = failed(request, error, execution_time=time.monotonic() - began)
        finally:
            if thread_id is not None:
                await asyncio.shield(self._places.ran(thread_id))
        if thread_id is None:
            return response
        return msgspec.structs.replace(response, metadata={**response.metadata, "thread_id": thread_id})

    async def _landed(self, response: AgentResponse, thread_id: str, owner: str) -> AgentResponse:
        """Land what a run without review changed; what cannot land stays on its branch, and is named."""
        try:
            # Shielded: a landing is whole, whoever leaves meanwhile.
            landed = await asyncio.shield(self._places.land(thread_id, owner))
        except (BowerbirdError, OSError) as error:
            nothing: dict[str, Any] = {"landing": None, "paths": [], "stayed": []}
            landed = {**nothing, "why": str(error)}
        return msgspec.structs.replace(response, metadata={**response.metadata, "landed": landed})

    # ------------------------------------------------------------ agents and probes

    def _known(self, name: str) -> CatalogueEntry | None:
        return next((entry for entry in offered(self._settings()) if entry.name == name), None)

    async def _probe(self, entry: CatalogueEntry, *, live: bool) -> AgentProbe:
        with self._in_use(entry) as agent:
            try:
                return await agent.probe(live=live)
            except Exception as error:  # noqa: BLE001 - one agent's defect must not hide the others (PR-8)
                detail = f"its probe failed: {type(error).__name__}"
                return AgentProbe(entry.name, "unreachable", detail, None, None, now_iso())

    @contextmanager
    def _in_use(self, entry: CatalogueEntry) -> Generator[ProviderAgent]:
        """Give an agent that is not closed meanwhile, though settings may replace it."""
        made = self._made(entry)
        made.busy += 1
        try:
            yield made.agent
        finally:
            made.busy -= 1
            if made in self._replaced and not made.busy:
                self._retire(made)

    def _made(self, entry: CatalogueEntry) -> _Made:
        """Return the agent, made anew where its settings have changed."""
        settings = settings_of(entry, self._settings())
        known = self._agents.get(entry.name)
        if known is not None and known.settings == settings:
            return known
        if known is not None:
            self._probes.pop(entry.name, None)
            self._retire(known)
        made = self._agents[entry.name] = _Made(settings, self._makers[entry.type](entry, settings))
        return made

    def _retire(self, made: _Made) -> None:
        """Close an agent that settings replaced, once its runs have ended."""
        if made.busy:
            self._replaced.add(made)
            return
        self._replaced.discard(made)
        closing = asyncio.create_task(made.agent.close(), name="an agent that settings replaced")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _probed(self, entries: Sequence[CatalogueEntry], *, live: bool) -> list[AgentProbe]:
        tasks = {
            entry.name: asyncio.create_task(self._probe(entry, live=live), name=f"probe {entry.name}")
            for entry in entries
        }
        self._probing.update(tasks.values())
        if tasks:
            await asyncio.wait(tasks.values(), timeout=self._probe_s)
        found: list[AgentProbe] = []
        for name, task in tasks.items():
            task.add_done_callback(self._probing.discard)
            if task.done() and not task.cancelled():
                probe = task.result()
                self._probes[name] = (time.monotonic(), probe)
            else:
                task.cancel()  # not waited for: what hangs may hang in its end, too
                detail = f"its probe did not end within {self._probe_s:g} s"
                probe = AgentProbe(name, "unreachable", detail, None, None, now_iso())
            found.append(probe)
        return found


def _unknown(name: str) -> AgentNotFound:
    return AgentNotFound(f"no agent is called {shown(name)!r}; `bowerbird agents list` shows them")


async def _answer(agent: ProviderAgent, request: AgentRequest, on_event: OnEvent | None) -> AgentResponse:
    if on_event is None:
        return await agent.execute(request)
    response: AgentResponse | None = None
    async for event in agent.stream(request):
        response = event.response or response
        on_event(event)
    if response is None:
        raise RuntimeError(f"the stream of {agent.info.name} ended without its answer")
    return response
