"""How much of a result the model sees, and where the rest goes (TO-8, AG-51).

Here: the cut, pure, and the one call that stores what was cut. Not here: output of
processes, which is bounded while it is produced (`sandbox/`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from bowerbird.core.messages import Block, TextBlock
from bowerbird.tools.result import ToolResult

HEAD_SHARE = 0.7
_MARKER_ROOM = 200

Spill = Callable[[str, str], Awaitable[str]]


def cut_middle(text: str, limit: int, where: str = "") -> str:
    """Return `text` in at most `limit` characters: 70 % head, 30 % tail, cut at lines.

    Args:
        text: What may be too long.
        limit: Most characters of the result, marker included.
        where: Says where the rest can be read; ends the marker.

    Example:
        >>> len(cut_middle("line\\n" * 1000, 400)) <= 400
        True
    """
    if len(text) <= limit:
        return text
    room = max(0, limit - _MARKER_ROOM - len(where))
    head = _head(text, int(room * HEAD_SHARE))
    tail = _tail(text, room - int(room * HEAD_SHARE))
    omitted = len(text) - len(head) - len(tail)
    place = f"; {where}" if where else ""
    marker = f"[… {omitted:,} of {len(text):,} characters left out{place} …]"
    parts = [head.rstrip("\n"), marker, tail]
    return "\n".join(part for part in parts if part)[: max(limit, len(marker))]


def _head(text: str, room: int) -> str:
    at = text.rfind("\n", 0, room + 1)
    # A line longer than half the room is cut inside, else almost nothing would be shown.
    return text[: at + 1] if at >= room // 2 else text[:room]


def _tail(text: str, room: int) -> str:
    if room <= 0:
        return ""
    start = len(text) - room
    at = text.find("\n", start - 1)
    return text[at + 1 :] if 0 <= at <= start + room // 2 else text[start:]


async def bound(result: ToolResult, limit: int, name: str, spill: Spill | None) -> ToolResult:
    """Return `result` with at most `limit` characters of text; the whole is spilled first.

    Args:
        result: Of a tool.
        limit: Characters the model is shown.
        name: What the stored text is called, say the call's id.
        spill: Stores the text and returns a path for `read_file`; None: it is only cut.
    """
    if isinstance(result.content, str):
        if len(result.content) <= limit:
            return result
        content: str | list[Block] = await _shorten(result.content, limit, name, spill)
        return replace(result, content=content, truncated=True)
    texts = [b for b in result.content if isinstance(b, TextBlock)]
    if sum(len(b.text) for b in texts) <= limit:
        return result
    joined = await _shorten("\n".join(b.text for b in texts), limit, name, spill)
    rest = [b for b in result.content if not isinstance(b, TextBlock)]
    return replace(result, content=[TextBlock(joined), *rest], truncated=True)


async def _shorten(text: str, limit: int, name: str, spill: Spill | None) -> str:
    where = f"read the whole with read_file at {await spill(name, text)}" if spill else ""
    return cut_middle(text, limit, where)
