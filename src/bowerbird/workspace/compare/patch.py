"""Patch text that `git apply` takes, for one changed path or many.

Here: headers, modes, quoting of names, line hunks, git binary patches (WS-36).
Not here: which paths changed, hunk ids (`tree/hunks.py`).

The text is always valid Unicode: a file whose bytes are not UTF-8 goes as a git binary
patch, so that encoding the text as UTF-8 loses nothing.
"""

import base64
import zlib
from collections.abc import Iterator

from bowerbird.core.errors import LimitExceeded
from bowerbird.workspace.tree.content import Content, blob_id
from bowerbird.workspace.tree.hunks import patch_data, too_long
from bowerbird.workspace.tree.threeway import Side

TEXT_LIMIT = 16 * 1024 * 1024
PATCH_LIMIT = 512 * 1024 * 1024
_NO_BLOB = "0" * 40
_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def patch_sections(path: str, old: Side | None, new: Side | None, context: int = 3) -> list[str]:
    """Return the patch text that turns `old` into `new` at `path`, in sections with headers of their own.

    No section when git sees no difference, two for a change of type.

    Args:
        path: virtual path, `/a/b`.
        context: unchanged lines around each change.

    Raises:
        LimitExceeded: a side is above 512 MiB; export as `tar` instead.
    """
    before, after = _as_git(old), _as_git(new)
    if before is not None and after is not None and before[0][:3] != after[0][:3]:
        # git writes a change of type as a deletion and a creation of the same name
        sections = ["".join(_one(path, before, None, context)), "".join(_one(path, None, after, context))]
    else:
        sections = ["".join(_one(path, before, after, context))]
    return [section for section in sections if section]


def quote_name(name: str) -> str:
    """Return `name` as git writes it in patches: in C quotes when it needs them.

    Example:
        >>> quote_name("b/new\\nline")
        '"b/new\\\\nline"'
    """
    try:
        name.encode()
        plain = name.isprintable() and '"' not in name and "\\" not in name
    except UnicodeEncodeError:
        plain = False
    if plain:
        return name
    out: list[str] = []
    for byte in name.encode("utf-8", "surrogateescape"):
        if byte in _ESCAPES:
            out.append(_ESCAPES[byte])
        else:
            out.append(chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def _as_git(side: Side | None) -> tuple[str, Content] | None:
    """The side as git stores it: mode and bytes; directories are not stored."""
    if side is None or side.kind in ("dir", "special"):
        return None
    if side.kind == "symlink":
        return "120000", Content((side.target or "").encode("utf-8", "surrogateescape"))
    content = side.content if side.content is not None else Content(b"")
    return ("100755" if side.executable else "100644"), content


def _one(
    path: str, old: tuple[str, Content] | None, new: tuple[str, Content] | None, context: int
) -> Iterator[str]:
    if old is None and new is None:
        return
    for _, content in filter(None, (old, new)):
        if content.size > PATCH_LIMIT:
            raise LimitExceeded(
                f"{path[1:]} has {content.size} bytes, too many for a patch; export a tar", path
            )
    equal = old is not None and new is not None and old[1].same(new[1])
    if equal and old is not None and new is not None and old[0] == new[0]:
        return
    before, after = quote_name("a" + path), quote_name("b" + path)
    yield f"diff --git {before} {after}\n"
    yield from _modes(old, new)
    if equal:
        return
    old_id = blob_id(old[1]) if old else _NO_BLOB
    new_id = blob_id(new[1]) if new else _NO_BLOB
    same_mode = f" {new[0]}" if old and new and old[0] == new[0] else ""
    yield f"index {old_id}..{new_id}{same_mode}\n"
    yield from _body(old, new, (before, after), context)


def _modes(old: tuple[str, Content] | None, new: tuple[str, Content] | None) -> Iterator[str]:
    if old is None and new is not None:
        yield f"new file mode {new[0]}\n"
    elif new is None and old is not None:
        yield f"deleted file mode {old[0]}\n"
    elif old is not None and new is not None and old[0] != new[0]:
        yield f"old mode {old[0]}\nnew mode {new[0]}\n"


def _body(
    old: tuple[str, Content] | None, new: tuple[str, Content] | None, names: tuple[str, str], context: int
) -> Iterator[str]:
    sides = [side[1] for side in (old, new) if side is not None]
    text = _lines(old[1] if old else Content(b""), new[1] if new else Content(b""), context)
    if text is None:
        yield "GIT binary patch\n"
        yield from _literal(new[1] if new else Content(b""))
        yield from _literal(old[1] if old else Content(b""))
    elif any(side.size for side in sides):
        yield f"--- {_label(names[0]) if old else '/dev/null'}\n"
        yield f"+++ {_label(names[1]) if new else '/dev/null'}\n"
        yield text


def _label(name: str) -> str:
    """A name with spaces ends in a tab here, or patch tools would stop reading at the space."""
    return name + "\t" if " " in name and not name.startswith('"') else name


def _lines(old: Content, new: Content, context: int) -> str | None:
    """The line hunks as text, None when the bytes must go as a binary patch."""
    if max(old.size, new.size) > TEXT_LIMIT:
        return None
    before, after = old.read(), new.read()
    if b"\0" in before or b"\0" in after or too_long(before, after):
        return None
    try:
        return patch_data(before, after, context).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _literal(content: Content) -> Iterator[str]:
    """Git's `literal`: deflated bytes in lines of at most 52, each behind its length letter."""
    yield f"literal {content.size}\n"
    packed = zlib.compress(content.read())
    for start in range(0, len(packed), 52):
        piece = packed[start : start + 52]
        length = chr(ord("A") + len(piece) - 1) if len(piece) <= 26 else chr(ord("a") + len(piece) - 27)
        yield length + base64.b85encode(piece, pad=True).decode("ascii") + "\n"
    yield "\n"
