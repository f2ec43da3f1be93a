"""`@path` in a message: what is named goes along with it (UI-73).

Here: finding what a text names, the attachments that are made of it, the names of a branch while they are
needed. Not here: how names fit (`names.py`), the menu (`completer.py`).

A file goes along with its content where it is small; a larger one, a binary one and a directory go along as
what they are, and the agent reads of them what it needs.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable

import msgspec

from bowerbird.cli.client.protocol import Client, Row
from bowerbird.cli.run.names import Names
from bowerbird.cli.terminal.text import plural, size
from bowerbird.core.errors import BowerbirdError
from bowerbird.core.threads import to_thread

SMALL_CHARS = 16_000
TOGETHER_CHARS = 64_000
MOST_MENTIONS = 20
MOST_LISTED = 100
FRESH_S = 20.0
_QUOTED = r'"((?:[^"\\\n]|\\[^\n])'  # inside quotes a backslash makes the next character an ordinary one
_MENTION = re.compile(rf'(?<!\S)@(?:{_QUOTED}{{1,1000}})"|([^\s"]+))')
_TYPED = re.compile(rf'(?<!\S)@(?:{_QUOTED}{{0,1000}})\\?|([^\s"]*))$')
_ESCAPED = re.compile(r"\\(.)")
_LONGEST = 2_048  # characters of a name as it is typed, and what stands before it
_AFTER = ".,;:!?)]}'"


def typed_mention(before: str) -> str | None:
    """Return what is typed of a name at the end of a text, None where no name is typed.

    Example:
        >>> typed_mention("look at @src/a"), typed_mention("mail me@home"), typed_mention("@")
        ('src/a', None, '')
    """
    found = _TYPED.search(before[-_LONGEST:])  # asked for at every key, however long the message is
    return None if found is None else _plain(found[1], found[2])


def mention_of(name: str) -> str:
    """Return what is typed for a name; one with the end of a line in it cannot be typed.

    Example:
        >>> mention_of("a.py"), mention_of("two words.txt"), mention_of('"a" b')
        ('@a.py', '@"two words.txt"', '@"\\\\"a\\\\" b"')
    """
    if not re.search(r'[\s"]', name):
        return f"@{name}"
    return '@"' + re.sub(r'(["\\])', r"\\\1", name) + '"'


def _plain(quoted: str | None, word: str | None) -> str:
    return word or "" if quoted is None else _ESCAPED.sub(r"\1", quoted)


def mentioned(text: str) -> list[str]:
    """Return the names in a text, each once, in their order.

    Example:
        >>> mentioned('compare @a.py, @"b c.py" and me@home')
        ['a.py,', 'b c.py']
    """
    found = (_plain(each[1], each[2]) for each in _MENTION.finditer(text))
    return list(dict.fromkeys(found))[:MOST_MENTIONS]


class Attached(msgspec.Struct, frozen=True):
    """A message with what goes along, and a word about each of these for the person."""

    text: str
    said: tuple[str, ...] = ()


class BranchNames:
    """The names of the branch that is talked about, read when they are first needed and when they are old.

    Args:
        read: returns the paths of the files.
    """

    def __init__(self, read: Callable[[], Awaitable[list[str]]]) -> None:
        self._read = read
        self._names: Names | None = None
        self._until = 0.0
        self._reading: asyncio.Task[Names] | None = None

    def forget(self) -> None:
        """Read them again when they are needed: a turn or a command may have changed them."""
        self._until = 0.0

    async def get(self) -> Names:
        """Return the names; none where they cannot be read, say while a server is away."""
        if self._names is not None and time.monotonic() < self._until:
            return self._names
        if self._reading is None:
            self._reading = asyncio.create_task(self._made(), name="names of the branch")
        reading = self._reading
        try:
            # Shielded: whoever waits may be a key that is typed over; the next one goes on waiting.
            names = await asyncio.shield(reading)
        except (BowerbirdError, OSError):
            return self._names or Names(())
        finally:
            if reading.done() and self._reading is reading:
                self._reading = None
        self._names, self._until = names, time.monotonic() + FRESH_S
        return names

    async def _made(self) -> Names:
        return await to_thread(Names, await self._read())


async def attached(
    client: Client, thread_id: str, names: BranchNames, text: str, named_in: str | None = None
) -> Attached:
    """Return a message with what it names; a word after an @ that names nothing is left as it is.

    Args:
        named_in: the part that a person typed; None = all of it.
    """
    parts: list[str] = []
    said: list[str] = []
    room = TOGETHER_CHARS
    for word in mentioned(text if named_in is None else named_in):
        found = await _found(client, thread_id, names, word)
        if found is None:
            continue
        part, about = _part(found, room)
        room -= len(part)
        parts.append(part)
        said.append(about)
    return Attached("\n\n".join([text, *parts]), tuple(said))


async def _found(client: Client, thread_id: str, names: BranchNames, word: str) -> Row | None:
    """Return the file that a word names, or a directory as `path` and `files`; also without its comma."""
    for path in dict.fromkeys(each.strip("/") for each in (word, word.rstrip(_AFTER))):
        if not path:
            return None
        try:
            return await client.file(thread_id, path)
        except (BowerbirdError, OSError):
            inside = (await names.get()).inside(path)
            if inside:
                return {"path": f"{path}/", "files": inside}
    return None


def _part(found: Row, room: int) -> tuple[str, str]:
    path = str(found["path"])
    name = path.replace('"', "&quot;")
    if "files" in found:
        files: list[str] = found["files"]
        listed = "\n".join(files[:MOST_LISTED])
        more = f"\n… {len(files) - MOST_LISTED} more" if len(files) > MOST_LISTED else ""
        about = plural(len(files), "file")
        return f'<attachment path="{name}">\nA directory, {about}:\n{listed}{more}\n</attachment>', (
            f"{path} ({about})"
        )
    content, bytes_ = found["content"], int(found["size"])
    if content is None or found["truncated"] or len(content) > min(SMALL_CHARS, room):
        what = "a binary file" if content is None else "a file that is too large to go along"
        about = f"{path} ({size(bytes_)}, only named)"
        return f'<attachment path="{name}">\n[{what}, {size(bytes_)}]\n</attachment>', about
    body = content if content.endswith("\n") else f"{content}\n"
    return f'<attachment path="{name}">\n{body}</attachment>', f"{path} ({size(bytes_)})"
