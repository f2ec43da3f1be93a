"""Forms of request bodies: how strictly they are read (SV-2).

Not here: the body of any route.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

from pydantic import BaseModel, ConfigDict

MOST_UNKNOWN = 20
LONGEST_NAME = 40
_OTHER_WORDS: dict[str, str] = dict.fromkeys(
    (
        "cwd",
        "dir",
        "directory",
        "folder",
        "path",
        "project",
        "root",
        "work_dir",
        "workdir",
        "working_directory",
    ),
    "workspace",
)


def meant_member(given: Mapping[str, Any], known: Sequence[str]) -> tuple[str, str] | None:
    """Return the first unknown member that a known one was probably meant by, and that one.

    Example:
        >>> meant_member({"titel": "x"}, ("title", "model")), meant_member({"nonsense": 1}, ("title",))
        (('titel', 'title'), None)
    """
    unknown = (name for name in given if name not in known and len(name) <= LONGEST_NAME)
    for name in islice(unknown, MOST_UNKNOWN):
        other = _OTHER_WORDS.get(name.lower().replace("-", "_"))
        close = [other] if other in known else get_close_matches(name, known, 1, 0.75)
        if close:
            return name, str(close[0])
    return None


def whole(value: object) -> object:
    """Take 3.0 for 3: JSON has one kind of number. For validators of integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Body(BaseModel):
    """A request's JSON: types are exact, unknown members are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")


class StrictBody(BaseModel):
    """A request's JSON where unknown members are an error."""

    model_config = ConfigDict(strict=True, extra="forbid")
