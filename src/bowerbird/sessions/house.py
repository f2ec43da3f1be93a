"""What every driver of a process shares.

Here: that one value. Not here: who makes it (`service.py`) or uses it.
"""

from dataclasses import dataclass

from bowerbird.sessions.audit import AuditLog
from bowerbird.sessions.branches import Branches
from bowerbird.sessions.live import Live
from bowerbird.sessions.outbox import Outbox
from bowerbird.sessions.recall import Recall
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.setup import TurnMaker
from bowerbird.store.store import Store


@dataclass(frozen=True, slots=True)
class House:
    """Shared things of a process's drivers.

    Attributes:
        executor_id: of this process, the holder of its leases.
        attended: whether a person can answer questions at some door (AG-63).
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
    attended: bool = True
