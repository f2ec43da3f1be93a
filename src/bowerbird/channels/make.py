"""The channels that settings ask for: the one place that knows each channel's constructor.

Here: from settings to channels and their rules. Not here: starting them (`house.py`), what a channel is.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.channels.admission import Role
from bowerbird.channels.contract import Channel, NotInstalled
from bowerbird.channels.house import Rules
from bowerbird.channels.live import LiveRules
from bowerbird.channels.receiving import PollerLease, Quarantine, StateReport
from bowerbird.config import Settings
from bowerbird.store.store import Store

if TYPE_CHECKING:
    from bowerbird.channels.transcription import Transcriber

CHANNELS = ("telegram",)
"""The names of the channels there are."""


def make_channels(
    settings: Callable[[], Settings],
    store: Store,
    data_dir: Path,
    holder: str,
    hide: Callable[[str], str] = str,
) -> list[tuple[Channel, Rules]]:
    """Return the enabled channels; nothing is started.

    Args:
        settings: returns those in force now: lists and triggers are followed, tokens need a restart.
        holder: executor id of this process, for leases. hide: masks secrets in a text.

    Raises:
        NotInstalled: the library of an enabled channel is not installed.
    """
    found: list[tuple[Channel, Rules]] = []
    if settings().channels.telegram.enabled:
        section = settings().channels.telegram
        rules = Rules(
            lambda: listed_users(settings(), "telegram"),
            lambda: settings().channels.telegram.trigger,
            LiveRules(section.stream_interval, section.show_tools, hide),
        )
        found.append((_telegram(settings(), store, data_dir, holder), rules))
    return found


def listed_users(settings: Settings, channel: str) -> Mapping[str, Role]:
    """Return whom settings admit to a channel, by id."""
    users = settings.channels.telegram.allowed_users if channel == "telegram" else ()
    return {user.id: user.role for user in users}


def _telegram(settings: Settings, store: Store, data_dir: Path, holder: str) -> Channel:
    try:
        from bowerbird.channels.telegram.channel import TelegramChannel, TelegramSettings
    except ImportError as error:
        raise NotInstalled("telegram") from error
    section = settings.channels.telegram
    token = section.token.reveal() if section.token is not None else ""
    return TelegramChannel(
        TelegramSettings(token, data_dir / "channels" / "telegram", section.server.reveal().rstrip("/")),
        PollerLease(store, "telegram", token, holder),
        Quarantine(store, "telegram"),
        StateReport(store, "telegram"),
        _transcriber(settings),
    )


def _transcriber(settings: Settings) -> "Transcriber | None":
    """Return what transcribes voice messages, None where that is off."""
    section = settings.transcription
    if not section.enabled:
        return None
    from bowerbird.channels.transcription import Transcriber, TranscriptionSettings

    return Transcriber(
        TranscriptionSettings(
            enabled=True,
            provider=section.provider,
            model=section.model,
            api_key=section.api_key.reveal() if section.api_key else "",
            base_url=section.base_url.reveal() if section.base_url else None,
            timeout_s=section.timeout,
        )
    )
