"""The file tools (TO-11 … TO-19): names, defaults and what the model sees.

Here: the bridge between a model's calls and a branch. Not here: semantics, limits and
errors of files (`workspace/`), formatting (`text.py`), aliases (`aliases.py`).
"""

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bowerbird.core.errors import BinaryFile, NotFound, WorkspaceError
from bowerbird.core.messages import BlobSource, Block, ImageBlock, TextBlock
from bowerbird.core.pictures import PICTURE_BYTES, picture_type
from bowerbird.core.threads import to_thread
from bowerbird.tools.context import ToolContext
from bowerbird.tools.files import aliases, reads
from bowerbird.tools.files import text as file_text
from bowerbird.tools.files.similar import similar_paths
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool


async def read_file(
    path: str, context: ToolContext, offset: int = 1, limit: int = 0, include_line_numbers: bool = False
) -> ToolResult:
    """Read a text file, or look at an image. Lines are counted from 1; no line numbers are added.

    Args:
        path: The file, relative to the root.
        offset: First line to read.
        limit: How many lines to read; 0 for all that fit one page.
        include_line_numbers: Whether to put line numbers before the lines.
    """
    try:
        record = await context.files.read_file(path, offset, limit)
    except NotFound as error:
        near = await similar_paths(context.files, path)
        raise NotFound(f"{error}; similar: {', '.join(near)}" if near else str(error), path) from error
    if record["binary"]:
        return await _binary(path, record, context)
    reads.saw(context, path, record["hash"])
    if not record["content"] and offset > 1 and record["total_lines"] is not None:
        count = int(record["total_lines"])
        lines = f"{count:,} line{'' if count == 1 else 's'}"
        note = f"[{file_text.shown(path)} has {lines}; offset {offset} is beyond its end]"
        return ToolResult(note, data=record)
    text, cut = file_text.page(record, numbered=include_line_numbers, limit=context.result_chars)
    return ToolResult(text, data=record, truncated=cut or bool(record["truncated"]))


async def list_files(
    context: ToolContext, pattern: str = "**/*", offset: int = 1, limit: int = 0
) -> ToolResult:
    """List files by a glob pattern; ignored directories such as .git are left out.

    Args:
        pattern: Glob: `*` in a name, `**` across directories, `{a,b}` alternatives.
        offset: Number of the first path to show, counted from 1.
        limit: How many paths to show; 0 for as many as possible.
    """
    record = await context.files.list_files(pattern, offset, limit)
    return ToolResult(file_text.listing(record), data=record, truncated=bool(record["truncated"]))


async def ls(context: ToolContext, path: str = "/", offset: int = 1, limit: int = 1000) -> ToolResult:
    """List one directory; directories end in a slash.

    Args:
        path: The directory, relative to the root.
        offset: Number of the first entry to show, counted from 1.
        limit: How many entries to show.
    """
    record = await context.files.ls(path, offset, limit)
    return ToolResult(file_text.directory(record, offset), data=record, truncated=bool(record["truncated"]))


async def search_files(
    pattern: str,
    run: ToolContext,
    *,
    glob: str = "**/*",
    offset: int = 1,
    limit: int = 100,
    fixed: bool = False,
    case_sensitive: bool = True,
    context: int = 0,
) -> ToolResult:
    """Search the text of files by a regular expression; shows `path:line: text`.

    Args:
        pattern: Regular expression (no look-around, no backreferences).
        glob: Which files to search.
        offset: Number of the first match to show, counted from 1.
        limit: How many matches to show.
        fixed: Take the pattern as plain text.
        case_sensitive: Whether upper and lower case differ.
        context: How many lines to show around each match.
    """
    record = await run.files.search_files(
        pattern, glob, offset, limit, fixed=fixed, case_sensitive=case_sensitive, context=context
    )
    return ToolResult(file_text.matches(record), data=record, truncated=bool(record["truncated"]))


