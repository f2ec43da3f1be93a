"""Files as people see them: listing, text, upload, download (SV-14 … SV-17).

Here: the routes. Not here: the view rule (`files.py`), bodies (`multipart.py`), landing uploads.
"""

import os
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.responses import Response

from bowerbird.core.threads import to_thread
from bowerbird.server.common.json_answers import answer
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.files import list_files, list_names, open_file, virtual
from bowerbird.server.conversations.review import branch_of
from bowerbird.server.conversations.uploads import (
    land_upload,
    placed,
    put_on_branch,
    staging,
    upload_place,
    workspace_of_uploads,
)
from bowerbird.server.http.downloads import file_answer, is_known, validators
from bowerbird.server.http.multipart import receive_files
from bowerbird.server.routes.common import MULTIPART_FILES, Context, ConversationId, Shown, User, Viewer
from bowerbird.sessions.file_text import shown_file


class _Anything(PathConvertor):
    """As `path`, and a file's name may hold a line break."""

    regex = r"[\s\S]*"


register_url_convertor("anything", _Anything())
router = APIRouter(prefix="/api", tags=["files"])

Which = Annotated[
    str | None,
    Query(max_length=200, description="A conversation's branch; `none` = only what has landed."),
]

At = Annotated[
    str | None,
    Query(max_length=200, description="A turn or snapshot of that conversation: as it was then."),
]


class FileRow(Shown):
    """A file of a listing, its path without a leading slash.

    `conversation_id` null = it is in the workspace.
    """

    name: str
    path: str
    size: int
    conversation_id: str | None
    state: str


class NamesShown(Shown):
    """Paths of files without a leading slash, those that git ignores left out."""

    names: list[str]
    truncated: bool


class FileShown(Shown):
    """A file, its path without a leading slash, with its text, null for a binary one."""

    path: str
    name: str
    size: int
    content: str | None
    binary: bool
    language: str | None
    truncated: bool


class UploadShown(Shown):
    """Where uploaded files are now, without a leading slash."""

    uploaded: list[str]


_BYTES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
    206: {
        "description": "A range",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    },
}


@router.get(
    "/workspace/files", response_model=list[FileRow], summary="Files, an agent's before they land too"
)
async def files(
    context: Context,
    caller: Viewer,
    conversation: Which = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
    at: At = None,
) -> Response:
    """Per path the newest change among the caller's open branches, else the workspace.

    `X-Truncated: true` says that there are more.
    """
    rows, more = await list_files(context, caller, conversation, limit, at)
    return answer(rows, headers={"X-Truncated": "true"} if more else None)


@router.get("/workspace/names", response_model=NamesShown, summary="Names to complete from")
async def names(
    context: Context,
    caller: Viewer,
    conversation: Annotated[
        str | None, Query(max_length=200, description="Its branch; the default workspace without one.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200_000)] = 200_000,
) -> Response:
    """What `@` completes while a message is typed: no ignored files, no sizes."""
    return answer(await list_names(context, caller, conversation, limit))


@router.get("/workspace/file/{path:anything}", response_model=FileShown, summary="One file's text")
async def file(
    path: str, request: Request, context: Context, caller: Viewer, conversation: Which = None, at: At = None
) -> Response:
    """The same view rule; text is cut at 102,400 bytes. Links never lead outside. 304 as for downloads."""
    opened = await open_file(context, caller, path, conversation, at)
    headers = validators(opened)
    if is_known(request.headers, headers):
        os.close(opened.fd)
        return Response(status_code=304, headers=headers)
    return answer(await to_thread(shown_file, opened), headers=headers)


@router.post(
    "/workspace/upload", response_model=UploadShown, openapi_extra=MULTIPART_FILES, summary="Upload files"
)
async def upload(
    request: Request,
    context: Context,
    caller: User,
    subdir: Annotated[
        str,
        Query(
            max_length=4096,
            description="From the workspace's top; with a leading slash only where it exists.",
        ),
    ] = "",
    conversation: Annotated[str | None, Query(max_length=200)] = None,
    accept: Annotated[list[str] | None, Query(max_length=1000, description="Paths accepted by name.")] = None,
) -> Response:
    """All files or none: onto a conversation's branch, else as a landing of the caller's (undoable).

    409 `landing_refused` for a path that programs would run or obey unless it is named in `accept`.
    """
    row = None if conversation is None else await owned_session(context, caller, conversation)
    base = None if row is None else (await branch_of(context, row)).browse()
    above = await upload_place(context, subdir, base)
    context.store.require_space()
    async with staging(context.data_dir) as directory:
        kind = request.headers.get("content-type", "")
        received = await receive_files(request.stream(), kind, directory, context.settings)
        targets = placed(above, received)
        if row is not None:
            paths = await put_on_branch(await branch_of(context, row), targets)
            await context.sessions.note_changes(row.thread_id)
        else:
            paths = await land_upload(context, caller, workspace_of_uploads(context), targets, accept or ())
    return answer({"uploaded": paths})


@router.get("/files/{conversation_id}/{path:anything}", responses=_BYTES, response_class=Response,
            summary="Download a file")  # fmt: skip
async def download(
    conversation_id: ConversationId,
    path: str,
    request: Request,
    context: Context,
    caller: Viewer,
    version: Literal["new", "old"] = "new",
    at: At = None,
) -> Response:
    """From the conversation's branch, always as an attachment; one byte range is served as 206.

    `version=old`: as the file was before the branch changed it. 304 when `If-None-Match` has its `ETag`, or
    nothing changed since `If-Modified-Since`.
    """
    row = await owned_session(context, caller, conversation_id)
    if version == "old":
        branch = await branch_of(context, row)
        opened = await to_thread(branch.open_base, virtual(path))
    else:
        opened = await open_file(context, caller, path, row.thread_id, at)
    return file_answer(opened, request.headers)
