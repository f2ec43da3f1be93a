"""Who drives a session: leases with epochs, and the processes that hold them (SE-28, 29).

Here: taking, renewing and releasing a lease, the executors' rows, and whether a process of
this machine still lives. Not here: when to do any of it (`sessions/dispatch/dispatcher.py`, the driver).
"""

import os
import socket
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, bindparam, select

from bowerbird.core.errors import UnknownSession
from bowerbird.core.timestamps import now_iso
from bowerbird.store.sql.clock import DbNow
from bowerbird.store.sql.statements import Prepared, PreparedLookup
from bowerbird.store.sql.tables import executors, leases, sessions

_AFTER_OUTAGE_S = 15  # long enough for each driver to renew its own


class Executor(msgspec.Struct, frozen=True):
    """A process that drives turns.

    Attributes:
        executor_id: unique; carries the process's start time, so a reused pid is no confusion.
        host: machine, boot and pid namespace; only there does `pid` mean something.
    """

    executor_id: str
    host: str
    pid: int
    started_at: str
    heartbeat_at: str


def this_executor() -> Executor:
    """Return a new executor identity for the present process."""
    now = now_iso()
    return Executor(f"{_identity()}-{os.urandom(4).hex()}", this_host(), os.getpid(), now, now)


def _identity() -> str:
    """What begins the ids of this process's executors."""
    pid = os.getpid()
    return f"{pid}-{_start_ticks(pid)}"


def this_host() -> str:
    """Return what two processes share exactly when they can see each other's pids."""
    boot = _read("/proc/sys/kernel/random/boot_id")[:8]
    try:
        namespace = Path("/proc/self/ns/pid").readlink().name
    except FileNotFoundError:
        namespace = ""  # not Linux
    return f"{socket.gethostname()}/{boot}/{namespace}"


def is_dead(executor: Executor) -> bool:
    """Whether `executor` certainly no longer runs; False when this machine cannot tell."""
    try:
        if executor.host != this_host():
            return False
        ticks = executor.executor_id.split("-")[1] if executor.executor_id.count("-") >= 2 else ""
        return not ticks or _start_ticks(executor.pid) != ticks
    except OSError:
        return False  # a full table of open files, say: nothing can be told


def _start_ticks(pid: int) -> str:
    """The process's start time as the kernel counts it, "" when there is no such process."""
    stat = _read(f"/proc/{pid}/stat")
    fields = stat.rpartition(")")[2].split()
    return "" if len(fields) < 20 or fields[0] in ("Z", "X") else fields[19]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # any other error says nothing: a living process must not look dead


# ---------------------------------------------------------------- rows


class _Lease(NamedTuple):
    epoch: int
    holder: str | None
    alive: bool


_SESSION = select(sessions.c.thread_id).where(sessions.c.thread_id == bindparam("b_thread")).with_for_update()
_LEASE = PreparedLookup(
    lambda threads: select(
        leases.c.epoch, leases.c.holder, (leases.c.expires_at > DbNow()).label("alive")
    ).where(leases.c.thread_id.in_(threads))
)
_here = leases.c.thread_id == bindparam("b_thread")
_RELEASE = Prepared(
    leases.update()
    .where(_here, leases.c.epoch == bindparam("b_epoch"))
    .values(holder=bindparam("b_holder"), expires_at=DbNow()),
    ("b_holder", "b_thread", "b_epoch"),
)


@lru_cache(maxsize=16)
def _taken(ttl_s: float) -> Prepared:
    values: dict[str, Any] = {
        "epoch": bindparam("b_epoch"),
        "holder": bindparam("b_holder"),
        "expires_at": DbNow(ttl_s),
    }
    return Prepared(leases.update().where(_here).values(values), ("b_epoch", "b_holder", "b_thread"))


def heartbeat(connection: Connection, executor: Executor) -> None:
    """Say that `executor` lives; its row appears with the first call."""
    changed = connection.execute(
        executors.update().where(executors.c.executor_id == executor.executor_id).values(heartbeat_at=DbNow())
    )
    if changed.rowcount == 0:
        connection.execute(
            executors.insert().values(
                executor_id=executor.executor_id,
                host=executor.host,
                pid=executor.pid,
                started_at=executor.started_at,
                heartbeat_at=DbNow(),
            )
        )


def forget_executors(connection: Connection, executor_ids: list[str]) -> None:
    """Remove the rows of processes that ended."""
    connection.execute(executors.delete().where(executors.c.executor_id.in_(executor_ids)))


