"""A vendor's program as a provider agent: one request, from its prompt to its answer (PR-11, PR-12).

Here: `program_agent`, and the order of a run. Not here: sandbox and pipes (`program`), the two transports
(`transports`, `acp_run`), sessions and memory, which the registry keeps.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from bowerbird.config.sections.agent import ProviderEntry
from bowerbird.core.errors import BowerbirdError
from bowerbird.providers.catalogue import CatalogueEntry
from bowerbird.providers.choosing import model_of, timeout_of
from bowerbird.providers.contract.errors import AgentError
from bowerbird.providers.contract.types import (
    AgentCapabilities,
    AgentEvent,
    AgentInfo,
    AgentProbe,
    AgentRequest,
    AgentResponse,
    check_prompt,
)
from bowerbird.providers.outcomes import answered, failed, lacking
from bowerbird.providers.programs.ground import ProgramGround
from bowerbird.providers.programs.probing import probe_program
from bowerbird.providers.programs.run import Progress, run_program
from bowerbird.providers.programs.vendors import VENDORS, Vendor, own_vendor
from bowerbird.providers.secrecy import Masker

Emit = Callable[[AgentEvent], None]


def program_agent(entry: CatalogueEntry, settings: ProviderEntry, ground: ProgramGround) -> "ProgramAgent":
    """Return the agent of an entry of type `cli`.

    Args:
        settings: what settings say of it, with what it shares (`choosing.settings_of`).
        ground: shared by all program agents of a server.

    One that is in no list of ours is run as `own_vendor` says.
    """
    known = VENDORS.get(entry.name)
    own = {name: value.reveal() for name, value in settings.env.items()} if known is None else {}
    return ProgramAgent(entry, settings, ground, known or own_vendor(own))


class ProgramAgent:
    """One vendor's program; belongs to one event loop."""

    def __init__(
        self, entry: CatalogueEntry, settings: ProviderEntry, ground: ProgramGround, vendor: Vendor
    ) -> None:
        self._entry, self._settings, self._ground, self._vendor = entry, settings, ground, vendor
        self._runs: set[asyncio.Task[Any]] = set()

    @property
    def info(self) -> AgentInfo:
        """What lists show of it."""
        return self._entry.info(model_of(self._entry, self._settings), self._settings.max_cost)

    def get_capabilities(self) -> frozenset[AgentCapabilities]:
        """What it can do."""
        return frozenset(self._entry.capabilities)

    def supports_capability(self, capability: AgentCapabilities) -> bool:
        """Whether it can do that."""
        return capability in self._entry.capabilities

    async def execute(self, request: AgentRequest) -> AgentResponse:
        """Run a request to its end; cancelling kills the program's whole tree at once."""
        return await self._execute(request, lambda _event: None)

    async def stream(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """Run a request and yield what happens; closing the iterator ends the run."""
        happened: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        task = asyncio.create_task(self._execute(request, happened.put_nowait), name=self._entry.name)
        task.add_done_callback(lambda _task: happened.put_nowait(None))
        try:
            while (event := await happened.get()) is not None:
                yield event
            response = await task
        finally:
            task.cancel()
            await asyncio.wait({task})
        if response.error is not None:
            yield AgentEvent("error", response.error, {"error_type": response.metadata.get("error_type")})
        yield AgentEvent("done", response=response)

    async def probe(self, *, live: bool = False) -> AgentProbe:
        """Find out whether it can be used; never raises."""
        return await probe_program(self._entry, self._settings, self._vendor, self._ground, live=live)

    async def test_connection(self) -> bool:
        """Whether a live probe says `operative`."""
        return (await self.probe(live=True)).status == "operative"

    async def close(self) -> None:
        """Kill its runs."""
        for run in list(self._runs):
            run.cancel()
        await asyncio.gather(*self._runs, return_exceptions=True)

    async def _execute(self, request: AgentRequest, emit: Emit) -> AgentResponse:
        check_prompt(request.prompt)
        started = time.monotonic()
        progress = Progress(emit)
        task = asyncio.current_task()
        assert task is not None
        self._runs.add(task)
        error: BowerbirdError | OSError | None = None
        try:
            self._check(request)
            timeout_s = timeout_of(self._entry, self._settings, request)
            await run_program(
                self._entry, self._settings, self._vendor, self._ground, request, progress, timeout_s
            )
        except (BowerbirdError, OSError) as failed:
            error = failed
        finally:
            self._runs.discard(task)
        return self._response(request, progress, error or progress.error, time.monotonic() - started)

    def _check(self, request: AgentRequest) -> None:
        missing = lacking(self.info, request)
        if missing is not None:
            raise AgentError(f"{self._entry.name} does not support {missing}")

    def _response(
        self, request: AgentRequest, progress: Progress, error: Exception | None, took_s: float
    ) -> AgentResponse:
        more: dict[str, Any] = {
            "execution_time": took_s,
            "tokens_used": progress.tokens,
            "cost": progress.cost,
            "changes": progress.changes,
        }
        if error is None:
            return answered(request, progress.content, metadata=progress.metadata, **more)
        key = self._settings.api_key
        masked = Masker([key.reveal() if key is not None else None]).text(str(error))
        response = failed(request, error, content=progress.content, metadata=progress.metadata, **more)
        return msgspec.structs.replace(response, error=masked)
