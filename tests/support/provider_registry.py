"""A registry of agents over a real store, its API agents at a server of the test's."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.stores import URL, opened

from bowerbird.config.sections.agent import ProvidersSection
from bowerbird.core.errors import SandboxUnavailable
from bowerbird.models.settings import ModelSettings, RetryPolicy
from bowerbird.providers.api.agent import ApiAgent
from bowerbird.providers.contract.types import BranchRef, MemoryLog
from bowerbird.providers.registry import Maker, Registry
from bowerbird.providers.sessions import ProviderSessions

KEY = "zq7Xw9Vt3Rk5Jh1GfQ8Yp"


class NoPlaces:
    """A host where no program can run."""

    async def of(self, *asked: Any) -> tuple[str, BranchRef]:
        raise SandboxUnavailable("no tier runs commands here")

    async def ran(self, thread_id: str) -> None:
        raise AssertionError("nothing ran")


async def no_thread(thread_id: str, owner: str) -> Sequence[MemoryLog] | None:
    return [MemoryLog("user", "typed")] if (thread_id, owner) == ("0123456789ab", "") else None


@asynccontextmanager
async def registry_at(
    data_dir: Path,
    url: str,
    *,
    more: Mapping[str, Maker] | None = None,
    section: Callable[[], ProvidersSection] | None = None,
    database: str = URL,
    **options: Any,
) -> AsyncIterator[Registry]:
    """Open a registry whose `claude` and `codex` are at `url`, or one with a `section` of one's own.

    `more` makes agents of further types.
    """
    entry = {"api_key": KEY, "base_url": url}
    usual = ProvidersSection.model_validate({"claude": entry, "codex": entry})
    models = ModelSettings(retry=RetryPolicy(retries=0), secrets=(KEY,))

    def make(entry: Any, settings: Any) -> ApiAgent:
        return ApiAgent(entry, settings, models)

    async with opened(data_dir, url=database) as store:
        makers: dict[Any, Maker] = {"api": make, "local": make, "cli": make, **(more or {})}
        registry = Registry(
            section or (lambda: usual), makers, ProviderSessions(store), NoPlaces(), no_thread, **options
        )
        try:
            yield registry
        finally:
            await registry.close()
