"""Sessions and their files as resources, presets as prompts (PT-13).

Here: what an address names, and reading it. Not here: the SDK's types (`server.py`).
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import msgspec

from bowerbird.core.errors import BowerbirdError, LimitExceeded
from bowerbird.core.threads import to_thread
from bowerbird.protocols.mcp_server.branch_tools import virtual
from bowerbird.protocols.mcp_server.ground import McpCaller, McpGround
from bowerbird.protocols.mcp_server.owned import owned_branch, owned_session
from bowerbird.sessions import shown

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

PREFIX = "bowerbird://sessions/"
SESSION_TEMPLATE = PREFIX + "{thread_id}"
FILE_TEMPLATE = PREFIX + "{thread_id}/files/{+path}"
MOST_BYTES = 1 << 20
MESSAGES = 50


class UnknownResource(Exception):
    """Nothing has this address for the caller."""


@dataclass(frozen=True, slots=True)
class Address:
    """What an address names; `path` None = the session itself."""

    thread_id: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """What a resource holds: `text`, or `data` where it is none."""

    mime_type: str
    text: str | None = None
    data: bytes = b""


def address_of(uri: str) -> Address | None:
    """Return what an address names, None for one that is none of ours.

    Example:
        >>> address_of("bowerbird://sessions/0123456789ab/files/src/a%20b.py")
        Address(thread_id='0123456789ab', path='src/a b.py')
    """
    if not uri.startswith(PREFIX):
        return None
    thread_id, slash, rest = uri[len(PREFIX) :].partition("/")
    if not thread_id or "?" in uri or "#" in uri:
        return None
    if not slash:
        return Address(unquote(thread_id))
    word, slash, path = rest.partition("/")
    return Address(unquote(thread_id), unquote(path)) if word == "files" and slash and path else None


def session_uri(thread_id: str) -> str:
    """Return the address of a session."""
    return PREFIX + quote(thread_id, safe="@:")


async def read(ground: McpGround, caller: McpCaller, uri: str) -> Content:
    """Return what a resource holds.

    Raises:
        UnknownResource: nothing of the caller's has this address. LimitExceeded: it is larger than 1 MiB.
    """
    address = address_of(uri)
    if address is None:
        raise UnknownResource
    try:
        if address.path is None:
            return await _session(ground, caller, address.thread_id)
        branch = await owned_branch(ground, caller, address.thread_id)
        return await to_thread(_file, ground, branch, virtual(address.path))
    except LimitExceeded:
        raise
    except (BowerbirdError, OSError):  # whatever is in the way, there is no such file to be read
        raise UnknownResource from None


async def _session(ground: McpGround, caller: McpCaller, thread_id: str) -> Content:
    row = await owned_session(ground, caller, thread_id)
    messages = (await ground.sessions.messages(row.thread_id))[-MESSAGES:]
    body: dict[str, Any] = {
        "thread_id": row.thread_id,
        "title": row.title,
        "status": row.status,
        "workspace": shown.workspace_name(row.workspace),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "changed_files": row.changed_files,
        "messages": [{"role": m.role, "content": m.content, "created_at": m.created_at} for m in messages],
    }
    return Content("application/json", ground.redact(msgspec.json.encode(body).decode()))


def _file(ground: McpGround, branch: "Branch", path: str) -> Content:
    file = branch.browse().open(path)
    try:
        if file.size > MOST_BYTES:
            raise LimitExceeded(f"the file has {file.size:,} bytes; {MOST_BYTES:,} can be read", path)
        data = os.pread(file.fd, MOST_BYTES, 0)
    finally:
        os.close(file.fd)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Content("application/octet-stream", data=data)
    if "\0" in text:
        return Content("application/octet-stream", data=data)
    return Content("text/plain", ground.redact(text))
