"""Pictures that are pasted or dropped at the prompt, and go along with the message (UI-73).

Here: what a paste names, the clipboard, which pictures a line names. Not here: other keys
(`prompt_screen.py`), files of the branch (`mentions.py`), sending.

A terminal pastes the path of what is dropped on it. Where that is a picture, a word like
`[image 1: plan.png]` stands for it, which can be moved and deleted like any text. Ctrl+V takes a picture from
the clipboard, through the program that the desktop has for it.
"""

import asyncio
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys

from bowerbird.core.pictures import PICTURE_BYTES, picture_type
from bowerbird.core.processes.host_programs import start
from bowerbird.core.threads import to_thread

MOST_KEPT = 20
CLIPBOARD_S = 3.0
_PATH_CHARS = 4096
_NAME_CHARS = 60
_WORD = re.compile(r"\[image (\d{1,6})(?:: [^\]\n]*)?\]")


def dropped_path(pasted: str) -> str | None:
    """Return the absolute path that a paste is, None for anything else.

    Example:
        >>> dropped_path("'/tmp/my plan.png' "), dropped_path("/tmp/my\\\\ plan.png")
        ('/tmp/my plan.png', '/tmp/my plan.png')
        >>> dropped_path("file:///tmp/a%20b.png"), dropped_path("look at /tmp/a.png")
        ('/tmp/a b.png', None)
    """
    text = pasted.strip()
    if "\n" in text or len(text) > _PATH_CHARS:
        return None
    try:
        words = [unquote(urlsplit(text).path)] if text.startswith("file://") else shlex.split(text)
    except ValueError:  # an open quote, an address that is none
        return None
    return words[0] if len(words) == 1 and words[0].startswith("/") and "\0" not in words[0] else None


def clipboard_command(platform: str, environment: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return what prints the clipboard's picture on this desktop, None without a desktop.

    Example:
        >>> clipboard_command("linux", {"WAYLAND_DISPLAY": "wayland-0"})
        ('wl-paste', '--type', 'image/png')
    """
    if platform == "darwin":
        return ("pngpaste", "-")
    if environment.get("WAYLAND_DISPLAY"):
        return ("wl-paste", "--type", "image/png")
    return (
        ("xclip", "-selection", "clipboard", "-t", "image/png", "-o") if environment.get("DISPLAY") else None
    )


class Pictures:
    """The pictures of one prompt, the newest 20; a line that is sent names those that go along.

    Args:
        say: shows a line to the person.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._kept: dict[int, bytes] = {}
        self._count = 0

    def keep(self, content: bytes, name: str = "") -> str:
        """Keep a picture and return the word that stands for it."""
        self._count += 1
        self._kept[self._count] = content
        self._kept.pop(self._count - MOST_KEPT, None)
        shown = re.sub(r"[^\w. -]", "_", name)[-_NAME_CHARS:]
        return f"[image {self._count}{f': {shown}' if shown else ''}]"

    def named_in(self, text: str) -> list[bytes]:
        """Return the pictures whose words a text has, each once."""
        numbers = dict.fromkeys(int(number) for number in _WORD.findall(text))
        return [self._kept[number] for number in numbers if number in self._kept]

    def bind(self, keys: KeyBindings) -> None:
        """Add what pasting and Ctrl+V do."""

        @keys.add(Keys.BracketedPaste)
        def paste(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - registered
            text = event.data.replace("\r\n", "\n").replace("\r", "\n")
            event.current_buffer.insert_text(text)
            if (path := dropped_path(text)) is not None:
                event.app.create_background_task(self._dropped(event.current_buffer, text, Path(path)))

        @keys.add("c-v")
        def from_clipboard(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - registered
            event.app.create_background_task(self._from_clipboard(event.current_buffer))

    async def _dropped(self, buffer: Buffer, text: str, path: Path) -> None:
        """Put a picture's word in the place of its path, where that still stands: Enter does not wait."""
        content = await to_thread(_picture, path)
        at = buffer.text.rfind(text)
        if content is None or at < 0:
            return
        word, cursor = f"{self.keep(content, path.name)} ", buffer.cursor_position
        after = cursor + len(word) - len(text) if cursor >= at + len(text) else min(cursor, at)
        buffer.document = Document(buffer.text[:at] + word + buffer.text[at + len(text) :], after)

    async def _from_clipboard(self, buffer: Buffer) -> None:
        command = clipboard_command(sys.platform, os.environ)
        if command is None:
            self._say("no desktop whose clipboard could be read; paste the path of a picture instead")
            return
        try:
            content = await _printed(command)
        except OSError:
            self._say(f"a picture of the clipboard needs the program {command[0]}, which is not installed")
            return
        if picture_type(content) is None or len(content) > PICTURE_BYTES:
            self._say(f"the clipboard has no picture of up to {PICTURE_BYTES >> 20} MiB")
            return
        buffer.insert_text(f"{self.keep(content)} ")


def _picture(path: Path) -> bytes | None:
    """Return a picture's bytes; None for other files, what is too large or cannot be read. Blocks."""
    try:
        if not path.is_file():  # what is named may be a pipe that nobody writes to
            return None
        with path.open("rb") as file:
            content = file.read(PICTURE_BYTES + 1)
    except OSError:
        return None
    return content if picture_type(content) is not None and len(content) <= PICTURE_BYTES else None


async def _printed(command: tuple[str, ...]) -> bytes:
    """Return the beginning of what a program prints, b"" when it takes too long; raises OSError."""
    process = await start(command)
    assert process.stdout is not None, "it was asked for"
    content = b""
    try:
        async with asyncio.timeout(CLIPBOARD_S):
            while len(content) <= PICTURE_BYTES and (piece := await process.stdout.read(1 << 16)):
                content += piece
    except TimeoutError:
        return b""
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    return content
