"""The tool `apply_patch` (TO-19): a patch over several files, all of it or nothing.

Here: which files are read, written, moved, and taken back when one refuses. Not here:
the patch's text (`patch_text.py`).
"""

import hashlib
import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.core.errors import BowerbirdError, Exists, NotFound, ToolError, WorkspaceError
from bowerbird.core.threads import to_thread
from bowerbird.tools.context import ToolContext
from bowerbird.tools.files import reads
from bowerbird.tools.files.patch_text import FilePatch, apply_hunks, parse_patch
from bowerbird.tools.files.text import DIFF_BYTES, diff_data
from bowerbird.tools.result import ToolResult

if TYPE_CHECKING:
    from bowerbird.workspace import Branch


class _Plan(msgspec.Struct, frozen=True):
    """One file's change: `before` and `after` are contents, None where there is no file."""

    patch: FilePatch
    before: bytes | None
    after: bytes | None


async def apply_patch(patch: str, context: ToolContext) -> ToolResult:
    """Apply a patch to several files at once: either all of it, or nothing is changed.

    Args:
        patch: A unified diff, or `*** Begin Patch` with `*** Update File: PATH` and `@@` hunks.
    """
    branch = context.files.as_call()
    plans = [await _planned(branch, one) for one in await to_thread(parse_patch, patch)]
    done: list[_Plan] = []
    try:
        for plan in plans:
            done.append(plan)
            await _carry_out(branch, plan)
    except WorkspaceError as error:
        await to_thread(branch.rollback, branch.call_mark())
        raise ToolError(f"{plans[len(done) - 1].patch.name}: {error}; nothing was changed") from error
    finally:
        if branch is not context.files:
            await to_thread(branch.settle)
    for plan in plans:  # not before: what a refused patch took back is still what was read
        _remember(context, plan)
    lines = [_told(plan) for plan in plans]
    written = [p.patch.new for p in plans if p.patch.new is not None]
    deleted = [p.patch.old for p in plans if p.patch.new is None or p.patch.renamed]
    changes = [(plan.patch.name, plan.before, plan.after) for plan in plans]
    diff = await to_thread(lambda: diff_data(changes))
    return ToolResult("\n".join(lines), data={"written": written, "deleted": deleted} | diff)


async def diff_before(tool: str, arguments: Mapping[str, Any], branch: "Branch") -> dict[str, Any]:
    """Return `diff` of a change that waits for a person's word, {} where it cannot be told beforehand.

    Args:
        tool: its name; `write_file`, `edit_file` and `apply_patch` are known.
    """
    path = str(arguments.get("path", ""))
    try:
        if tool == "apply_patch":
            files = await to_thread(parse_patch, str(arguments.get("patch", "")))
            plans = [await _planned(branch, one) for one in files]
            changes = [(plan.patch.name, plan.before, plan.after) for plan in plans]
        elif tool == "write_file":
            after = str(arguments.get("content", "")).encode("utf-8", "replace")
            changes = [(path, await _bytes_or_none(branch, path), after)]
        elif tool == "edit_file":
            before = await branch.read_bytes(path, 0, DIFF_BYTES + 1)
            old, new = (str(arguments.get(name, "")).encode("utf-8", "replace") for name in ("old", "new"))
            if not old or old not in before:
                return {}  # the tool will say what is wrong
            changes = [(path, before, before.replace(old, new, -1 if arguments.get("replace_all") else 1))]
        else:
            return {}
    except (BowerbirdError, OSError):
        return {}  # the tool will say what is wrong
    return await to_thread(lambda: diff_data(changes))


async def _bytes_or_none(branch: "Branch", path: str) -> bytes | None:
    try:
        return await branch.read_bytes(path, 0, DIFF_BYTES + 1)
    except NotFound:
        return None


def patch_keys(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the paths a call of `apply_patch` writes, for calls that run in sequence."""
    try:
        files = parse_patch(str(arguments.get("patch", "")))
    except ToolError:
        return ()
    names = {name for one in files for name in (one.old, one.new) if name}
    return tuple(sorted(f"path:{posixpath.normpath('/' + n.lstrip('/'))}" for n in names))


async def _planned(branch: "Branch", patch: FilePatch) -> _Plan:
    before: bytes | None = None
    if patch.old is not None:
        try:
            before = await branch.read_bytes(patch.old)
        except NotFound as error:
            if patch.renamed or not patch.makes_only:
                raise ToolError(f"{error}; nothing was changed") from error
            patch.old = None
    elif patch.new is not None and await _exists(branch, patch.new):
        raise Exists(f"{patch.new}: the patch creates it, but it exists; nothing was changed", patch.new)
    left = b"" if patch.is_whole else await to_thread(apply_hunks, before or b"", patch)
    after = None if patch.new is None else left
    if patch.new is None and left:
        raise ToolError(
            f"{patch.name}: the patch deletes it, but it holds more than that; nothing was changed"
        )
    if patch.renamed and patch.new is not None and await _exists(branch, patch.new):
        raise Exists(f"{patch.new}: the patch renames to it, but it exists; nothing was changed", patch.new)
    if after == before and patch.old == patch.new and patch.executable is None:
        raise ToolError(f"{patch.name}: the patch changes nothing in it; nothing was changed")
    return _Plan(patch, before, after)


async def _exists(branch: "Branch", path: str) -> bool:
    try:
        await branch.read_bytes(path, 0, 1)
    except NotFound:
        return False
    except WorkspaceError:
        return True  # a directory or a special file: there is something
    return True


async def _carry_out(branch: "Branch", plan: _Plan) -> None:
    patch = plan.patch
    if patch.old is not None and (patch.new is None or patch.renamed):
        # The patch fits what was read of the file, and no other bytes.
        if patch.new is None:
            await branch.delete(patch.old, if_hash=_hash(plan.before or b""))
        else:
            await branch.move(patch.old, patch.new, if_hash=_hash(plan.before or b""))
    if patch.new is not None and plan.after is not None and (plan.after != plan.before or patch.old is None):
        # One that was moved here a moment ago is the branch's own by now.
        expected = None if plan.before is None or patch.renamed else _hash(plan.before)
        await branch.write_file(patch.new, plan.after, if_hash=expected)
    if patch.new is not None and patch.executable is not None:
        await branch.set_executable(patch.new, patch.executable)


def _remember(context: ToolContext, plan: _Plan) -> None:
    """Take what it made for seen where all of it was: a hunk fits beside lines that were never read."""
    old, new = plan.patch.old, plan.patch.new
    seen = old is None or context.reads.seen(reads.key(context.files, old)) == _hash(plan.before or b"")
    if old is not None and old != new:
        reads.gone(context, old)
    if new is not None and seen:
        reads.saw(context, new, _hash(plan.after or b""))


def _hash(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _told(plan: _Plan) -> str:
    patch = plan.patch
    if patch.new is None:
        return f"deleted {patch.old}"
    if patch.old is None:
        return f"created {patch.new}"
    if not patch.hunks and not patch.renamed:
        return f"made {patch.new} {'executable' if patch.executable else 'not executable'}"
    count = f"{len(patch.hunks)} hunk{'' if len(patch.hunks) == 1 else 's'}"
    return f"moved {patch.old} to {patch.new}, {count}" if patch.renamed else f"changed {patch.new}, {count}"