async def write_file(path: str, content: str, context: ToolContext) -> ToolResult:
    """Create a file or replace all of its content; missing directories are made.

    Args:
        path: The file, relative to the root.
        content: The whole new content.
    """
    expected = await reads.check_write(context, path)
    note = await _new_tree(context, path)
    before = await _bytes_of(context, path)
    seen = context.reads.seen(reads.key(context.files, path)) or ""
    record = await context.files.write_file(path, content, if_hash=expected, seen=seen, as_before=True)
    reads.saw(context, path, record["hash"])
    done = "created" if record["created"] else "replaced"
    kept = f"\nNote: {record['note']}." if "note" in record else ""
    text = f"{done} {file_text.shown(record['written'])} ({record['bytes']:,} bytes){note}{kept}"
    data = {"written": record["written"], "bytes": record["bytes"]}
    after = await _bytes_of(context, path) if kept else content.encode("utf-8", "replace")
    diff = await _diff(record["written"], before, after)
    return ToolResult(text, data=data | diff)


async def edit_file(
    path: str, old: str, new: str, context: ToolContext, replace_all: bool = False
) -> ToolResult:
    """Replace text in a file; everything else stays as it is, byte for byte.

    Args:
        path: The file, relative to the root.
        old: The text to replace, exactly as in the file; it must occur once.
        new: The text to put there.
        replace_all: Replace every occurrence instead of exactly one.
    """
    branch = context.files
    before, old_bytes = await _text_of(context, path), await _bytes_of(context, path)
    record = await branch.edit_file(path, old, new, replace_all)
    meanwhile = reads.edited(context, path, record["was"], record["hash"])
    after = await _text_of(context, path)
    count = record["replacements"]
    lines = [f"{file_text.shown(record['path'])}: {count} replacement{'' if count == 1 else 's'}"]
    if meanwhile:
        lines.append("Note: the file had been changed by someone else since you read it.")
    if before is not None and after is not None:
        lines.append(file_text.short_diff(before, after))
    data = {"path": record["path"], "replacements": count}
    shown = await _diff(record["path"], old_bytes, await _bytes_of(context, path))
    return ToolResult("\n".join(lines), data=data | shown)


async def delete_file(path: str, context: ToolContext, recursive: bool = False) -> ToolResult:
    """Delete a file, a link or a directory.

    Args:
        path: What to delete, relative to the root.
        recursive: Also delete a directory that is not empty.
    """
    record = await context.files.delete(path, recursive)
    reads.gone(context, path)
    names = [file_text.shown(p) for p in record["deleted"][:20]]
    more = f" … ({record['count']:,} in all)" if record["count"] > len(names) else ""
    return ToolResult(f"deleted {', '.join(names)}{more}", data=record)


async def move_file(src: str, dst: str, context: ToolContext, overwrite: bool = False) -> ToolResult:
    """Move or rename a file or directory.

    Args:
        src: What to move.
        dst: Its new path.
        overwrite: Replace what is at the new path.
    """
    record = await context.files.move(src, dst, overwrite)
    reads.gone(context, src)
    reads.gone(context, dst)
    text = f"moved {file_text.shown(record['from'])} to {file_text.shown(record['to'])}"
    return ToolResult(text, data=record)


async def show_changes(context: ToolContext, paths: list[str] = []) -> ToolResult:  # noqa: B006 - never changed; the schema shows []
    """Show everything changed on this branch since its start, as a unified diff.

    Args:
        paths: Only these files or directories; none for all.
    """
    branch, limit = context.files, context.result_chars
    text, left = await to_thread(lambda: file_text.diff_pages(branch.patches(paths or None), limit))
    if not text:
        return ToolResult("no changes", data={"patch": "", "left_out": []})
    if left:
        names = ", ".join(left[:50]) + (" …" if len(left) > 50 else "")
        text += f"[{len(left)} more files; call show_changes with paths: {names}]"
    return ToolResult(text, data={"patch": text, "left_out": left}, truncated=bool(left))


