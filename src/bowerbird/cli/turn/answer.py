"""A person's answer to a question of a turn, as every client passes it on (UI-71).

Here: the value. Not here: how it is read (`asking.py`, `dialogue.py`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from bowerbird.core.events import CallAnswer


class Answer(NamedTuple):
    """A decision; `calls` has what was decided of single calls, by their ids."""

    decision: str
    feedback: str | None = None
    calls: Mapping[str, CallAnswer] = MappingProxyType({})
