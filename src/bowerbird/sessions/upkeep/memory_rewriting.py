"""Writing memory anew when a session has been quiet (SE-44).

Here: finding quiet sessions, one durable job for each state of one, the commit of its text. Not here: rows
(`store/rows/memory.py`), what the model is asked (`memory/rewriting.py`), which model it is (`app`).

A job runs beside the session: it holds no lease and is no turn, so that a message meanwhile is not delayed.
A failure keeps the old text; the session's next finished turn is the next chance.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import msgspec
from sqlalchemy import Connection

from bowerbird.agent.context.compaction import as_text
from bowerbird.core.errors import BowerbirdError, InvalidArgument, SessionError
from bowerbird.core.ids import new_id
from bowerbird.core.messages import user_text
from bowerbird.core.requests import ModelRequest
from bowerbird.core.timestamps import to_iso
from bowerbird.memory.rewriting import SYSTEM, fitted, forgotten, question
from bowerbird.models.protocol import Model, complete
from bowerbird.sessions.journal.history import load
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.turn.money import require_money
from bowerbird.store.rows.memory import (
    MemoryJob,
    MemoryVersion,
    add_job,
    add_memory,
    add_model_usage,
    close_job,
    due_threads,
    has_left_jobs,
    left_jobs,
    memory_log,
    newest_memory,
    previous_job,
    restore_memory,
)
from bowerbird.store.rows.meta import get_meta, set_meta
from bowerbird.store.rows.sessions import SessionRow, get_session
from bowerbird.store.store import Store

LOOK_EVERY_S = 15.0
LEFT_S = 300.0  # a job that is older was left by a process that died
LOOKS_BACK = timedelta(days=7)  # after a longer pause of all processes, a session's next turn is waited for
TRIES = 3
LONGEST_S = 120.0
MAX_TOKENS = 2_048
MOST_FACT_BYTES = 1_000
DIALOGUE_CHARS = 60_000
SINCE = "memory_since"

_log = logging.getLogger(__name__)


class MemoryRules(msgspec.Struct, frozen=True):
    """How memory is kept.

    Attributes:
        idle_s: quiet time after which it is written. opens: gives the model for a session.
        is_on: whether it is written at all.
        wanted: whether a session has a memory at all. watched: whether somebody looks at a session now.
        written: told after each new text, to bring copies up to date.
    """

    idle_s: float
    opens: Callable[[SessionRow], Awaitable[Model]]
    is_on: bool = True
    wanted: Callable[[SessionRow], bool] = lambda _: True
    watched: Callable[[str], bool] = lambda _: False
    written: Callable[[str, str, str], Awaitable[None]] | None = None


def scope_of(session: SessionRow) -> tuple[str, str]:
    """Return whose memory a session's is: (user, workspace)."""
    return session.owner or "", session.workspace or ""


