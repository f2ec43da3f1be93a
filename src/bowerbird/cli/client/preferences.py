"""What the person at this terminal likes, as a client and its screen are told.

Here: these values, from settings. Not here: the settings themselves, what is done with them.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from bowerbird.config import Settings

HISTORY = "cli_history"
"""The file of typed lines, in the data directory."""


class Preferences(msgspec.Struct, frozen=True):
    """What the person at this terminal likes."""

    theme: str = "auto"
    vi_mode: bool = False
    timeout_s: float = 1800.0
    history_file: Path | None = None
    notify: Literal["auto", "bell", "off"] = "auto"

    @classmethod
    def of(cls, settings: "Settings", data_dir: Path) -> "Preferences":
        """Return what settings say; typed lines are kept where there is a data directory already."""
        liked, history = settings.cli, data_dir / HISTORY if data_dir.is_dir() else None
        return cls(liked.theme, liked.vi_mode, liked.timeout, history, liked.notify)
