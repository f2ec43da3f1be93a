"""A session service over real parts: store, branches, loop, and a model served by `FakeModels`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from support.agent_turns import NAME, settings_for
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.stores import URL, opened

from bowerbird.agent.limits import Limits
from bowerbird.agent.policy import Policy
from bowerbird.agent.turn import TurnRun
from bowerbird.models import ModelSettings
from bowerbird.models.protocol import Model
from bowerbird.models.registry import open_model
from bowerbird.sessions import NewSession, SessionService, SessionSettings, TurnContext
from bowerbird.sessions.parts import SessionPart
from bowerbird.store import Record, Store
from bowerbird.store.rows.sessions import SessionRow
from bowerbird.tools import ReadTracker, Tool, Toolset
from bowerbird.tools.files.file_tools import file_tools

QUICK = SessionSettings(heartbeat_s=1.0, sweep_s=1.0, grace_s=2.0)


@dataclass
class PlainMaker:
    """Makes every turn alike: the scripted model, file tools and those given."""

    models: ModelSettings
    tools: Sequence[Tool] = ()
    policy: Policy = field(default_factory=Policy)
    limits: Limits = field(default_factory=lambda: Limits(max_iterations=50))
    change: Callable[[TurnRun], TurnRun] | None = None
    model: Model | None = None
    made: list[TurnContext] = field(default_factory=list[TurnContext])
    reads: dict[str, ReadTracker] = field(default_factory=dict[str, ReadTracker])

    def model_of(self, session: SessionRow) -> str:
        return NAME

    async def make(self, context: TurnContext) -> TurnRun:
        self.made.append(context)
        if self.model is None:
            self.model = open_model(NAME, self.models)
        flags = {**context.session.flags, **context.changes}
        run = TurnRun(
            model=self.model,
            tools=Toolset([*file_tools(), *self.tools]),
            branch=context.branch,
            system=("You test.",),
            policy=self.policy,
            limits=self.limits,
            mode="plan" if flags.get("enable_plan_mode") else "normal",
            reads=self.reads.setdefault(context.branch.id, ReadTracker()),
        )
        return run if self.change is None else self.change(run)

    async def aclose(self) -> None:
        if self.model is not None:
            await self.model.aclose()


@dataclass
class Place:
    """An open service and what it stands on."""

    service: SessionService
    store: Store
    fake: FakeModels
    maker: PlainMaker
    data: Path
    project: Path

    async def session(self, **new: Any) -> str:
        workspace = new.pop("workspace", str(self.project))
        return (await self.service.create(NewSession(workspace=workspace, **new))).thread_id

    async def ask(self, thread: str, text: str | dict[str, Any] = "go", **options: Any) -> Any:
        receipt = await self.service.submit(thread, text, **options)
        async with asyncio.timeout(HANG_S):
            return await self.service.wait(receipt.turn_id)

    async def types(self, thread: str) -> list[str]:
        return [record.type for record in await self.service.history(thread)]

    async def bodies(self, thread: str, kind: str) -> list[dict[str, Any]]:
        return [record.body for record in await self.service.history(thread) if record.type == kind]

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until `condition`, a coroutine function, is true of what is committed."""
        async with asyncio.timeout(HANG_S):
            while not await condition():
                await asyncio.sleep(0.01)


@asynccontextmanager
async def place(
    directory: Path,
    fake: FakeModels,
    *,
    settings: SessionSettings = QUICK,
    attended: bool = True,
    store_options: dict[str, Any] | None = None,
    url: str = URL,
    parts: Callable[[SessionService], Sequence[SessionPart]] = lambda _: (),
    **maker: Any,
) -> AsyncIterator[Place]:
    """Open a service on `directory`; opening it twice in a row is a restart.

    Args:
        url: of the database; a SQLite file in the directory when not given.
    """
    data, project = directory / "data", directory / "project"
    project.mkdir(parents=True, exist_ok=True)
    async with opened(data, url=url, **(store_options or {})) as store:
        made = PlainMaker(settings_for(fake), **maker)
        service = SessionService(store, made, settings=settings, attended=attended, parts=parts)
        try:
            async with service:
                yield Place(service, store, fake, made, data, project)
        finally:
            await made.aclose()


def changed(settings: SessionSettings = QUICK, **values: Any) -> SessionSettings:
    return msgspec.structs.replace(settings, **values)


def gapless(records: Sequence[Record]) -> bool:
    return [record.seq for record in records] == list(range(1, len(records) + 1))


def writes(path: str, content: str) -> dict[str, Any]:
    """A model step that writes a file."""
    return {"tools": [{"name": "write_file", "input": {"path": path, "content": content}}]}