def all_executors(connection: Connection) -> list[Executor]:
    """Return every known process, the longest running first."""
    rows = connection.execute(select(executors).order_by(executors.c.started_at))
    return [Executor(r.executor_id, r.host, r.pid, r.started_at, r.heartbeat_at) for r in rows]


def living_executors(connection: Connection, silent_s: int) -> set[str]:
    """Return the ids of the processes that gave a sign of life lately.

    Args:
        silent_s: after so many seconds without one, a process counts as dead.
    """
    recent = select(executors).where(executors.c.heartbeat_at > DbNow(-silent_s))
    found = [
        Executor(r.executor_id, r.host, r.pid, r.started_at, r.heartbeat_at)
        for r in connection.execute(recent)
    ]
    return {executor.executor_id for executor in found if not is_dead(executor)}


def take_lease(
    connection: Connection,
    thread_id: str,
    holder: str,
    ttl_s: float,
    dead: Callable[[Executor], bool] = is_dead,
    *,
    is_locked: bool = False,
) -> int | None:
    """Return the new epoch, or None while another living process (or this one) holds the lease.

    Args:
        holder: executor id of the taker.
        ttl_s: seconds until the lease ends unless renewed.
        dead: whether a holder is known to be gone, so that nobody waits for its lease to end.
        is_locked: the transaction has locked the session's row before.

    Raises:
        UnknownSession: there is no such session.
    """
    if not is_locked and connection.execute(_SESSION, {"b_thread": thread_id}).first() is None:
        raise UnknownSession(f"no session {thread_id}")
    found = _LEASE.run(connection, (thread_id,))
    row = _Lease(*found[0]) if found else None
    if row is None:
        connection.execute(
            leases.insert().values(thread_id=thread_id, epoch=1, holder=holder, expires_at=DbNow(ttl_s))
        )
        return 1
    if row.holder is not None and row.alive and not _is_gone(connection, row.holder, dead):
        return None
    _taken(ttl_s).run(connection, [(row.epoch + 1, holder, thread_id)])
    return row.epoch + 1


def renew_lease(
    connection: Connection, thread_id: str, epoch: int, ttl_s: float, *, or_expired: bool = False
) -> bool:
    """Lengthen the lease; False when it is another's by now or had already ended.

    Args:
        or_expired: also one that the database's clock has ended and nobody has taken or given back: for who
            knows by a clock that nobody sets that its term still runs.
    """
    is_ours = leases.c.holder.is_not(None) if or_expired else leases.c.expires_at > DbNow()
    changed = connection.execute(
        leases.update()
        .where(leases.c.thread_id == thread_id, leases.c.epoch == epoch, is_ours)
        .values(expires_at=DbNow(ttl_s))
    )
    return changed.rowcount == 1


def lengthen_all(connection: Connection) -> None:
    """Give the leases of this process a new term after the database was away.

    A lease that another process took meanwhile has another holder, and is not touched.
    """
    ours = executors.c.executor_id.startswith(f"{_identity()}-", autoescape=True)
    mine = select(executors.c.executor_id).where(executors.c.host == this_host(), ours)
    connection.execute(
        leases.update().where(leases.c.holder.in_(mine)).values(expires_at=DbNow(_AFTER_OUTAGE_S))
    )


def lease_is_free(connection: Connection, thread_id: str, dead: Callable[[Executor], bool] = is_dead) -> bool:
    """Whether nobody drives the session: no lease, an ended one, or one of a dead process."""
    row = connection.execute(
        select(leases.c.holder, (leases.c.expires_at > DbNow()).label("alive")).where(
            leases.c.thread_id == thread_id
        )
    ).first()
    return row is None or row.holder is None or not row.alive or _is_gone(connection, row.holder, dead)


def release_lease(connection: Connection, thread_id: str, epoch: int) -> None:
    """Give the lease back, if it is still ours; the epoch stays counted."""
    _RELEASE.run(connection, [(None, thread_id, epoch)])


def release_all(connection: Connection, holder: str) -> None:
    """Give back every lease of a process that ends or has died."""
    connection.execute(
        leases.update().where(leases.c.holder == holder).values(holder=None, expires_at=DbNow())
    )


def _is_gone(connection: Connection, holder: str, dead: Callable[[Executor], bool]) -> bool:
    row = connection.execute(select(executors).where(executors.c.executor_id == holder)).first()
    if row is None:
        return False  # its row comes with its first heartbeat; until then only time can tell
    return dead(Executor(row.executor_id, row.host, row.pid, row.started_at, row.heartbeat_at))
