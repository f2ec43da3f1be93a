"""The memory that is kept by itself, and the memory file, bound to settings, models and files (SE-44, AS-43).

Here: that binding. Not here: the jobs (`sessions/upkeep/memory_rewriting.py`), versions
(`store/rows/memory.py`), texts and copies (`memory/`).
"""

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.app.model_imports import import_for
from bowerbird.app.own import is_made_by_us, own_workspace
from bowerbird.core.threads import to_thread
from bowerbird.memory.copies import copy_path, write_copy
from bowerbird.sessions.kept_files import KeptFiles
from bowerbird.sessions.upkeep.memory_rewriting import MemoryRules, Remembering, scope_of
from bowerbird.store.rows.memory import newest_memory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bowerbird.app.ground import Ground
    from bowerbird.models.protocol import Model
    from bowerbird.sessions.service import SessionService
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.store.store import Store

_log = logging.getLogger(__name__)


def kept_files(ground: "Ground", service: "SessionService") -> KeptFiles:
    """Return what keeps a process's memory file out of commits, and its versions."""

    def workspace() -> Path | None:
        # A project that somebody serves is theirs: only a directory given to Bowerbird holds its memory.
        own = own_workspace(ground.loaded)
        return own.resolve() if own is not None and ground.maker.settings.memory.enabled else None

    return KeptFiles(service, ground.branches, workspace, lambda: ground.maker.settings.skills.directory)


def stored_memory(store: "Store") -> "Callable[[SessionRow], Awaitable[str]]":
    """Return what gives the memory that is kept of a session's user and workspace."""

    async def remembered(session: "SessionRow") -> str:
        owner, workspace = scope_of(session)
        newest = await store.read(lambda c: newest_memory(c, owner, workspace))
        return newest.body if newest is not None else ""

    return remembered


def session_memory(ground: "Ground", service: "SessionService") -> Remembering:
    """Return the jobs that keep the memory of a process's sessions; nothing runs yet."""
    maker, settings = ground.maker, ground.loaded.settings

    async def opens(session: "SessionRow") -> "Model":
        name = settings.agent.compact_model or maker.model_of(session)
        await import_for(name, maker.pool.settings)
        return maker.model_named(name)

    def wanted(session: "SessionRow") -> bool:
        chosen = session.flags.get("memory")
        return settings.memory.enabled if chosen is None else bool(chosen)

    rules = MemoryRules(
        settings.memory.idle_s,
        opens,
        settings.memory.enabled,
        wanted,
        written=partial(keep_copy, ground.data_dir),
    )
    return Remembering(ground.store, service.settings, rules)


async def keep_copy(data_dir: Path, owner: str, workspace: str, text: str) -> None:
    """Bring the readable copy of a memory up to date; one that cannot be written is a warning."""
    path = Path()

    def write() -> None:
        nonlocal path
        is_own = bool(workspace) and is_made_by_us(Path(workspace), data_dir)
        path = copy_path(owner, workspace, data_dir, is_own=is_own)
        write_copy(path, text)

    try:
        await to_thread(write)
    except OSError as error:
        _log.warning("the copy of the memory %s was not written: %s", path, error)
