"""What every route begins with: the context, the caller by role, forms of bodies and errors.

Here: dependencies and base models. Not here: any route.
"""

from typing import Annotated, Any

import msgspec
from fastapi import Depends, Path, Query
from pydantic import BaseModel, ConfigDict, create_model

from bowerbird.server.access import require
from bowerbird.server.common.context import Caller, ServerContext, context_of
from bowerbird.server.common.forms import Body, StrictBody, whole
from bowerbird.server.common.json_answers import MAX_PAGE

__all__ = (
    "MULTIPART_FILES",
    "Admin",
    "Body",
    "Context",
    "ConversationId",
    "InvalidShown",
    "Limit",
    "Place",
    "ProblemShown",
    "Shown",
    "StatusShown",
    "StrictBody",
    "User",
    "Viewer",
    "shape_of",
    "whole",
)

Context = Annotated[ServerContext, Depends(context_of)]
Viewer = Annotated[Caller, Depends(require("viewer"))]
User = Annotated[Caller, Depends(require("user"))]
Admin = Annotated[Caller, Depends(require("admin"))]

ConversationId = Annotated[str, Path(description="Id of a conversation; opaque.")]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="At most so many.")]
Before = Annotated[str | None, Query(max_length=200, description="Only what follows this id.")]


MULTIPART_FILES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {
                        "files": {
                            "type": "array",
                            "minItems": 1,
                            "maxItems": 50,
                            "items": {"type": "string", "format": "binary"},
                        }
                    },
                }
            }
        },
    }
}
"""Description of a body of files, for routes that read it themselves."""


class Shown(BaseModel):
    """An answer's JSON, for the description only: answers are encoded by msgspec."""

    model_config = ConfigDict(extra="allow")


def shape_of(value: type[msgspec.Struct], *, without: str) -> type[Shown]:
    """Return the form of a value's fields, all of them required: an answer that shows it always has them.

    Args:
        without: the one that is not shown.
    """
    fields = [field for field in msgspec.structs.fields(value) if field.name != without]
    shown: dict[str, Any] = {field.name: (field.type, ...) for field in fields}
    return create_model(value.__name__, __base__=Shown, **shown)


class ProblemShown(Shown):
    """Every error but those of validation."""

    detail: str
    code: str


class Place(Shown):
    """Where a request is wrong."""

    loc: list[str | int]
    msg: str
    type: str


class InvalidShown(Shown):
    """A request that does not fit its description."""

    detail: list[Place]
    code: str


class StatusShown(Shown):
    """That something was done."""

    status: str