class Remembering(SessionPart):
    """The memory jobs of one process.

    Args:
        store: open; closed by its owner. settings: limits in money count here too.
    """

    def __init__(self, store: Store, settings: SessionSettings, rules: MemoryRules) -> None:
        self.rules = rules
        self._store = store
        self._settings = settings
        self._keeper: asyncio.Task[None] | None = None
        self._seen: dict[str, datetime] = {}

    def watch(self, watched: Callable[[str], bool]) -> None:
        """Ask this from now on whether somebody looks at a session."""
        self.rules = msgspec.structs.replace(self.rules, watched=watched)

    async def start(self, *, drives_all: bool) -> None:
        """Look for quiet sessions from now on, in a server."""
        if drives_all and self.rules.is_on and self._keeper is None:
            self._keeper = asyncio.get_running_loop().create_task(self._keep(), name="bowerbird-memory")

    async def aclose(self) -> None:
        """Stop; a job under way is found again by the next process."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
            self._keeper = None

    async def versions(self, owner: str, workspace: str) -> list[MemoryVersion]:
        """Return the texts that are kept of a user and workspace, the newest first."""
        return await self._store.read(lambda c: memory_log(c, owner, workspace))

    async def restore(self, owner: str, workspace: str, version: int) -> MemoryVersion:
        """Make an earlier text the one that counts, as a new version; raises NotFound."""
        made = await self._store.write(lambda c: restore_memory(c, owner, workspace, version))
        if self.rules.written is not None:
            await self.rules.written(owner, workspace, made.body)
        return made

    async def add(self, owner: str, workspace: str, fact: str) -> tuple[MemoryVersion, list[str]]:
        """Remember a fact that a person gives, as the last line of a new version.

        Returns:
            The version, and the oldest lines, which had no room beside it.

        Raises:
            InvalidArgument: it is empty or too long. SessionError: no memory is kept.
        """
        line = " ".join(fact.split())
        if not self.rules.is_on:
            raise SessionError("memory is off (memory.enabled), so nothing would be remembered")
        if not line or len(line.encode()) > MOST_FACT_BYTES:
            raise InvalidArgument(f"a fact has 1 to {MOST_FACT_BYTES} bytes; put longer texts into a file")

        def commit(connection: Connection) -> tuple[MemoryVersion, list[str]]:
            present = newest_memory(connection, owner, workspace)
            body = f"{present.body}\n{line}" if present is not None and present.body else line
            return add_memory(connection, owner, workspace, fitted(body)), forgotten(body)

        made, left_out = await self._store.write(commit)
        if self.rules.written is not None:
            await self.rules.written(owner, workspace, made.body)
        return made, left_out

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(min(LOOK_EVERY_S, max(0.05, self.rules.idle_s / 2)))
            try:
                await self.look()
            except BowerbirdError as error:
                _log.warning("memory: %s", error)
            except Exception:  # noqa: BLE001  one look failed; without this task no memory is kept again
                _log.exception("memory: one look failed")

    async def look(self, now: datetime | None = None) -> int:
        """Do the jobs that are due; returns how many texts were written.

        Args:
            now: the clock's when None.
        """
        at = now or datetime.now(UTC)
        quiet = to_iso(at - timedelta(seconds=self.rules.idle_s))
        since = max(await self._since(at), to_iso(at - LOOKS_BACK))
        left = to_iso(at - timedelta(seconds=LEFT_S))
        jobs: list[MemoryJob] = []
        if await self._store.read(lambda c: has_left_jobs(c, left)):
            jobs = await self._store.write(lambda c: left_jobs(c, left), flush=False)
        for thread_id, upto in await self._store.read(lambda c: due_threads(c, since, quiet)):
            if self._is_watched(thread_id, at):
                continue
            job = await self._store.write(
                lambda c, thread=thread_id, seq=upto: add_job(c, new_id("i"), thread, seq)
            )
            jobs += [job] if job is not None else []
        return sum([await self._done(job) for job in jobs])

    async def _since(self, at: datetime) -> str:
        """Sessions that ended before memory was first kept here stay as they are."""

        def first(connection: Connection) -> str:
            known = get_meta(connection, SINCE)
            if known is None:
                known = to_iso(at - timedelta(seconds=2 * self.rules.idle_s + LOOK_EVERY_S))
                set_meta(connection, SINCE, known)
            return known

        known = await self._store.read(lambda c: get_meta(c, SINCE))
        return known if known is not None else await self._store.write(first, flush=False)

    def _is_watched(self, thread_id: str, at: datetime) -> bool:
        """Whether somebody looks at a session, or did within the quiet time."""
        if self.rules.watched(thread_id):
            self._seen[thread_id] = at
            return True
        last = self._seen.get(thread_id)
        if last is not None and (at - last).total_seconds() < self.rules.idle_s:
            return True
        self._seen.pop(thread_id, None)
        return False

    async def _done(self, job: MemoryJob) -> bool:
        """Do one job; its failure ends it and keeps the old text."""
        try:
            if job.tries > TRIES:
                raise BowerbirdError(f"{TRIES} processes died while writing it")
            async with asyncio.timeout(LONGEST_S):
                return await self._rewrite(job)
        except (BowerbirdError, TimeoutError) as error:
            _log.warning("memory of session %s keeps its text: %s", job.thread_id, error or "too slow")
            await self._store.write(lambda c: close_job(c, job, "cancelled"), flush=False)
            return False

    async def _rewrite(self, job: MemoryJob) -> bool:
        store = self._store
        session = await store.read(lambda c: get_session(c, job.thread_id))
        dialogue = await self._dialogue(job)
        if not self.rules.wanted(session) or not dialogue:
            await store.write(lambda c: close_job(c, job, "done"), flush=False)
            return False
        await require_money(store, self._settings, session, kind="memory")
        owner, workspace = scope_of(session)
        present = await store.read(lambda c: newest_memory(c, owner, workspace))
        model = await self.rules.opens(session)
        request = ModelRequest(
            messages=(user_text(question(present.body if present else "", dialogue)),),
            system=(SYSTEM,),
            max_tokens=min(MAX_TOKENS, model.info.max_output_tokens),
            purpose="memory",
            session=session.thread_id,
        )
        end = await complete(model, request)
        text = fitted(end.message.text)

        def commit(connection: Connection) -> bool:
            name = end.model or model.info.name
            add_model_usage(connection, job.thread_id, "memory", name, end.usage)
            newest = newest_memory(connection, owner, workspace)
            is_first = (newest.id if newest else 0) == (present.id if present else 0)
            # A text that another session's job wrote meanwhile is not lost: this one is made anew from it.
            if not is_first or not close_job(connection, job, "done"):
                return False
            if text and text != (present.body if present else ""):
                add_memory(connection, owner, workspace, text)
                return True
            return False

        if not await store.write(commit):
            return False
        if self.rules.written is not None:
            await self.rules.written(owner, workspace, text)
        return True

    async def _dialogue(self, job: MemoryJob) -> str:
        """What was said since the last job, as text."""
        start = await self._store.read(lambda c: previous_job(c, job.thread_id, job.upto))
        records = await self._store.records(job.thread_id)
        news = [record for record in records if start < record.seq <= job.upto]
        return as_text(load(news, "").history.messages, DIALOGUE_CHARS)
