"""What every driver of a process shares.

Here: that one value. Not here: who makes it (`service.py`) or uses it.
"""

import msgspec

from bowerbird.sessions.branches.branches import Branches
from bowerbird.sessions.delivery.outbox import Outbox
from bowerbird.sessions.journal.audit_log import AuditLog
from bowerbird.sessions.journal.history_cache import Recall
from bowerbird.sessions.live.hub import Live
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.turn_maker import TurnMaker
from bowerbird.store.store import Store


class DriverContext(msgspec.Struct, frozen=True):
    """Shared things of a process's drivers.

    Attributes:
        executor_id: of this process, the holder of its leases.
        parts: features of sessions, in their order.
        attended: whether a person can answer questions at some door.
    """

    store: Store
    branches: Branches
    maker: TurnMaker
    settings: SessionSettings
    live: Live
    audit: AuditLog
    executor_id: str
    outbox: Outbox
    recall: Recall
    parts: tuple[SessionPart, ...] = ()
    attended: bool = True
