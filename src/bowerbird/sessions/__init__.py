"""Durable dialogues: what was asked, who drives it, what was done, and how to go on after a crash.

Lives here: the session service (the one thing every door talks to), the driver of a turn, the
resume decision, history from the journal, dispatching, live events, the audit log, export.
Must not be here: SQL (store), the loop (agent), files of a branch (workspace), any door.

Example:
    >>> from bowerbird.sessions import thread_of_chat
    >>> thread_of_chat("telegram", "12345")
    'telegram_12345'
"""

from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "CallView": "values",
    "InputMark": "live.hub",
    "Lagged": "live.hub",
    "MessageView": "values",
    "PendingRequest": "values",
    "QueuedInput": "values",
    "Tokens": "values",
    "TurnInfo": "values",
    "TurnMark": "live.hub",
    "Deliverer": "delivery.outbox",
    "DeliveryFailed": "delivery.outbox",
    "Outbox": "delivery.outbox",
    "Parcel": "delivery.messages",
    "Dispatcher": "dispatch.dispatcher",
    "Executor": "dispatch.dispatcher",
    "LocalDispatcher": "dispatch.dispatcher",
    "NewSession": "values",
    "Published": "live.hub",
    "Receipt": "values",
    "SessionInfo": "values",
    "SessionService": "service",
    "SessionSettings": "settings",
    "Signal": "dispatch.dispatcher",
    "TurnContext": "turn_maker",
    "TurnMaker": "turn_maker",
    "TurnRef": "dispatch.dispatcher",
    "thread_of_chat": "thread_ids",
}

__all__ = (
    "CallView", "Deliverer", "DeliveryFailed", "Dispatcher", "Executor", "InputMark", "Lagged",
    "LocalDispatcher", "MessageView", "NewSession", "Outbox", "Parcel", "PendingRequest", "Published",
    "QueuedInput", "Receipt", "SessionInfo", "SessionService", "SessionSettings", "Signal", "Tokens",
    "TurnContext", "TurnInfo", "TurnMaker", "TurnMark", "TurnRef", "thread_of_chat",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name on first use: most of them bring SQLAlchemy along."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
