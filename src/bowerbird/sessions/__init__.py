"""Durable dialogues: what was asked, who drives it, what was done, and how to go on after a crash.

Lives here: the session service (the one thing every door talks to), the driver of a turn, the
resume decision, history from the journal, dispatching, live events, the audit log, export.
Must not be here: SQL (store), the loop (agent), files of a branch (workspace), any door.

Example:
    >>> from bowerbird.sessions import thread_of_chat
    >>> thread_of_chat("telegram", "12345")
    'telegram_12345'
"""

from typing import TYPE_CHECKING

from bowerbird.core.lazy import lazy

if TYPE_CHECKING:
    from bowerbird.sessions.delivery.messages import Parcel
    from bowerbird.sessions.delivery.outbox import Deliverer, DeliveryFailed, Outbox
    from bowerbird.sessions.dispatch.dispatcher import Dispatcher, Executor, LocalDispatcher, Signal, TurnRef
    from bowerbird.sessions.live.hub import InputMark, Lagged, Published, TurnMark
    from bowerbird.sessions.service import SessionService
    from bowerbird.sessions.settings import SessionSettings
    from bowerbird.sessions.thread_ids import thread_of_chat
    from bowerbird.sessions.turn_maker import TurnContext, TurnMaker
    from bowerbird.sessions.values import (
        CallView,
        MessageView,
        NewSession,
        PendingRequest,
        QueuedInput,
        Receipt,
        SessionInfo,
        Tokens,
        TurnInfo,
    )


__all__ = (
    "CallView", "Deliverer", "DeliveryFailed", "Dispatcher", "Executor", "InputMark", "Lagged",
    "LocalDispatcher", "MessageView", "NewSession", "Outbox", "Parcel", "PendingRequest", "Published",
    "QueuedInput", "Receipt", "SessionInfo", "SessionService", "SessionSettings", "Signal", "Tokens",
    "TurnContext", "TurnInfo", "TurnMaker", "TurnMark", "TurnRef", "thread_of_chat",
)  # fmt: skip

__getattr__, __dir__ = lazy(
    __name__,
    {
        "delivery.messages": "Parcel",
        "delivery.outbox": "Deliverer DeliveryFailed Outbox",
        "dispatch.dispatcher": "Dispatcher Executor LocalDispatcher Signal TurnRef",
        "live.hub": "InputMark Lagged Published TurnMark",
        "service": "SessionService",
        "settings": "SessionSettings",
        "thread_ids": "thread_of_chat",
        "turn_maker": "TurnContext TurnMaker",
        "values": "CallView MessageView NewSession PendingRequest QueuedInput Receipt SessionInfo "
        "Tokens TurnInfo",
    },
)
