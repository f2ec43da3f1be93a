"""A message as it arrives over HTTP: JSON or multipart, with images (SV-19, SV-62).

Here: from a request to the blocks of a message. Not here: accepting it (`sessions`), sockets.
"""

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError

from bowerbird.core.pictures import PICTURE_BYTES, picture_type
from bowerbird.server.common.errors import problem
from bowerbird.server.common.forms import StrictBody
from bowerbird.server.common.json_answers import NOT_BLANK
from bowerbird.sessions.inbox.pictures import picture_block

if TYPE_CHECKING:
    from starlette.requests import Request

    from bowerbird.server.common.context import ServerContext

IMAGES_BYTES = 20 << 20
MOST_IMAGES = 20
# How each format begins, in base64: a wrong image would make every later request of the conversation fail.
DATA_URL = (
    r"^data:image/(png;base64,iVBORw0KGg[o-r]|jpeg;base64,/9j/|gif;base64,R0lGOD|webp;base64,UklGR[g-v])"
    r"[A-Za-z0-9+/]*={0,2}$"
)
FILES_DIR = "attachments"
_PLAIN = re.compile(r"[^A-Za-z0-9._-]")
Kind = Literal["message", "steer", "interrupt"]


class DataImage(StrictBody):
    """An image as a data URL."""

    url: Annotated[str, Field(pattern=DATA_URL)]
    name: Annotated[str | None, Field(max_length=255)] = None


class BranchImage(StrictBody):
    """An image that was uploaded to the conversation's branch before."""

    path: Annotated[str, Field(min_length=1, max_length=4096)]
    name: Annotated[str | None, Field(max_length=255)] = None


Attachment = DataImage | BranchImage


class NewMessage(StrictBody):
    """What is said; `steer` joins the running turn, `interrupt` stops it first."""

    content: Annotated[str, Field(min_length=1, pattern=NOT_BLANK)]
    kind: Kind = "message"
    attachments: list[Attachment] = Field(default_factory=list[Attachment], max_length=MOST_IMAGES)


@dataclass(frozen=True, slots=True)
class Attached:
    """A file that came with a multipart message."""

    name: str
    content: bytes


async def read_message(request: "Request") -> tuple[NewMessage, list[Attached]]:
    """Return the message of a request, and the files of a multipart one.

    Raises:
        RequestValidationError, Problem: 422, 413, 415.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return await _multipart(request)
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise problem("unsupported_media_type", "send application/json or multipart/form-data")
    return checked(await request.body()), []


def checked(body: bytes) -> NewMessage:
    """Return the message that JSON describes; raises RequestValidationError."""
    try:
        return NewMessage.model_validate_json(body)
    except ValidationError as error:
        rows = [{**row, "loc": ("body", *row["loc"])} for row in error.errors(include_url=False)]
        raise RequestValidationError(rows) from None


async def _multipart(request: "Request") -> tuple[NewMessage, list[Attached]]:
    import msgspec

    async with request.form(max_files=MOST_IMAGES, max_fields=10) as form:
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        message = checked(msgspec.json.encode(fields))
        files = [value for value in form.getlist("files") if not isinstance(value, str)]
        found: list[Attached] = []
        for number, file in enumerate(files, 1):
            if (file.size or 0) > PICTURE_BYTES:
                raise problem("too_large", f"an attachment is larger than {PICTURE_BYTES} bytes")
            name = re.split(r"[/\\]", file.filename or "")[-1]
            plain = _PLAIN.sub("_", name)[:100].strip(".") or f"attachment-{number}"
            found.append(Attached(plain, await file.read()))
        return message, found


async def content_of(
    context: "ServerContext", thread_id: str, message: NewMessage, files: list[Attached]
) -> str | list[dict[str, Any]]:
    """Return a message's content as sessions take it.

    Images go to the blob store; other files of a multipart message go onto the conversation's branch, where
    the agent can read them, and are named in the text.

    Raises:
        Problem: 413 too large, 415 a file of the branch is no image, 404 there is no such file.
    """
    images: list[bytes] = []
    names: list[str] = []
    for file in files:
        if picture_type(file.content) is not None:
            images.append(file.content)
        else:
            names.append(await _put(context, thread_id, file))
    images += [await _bytes_of(context, thread_id, attachment) for attachment in message.attachments]
    text = "\n".join([message.content, *(f"[attached file: {name}]" for name in names)])
    if not images:
        return text
    if len(images) > MOST_IMAGES or sum(map(len, images)) > IMAGES_BYTES:
        raise problem("too_large", f"at most {MOST_IMAGES} images of {IMAGES_BYTES} bytes together")
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    for image in images:
        block = await picture_block(context.store, image)
        if block is None:
            raise problem("unsupported_media_type", "an attachment is not a PNG, JPEG, GIF or WebP image")
        blocks.append(block)
    return blocks


async def _put(context: "ServerContext", thread_id: str, file: Attached) -> str:
    """Put a file on the conversation's branch under a name that is free; returns its path."""
    branch = await context.sessions.branch(thread_id)
    stem, dot, suffix = file.name.partition(".")
    for number in range(1, 1000):
        path = f"{FILES_DIR}/{stem}{f'-{number}' if number > 1 else ''}{dot}{suffix}"
        if await branch.stat(path) is None:
            await branch.write_file(path, file.content)
            return path
    raise problem("conflict", f"there are too many attachments called {file.name}")


async def _bytes_of(context: "ServerContext", thread_id: str, attachment: Attachment) -> bytes:
    if isinstance(attachment, DataImage):
        text = attachment.url.partition(",")[2].rstrip("=")
        text = text[:-1] if len(text) % 4 == 1 else text  # one character alone says nothing
        content = base64.b64decode(text + "=" * (-len(text) % 4))
    else:
        branch = await context.sessions.branch(thread_id)
        content = await branch.read_bytes(attachment.path, length=PICTURE_BYTES + 1)
    if len(content) > PICTURE_BYTES:
        raise problem("too_large", f"an image is larger than {PICTURE_BYTES} bytes")
    return content