def file_tools() -> list[Tool]:
    """Return the tools of group `files`; they act on the branch of their call's context."""
    from bowerbird.tools.files.patches import apply_patch, patch_keys

    named = {"file_path": "path"}
    edits = {"old_text": "old", "new_text": "new", "old_string": "old", "new_string": "new"}
    return [
        Tool(
            read_file,
            effect="read",
            aliases=("read_file_range",),
            parameters=named,
            adapters={"read_file_range": aliases.read_file_range},
            hidden=frozenset({"include_line_numbers"}),
        ),
        Tool(list_files, effect="read", aliases=("glob",), adapters={"glob": aliases.glob}),
        Tool(ls, effect="read"),
        Tool(
            search_files,
            effect="read",
            aliases=("grep", "search_code"),
            adapters={"grep": aliases.grep, "search_code": aliases.search_code},
        ),
        Tool(write_file, effect="branch", parameters=named, serial=_keys("path")),
        Tool(edit_file, effect="branch", parameters={**named, **edits}, serial=_keys("path")),
        Tool(delete_file, effect="branch", parameters=named, serial=_keys("path")),
        Tool(move_file, effect="branch", serial=_keys("src", "dst")),
        Tool(show_changes, effect="read"),
        Tool(apply_patch, effect="branch", parameters={"input": "patch"}, serial=patch_keys),
    ]


async def _new_tree(context: ToolContext, path: str) -> str:
    """Return a note for a new path that nobody may have meant: another case, a place outside."""
    branch = context.files
    name = reads.key(branch, path)
    top = "/" + name[1:].partition("/")[0]
    for part in dict.fromkeys((name, top, posixpath.dirname(name))):
        try:
            await branch.read_bytes(part, 0, 1)
        except NotFound as error:
            near = str(error).partition("; did you mean ")[2].removesuffix("?")
            if near:
                return f"\nNote: {near} exists; {file_text.shown(part)} is another path."
            if part == top and path.startswith("/") and not _is_inside(path, branch.root):
                return f"\nNote: paths begin at the workspace; {path} outside of it was not touched."
        except WorkspaceError:
            continue  # it stands there, or the write itself says what is wrong
        else:
            break
    return ""


def _is_inside(path: str, root: Path | None) -> bool:
    return root is not None and (path == str(root) or path.startswith(f"{root}/"))


def _keys(*names: str) -> Callable[[Mapping[str, Any]], tuple[str, ...]]:
    def keys(arguments: Mapping[str, Any]) -> tuple[str, ...]:
        given = [str(arguments[n]) for n in names if n in arguments]
        return tuple(f"path:{posixpath.normpath('/' + g.lstrip('/'))}" for g in given)

    return keys


async def _binary(path: str, record: Mapping[str, Any], context: ToolContext) -> ToolResult:
    head = await context.files.read_bytes(path, 0, 16)
    kind = picture_type(head)
    size = int(record["size"])
    name = file_text.shown(path)
    if kind is None:
        return ToolResult(f"{name}: a binary file of {size:,} bytes", data=dict(record))
    if size > PICTURE_BYTES or context.store_blob is None:
        why = "images over 5 MiB are not shown" if size > PICTURE_BYTES else "images cannot be shown here"
        return ToolResult(f"{name}: {kind} of {size:,} bytes; {why}", data=dict(record))
    blob = await context.store_blob(await context.files.read_bytes(path), kind)
    blocks: list[Block] = [TextBlock(f"{name}: {kind} of {size:,} bytes"), ImageBlock(kind, BlobSource(blob))]
    return replace(ToolResult("", data=dict(record), blob=blob), content=blocks)


async def _text_of(context: ToolContext, path: str) -> str | None:
    """The file for a short diff; None when it is too long for one page of the workspace, or not text."""
    try:
        record = await context.files.read_file(path)
    except (BinaryFile, WorkspaceError):
        return None  # the edit itself says what is wrong
    return None if record["content"] is None or record["truncated"] else str(record["content"])


async def _bytes_of(context: ToolContext, path: str) -> bytes | None:
    """The file for the diff that people see, with one byte more than is compared; None when there is none."""
    try:
        return await context.files.read_bytes(path, 0, file_text.DIFF_BYTES + 1)
    except WorkspaceError:
        return None  # it is made now, or the change itself says what is wrong


async def _diff(path: str, before: bytes | None, after: bytes | None) -> dict[str, Any]:
    return await to_thread(lambda: file_text.diff_data([(path, before, after)]))
