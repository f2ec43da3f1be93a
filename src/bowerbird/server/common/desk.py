"""What the page needs to show and change settings, and to get a first model (UI-83).

Here: the values and the protocol that `app/` binds. Not here: the settings tree, files, fetching.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from bowerbird.server.common.reloaded import Reloaded

FetchState = Literal["idle", "running", "done", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One key as it is in force.

    Attributes:
        value: masked where it is secret. default: its default. origin: who set it, in words.
        hides: who else set it, and is not followed. changed: it differs from its default.
        meaning, kind, choices, unit, allowed: what it is and may be.
        applies: when a change takes effect, in words.
        locked: why it cannot be changed here, "" when it can.
    """

    key: str
    value: Any
    default: Any
    origin: str
    hides: tuple[str, ...]
    changed: bool
    meaning: str
    kind: str
    choices: tuple[str, ...]
    unit: str
    allowed: str
    nullable: bool
    secret: bool
    applies: str
    locked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFetch:
    """How far the embedded model is.

    Attributes:
        step: `download` or `join` while it runs. done, total: bytes. error: why it failed.
    """

    state: FetchState = "idle"
    small: bool = False
    step: str = ""
    done: int = 0
    total: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Whether there is a model that conversations can run on, and what would give one.

    Attributes:
        model: the name in force. problem: why it cannot be used, "" when it can.
        embedded: `ready`, `absent` (can be fetched), or why it cannot be used.
        fetch: of the embedded model. providers: names that take a key, and the variable of each.
        file: where changes are written. locked: why the model cannot be chosen here, "" when it can.
    """

    model: str
    problem: str
    embedded: str
    fetch: ModelFetch
    providers: tuple[tuple[str, str], ...]
    file: str
    locked: str


class Desk(Protocol):
    """Shows and changes the settings of a running server; bound by `app/`."""

    def rows(self) -> Sequence[SettingRow]:
        """Return every key."""
        ...

    async def change(self, values: Mapping[str, Any], reset: Sequence[str]) -> Reloaded:
        """Set keys, let others be what they are without the settings file, and load all anew.

        Raises:
            InvalidArgument: a key that cannot be changed here.
            ConfigError: the whole would be invalid, or the file cannot be written; nothing has changed.
        """
        ...

    async def setup(self) -> Setup:
        """Return whether there is a model."""
        ...

    async def fetch(self, small: bool) -> None:
        """Begin to fetch the embedded model, unless that is under way.

        Raises:
            InvalidArgument: it could not be used here.
        """
        ...

    async def stop_fetch(self) -> None:
        """End the fetch; what arrived is kept for the next one."""
        ...
