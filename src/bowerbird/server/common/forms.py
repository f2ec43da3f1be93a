"""Forms of request bodies: how strictly they are read (SV-2).

Not here: the body of any route.
"""

from pydantic import BaseModel, ConfigDict


def whole(value: object) -> object:
    """Take 3.0 for 3: JSON has one kind of number. For validators of integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Body(BaseModel):
    """A request's JSON: types are exact, unknown members are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")


class StrictBody(BaseModel):
    """A request's JSON where unknown members are an error."""

    model_config = ConfigDict(strict=True, extra="forbid")
