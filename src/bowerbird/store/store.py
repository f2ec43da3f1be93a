"""The store: one database, one writer, readers beside it, and the blobs (SE-6, 12 … 15, 60).

Here: opening and closing, `write`, `append`, `read`, `journal/reading`. Not here: any table's queries
(their own modules), what a record means.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import StorageFull, StoreError
from bowerbird.core.forms import decode
from bowerbird.core.threads import in_thread, to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.store.journal.blobs import Blobs
from bowerbird.store.journal.group_commit import GroupCommit, Write
from bowerbird.store.journal.journal import CORRUPT, Append, Record, encode_body
from bowerbird.store.journal.quarantine import set_aside
from bowerbird.store.journal.reading import read_records
from bowerbird.store.options import Reads, StoreOptions
from bowerbird.store.sql.space import DiskSpace

if TYPE_CHECKING:
    from bowerbird.store.sql.notify import Notices

T = TypeVar("T")

_PREVIEW_CHARS = 1000
_PREVIEW_ITEMS = 100


class Store:
    """An open database; belongs to the event loop that opened it.

    Attributes:
        name: the database as people know it. dialect: `sqlite` or `postgresql`.
        notices: to other processes on the same database, None where there is no such thing (SQLite).

    Example:
        store = await Store.open("sqlite:///./agent.db", data_dir=Path("data"))
        try:
            row = await store.read(lambda connection: get_session(connection, "0123456789ab"))
        finally:
            await store.aclose()
    """

    def __init__(
        self,
        name: str,
        writer: GroupCommit,
        reader: "Reads",
        data_dir: Path,
        options: StoreOptions,
        notices: "Notices | None" = None,
    ) -> None:
        self.name = name
        self.data_dir = data_dir
        self.options = options
        self.blobs = Blobs(data_dir / "blobs")
        self.space = DiskSpace(data_dir, options.min_free_mb << 20)
        self.notices = notices
        self.dialect: Literal["sqlite", "postgresql"] = "sqlite"
        self._writer = writer
        self._reader = reader
        self._closing: asyncio.Task[None] | None = None
        # A character has at most four bytes: up to here nothing can be over the limit.
        self._inline_chars = (options.inline_max_kb << 10) // 4

    @classmethod
    async def open(cls, url: str, *, data_dir: Path, options: StoreOptions | None = None) -> "Store":
        """Open the database at `url`, create or migrate it, and start its writer.

        Args:
            url: SQLAlchemy URL; a relative SQLite path starts at `data_dir`.
            data_dir: made when missing, mode 0700; blobs and audit logs live there too.
            options: defaults of the settings when None.

        Raises:
            ConfigError: unusable URL, network filesystem, foreign tables.
            StoreTooNew, StoreCorrupt: nothing was changed. StoreBusy: locked for too long.
        """
        from bowerbird.store.opening import open_parts

        chosen = options or StoreOptions()
        parts = await open_parts(url, data_dir, chosen)
        store = cls(parts.name, GroupCommit(parts.committer), parts.reader, data_dir, chosen, parts.notices)
        store.dialect = parts.dialect
        try:
            await to_thread(store.space.take_reserve)
        except BaseException:
            await store.aclose()
            raise
        return store

    async def write(self, change: Callable[[Connection], T], *, flush: bool = True) -> T:
        """Run `change` in the next batch's transaction and return its result after the commit.

        Args:
            change: runs in the writer's thread, in a savepoint of its own; it may read and write
                rows, and raise one of our errors, which takes back only what it did.
            flush: False when losing it in a power failure harms nobody (leases, heartbeats).
        """
        return cast("T", await self._submitted(Write(change, flush)))

    async def append(self, append: Append) -> tuple[Record, ...]:
        """Append records with their ledger and usage rows; returns them numbered, after the commit.

        Raises:
            LeaseLost, UnknownSession: refused; nothing was stored. StorageFull, StoreBusy.
        """
        encoded = _encoded(append)
        if encoded.size > self._inline_chars:
            encoded = await self._inlined(encoded)
        return cast("tuple[Record, ...]", await self._submitted(encoded))

    async def prepared(self, append: Append) -> Append:
        """Return `append` with encoded bodies, large ones moved to the blobs and flushed there.

        For use inside `write`, where `append_one` must not touch files.
        """
        encoded = _encoded(append)
        return encoded if encoded.size <= self._inline_chars else await self._inlined(encoded)

    def inline(self, append: Append) -> Append | None:
        """Return `append` with encoded bodies, None when one of them may belong into the blobs."""
        encoded = _encoded(append)
        return encoded if encoded.size <= self._inline_chars else None

    async def stored_bodies(self, records: Sequence[Record]) -> tuple[str, ...]:
        """Return the bodies of records of elsewhere as they are stored here, large ones in the blobs."""
        bodies = [encode_body(record.body) for record in records]
        return tuple([await self._inlined_body(body) for body in bodies])

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run `query` on a read-only connection in a worker thread: one consistent view."""
        try:
            return await self._reader.run(query)
        except StoreError as error:
            self.space.blame(error)
            raise

    async def records(
        self, thread_id: str, *, after: int = 0, upto: int | None = None, limit: int | None = None
    ) -> list[Record]:
        """Return a session's records, whole bodies included; damaged ones are set aside and named.

        Raises:
            UnknownSession: there is no such session.
        """
        found = await self.read(lambda c: read_records(c, thread_id, after=after, upto=upto, limit=limit))
        if any(record.body.get("inline") is False for record in found):
            found = await to_thread(self._all_whole, found)
        damaged = [record for record in found if record.type == CORRUPT]
        if damaged:
            await self.write(lambda c: set_aside(c, damaged, now_iso()), flush=False)
        return found

    async def damage(self) -> str:
        """Return what a look at every page of the database finds wrong, "" when it is whole.

        PostgreSQL checks its pages itself, when it reads them.
        """
        if self.dialect == "postgresql":
            return ""
        found = await self.read(lambda c: c.exec_driver_sql("PRAGMA quick_check(3)").scalars().all())
        return "" if list(found) == ["ok"] else "; ".join(map(str, found))

    async def pack(self) -> None:
        """Give the disk back what deletions left unused in the database; others wait meanwhile.

        PostgreSQL does that by itself.
        """
        if self.dialect == "sqlite":
            from bowerbird.store.sql.sqlite import pack

            await in_thread(pack, Path(self.name), self.options.busy_timeout_s)

    def require_space(self) -> None:
        """Raise StorageFull when new work must be refused."""
        if self.space.is_low():
            raise StorageFull(
                f"less than store.min_free_mb ({self.options.min_free_mb}) MB is free in {self.data_dir}; "
                "nothing was stored. Free some space and send it again"
            )

    async def aclose(self) -> None:
        """Commit what was submitted, close every connection. May be called twice; each waits for the end."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="closing the store")
        await asyncio.shield(self._closing)  # whoever is cancelled leaves no connection half closed

    async def _close(self) -> None:
        if self.notices is not None:
            await self.notices.aclose()
        await self._writer.aclose()
        await self._reader.aclose()
        self.space.free_reserve()

    async def _submitted(self, change: Write | Append) -> object:
        try:
            return await self._writer.submit(change)
        except StoreError as error:
            self.space.blame(error)
            raise

    async def _inlined(self, append: Append) -> Append:
        bodies = [await self._inlined_body(body) for body in append.bodies]
        return msgspec.structs.replace(append, bodies=tuple(bodies))

    async def _inlined_body(self, body: str) -> str:
        content = body.encode()
        if len(content) <= self.options.inline_max_kb << 10:
            return body
        name = await to_thread(self.blobs.put, content)
        whole = decode(content, dict[str, Any])
        return encode_body({**_preview(whole), "blob": name, "inline": False})

    def _all_whole(self, records: list[Record]) -> list[Record]:
        return [self.whole(record) for record in records]

    def whole(self, record: Record) -> Record:
        """Return a record with its body from the blobs, if it is there; reads a file."""
        if record.body.get("inline") is not False:
            return record
        try:
            body = decode(self.blobs.get(str(record.body.get("blob"))), dict[str, Any])
        except (StoreError, msgspec.MsgspecError) as error:
            # The preview still tells people and the model what was there.
            return msgspec.structs.replace(record, body={**record.body, "gap": str(error)})
        return msgspec.structs.replace(record, body=body)


def _encoded(append: Append) -> Append:
    bodies = tuple([encode_body(record.body) for record in append.records])
    return msgspec.structs.replace(append, bodies=bodies)


def _preview(value: Any) -> Any:
    """A short form of a JSON value with the same shape, for the record that stays inline."""
    if isinstance(value, str):
        return (
            value if len(value) <= _PREVIEW_CHARS else f"{value[:_PREVIEW_CHARS]}… [{len(value)} characters]"
        )
    if isinstance(value, list):
        return [_preview(item) for item in cast("list[Any]", value)[:_PREVIEW_ITEMS]]
    if isinstance(value, dict):
        return {k: _preview(v) for k, v in list(cast("dict[str, Any]", value).items())[:_PREVIEW_ITEMS]}
    return value
