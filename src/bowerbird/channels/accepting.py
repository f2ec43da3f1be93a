"""From an admitted message to a turn of its chat's session (AS-9 … AS-12, AS-23).

Here: the session of a chat, made when it is missing; a message with its images and files as an input; resets.
Not here: who may write, commands, how a turn runs.
"""

import base64
import binascii
import contextlib
import posixpath
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.channels.admission import Role
from bowerbird.channels.attribution import header, without_brackets
from bowerbird.channels.contract import IncomingMessage, Rejected
from bowerbird.channels.review.diff_messages import as_comment
from bowerbird.core.errors import InvalidArgument
from bowerbird.core.messages import TextBlock, block_to_data
from bowerbird.core.pictures import PICTURE_BYTES
from bowerbird.core.threads import in_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.sessions.inbox.pictures import picture_block
from bowerbird.sessions.service import SessionService
from bowerbird.sessions.values import InputKind, NewSession, Receipt, SessionInfo
from bowerbird.store.rows.sessions import find_session

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

QUESTION_FIRST = (
    "A question of before is open: answer that above, and this is read then. /stop ends it instead."
)
MOST_IMAGES = 20
UPLOADS = "uploads"
NAME_CHARS = 100
HEARD_CHARS = 300  # of a voice message, as it is quoted before the answer

_UNSAFE = re.compile(r"[^\w.-]")


class Desk:
    """The sessions of one channel's chats.

    Args:
        defaults: returns what a new session begins with: workspace, policy, what is hidden.
    """

    def __init__(self, sessions: SessionService, channel: str, defaults: Callable[[], NewSession]) -> None:
        self._sessions = sessions
        self._channel = channel
        self._defaults = defaults

    async def thread(self, message: IncomingMessage) -> str:
        """Return the session that a chat's messages go to now, made when it is missing."""
        known = await self.known(message.chat_id)
        if known is not None:
            return known
        thread_id = await self._sessions.thread_of(self._channel, message.chat_id)
        row = await self._sessions.find(thread_id, deleted=True)
        if row is not None:  # somebody deleted it: a chat never writes into the trash
            return (await self.reset(message)).thread_id
        new = self._new(message, thread_id=thread_id, channel=self._channel, chat_id=message.chat_id)
        try:
            return (await self._sessions.create(new)).thread_id
        except InvalidArgument:
            if await self._sessions.find(thread_id) is None:
                raise
            return thread_id  # another message made it meanwhile

    async def known(self, chat_id: str) -> str | None:
        """Return a chat's session, None when nothing was said there yet or it was deleted."""
        thread_id = await self._sessions.thread_of(self._channel, chat_id)
        found = await self._sessions.store.read(lambda c: find_session(c, thread_id))
        return None if found is None else thread_id

    async def reset(self, message: IncomingMessage) -> SessionInfo:
        """Begin a chat anew; a running turn ends and answers in the old session."""
        return await self._sessions.reset(self._channel, message.chat_id, self._new(message))

    async def submit(
        self,
        message: IncomingMessage,
        text: str,
        *,
        role: Role = "guest",
        kind: InputKind = "message",
        key: str | None = None,
    ) -> Receipt:
        """Accept a completed message; its session is the chat's.

        Args:
            text: what was said, without what only called the agent. role: of whoever said it.
            key: names the input; None = the update's.

        Raises:
            BowerbirdError: nothing was accepted.
        """
        thread_id = await self.thread(message)
        blocks = [*await self._images(message)]
        files = await self._files(thread_id, message)
        text = await as_comment(self._sessions, thread_id, message, text)
        words = "\n".join(filter(None, [without_brackets(text), *(f"[file: {path}]" for path in files)]))
        content = [block_to_data(TextBlock(words))] if words else []
        return await self._sessions.submit(
            thread_id,
            {"content": [*content, *blocks]},
            self._channel,
            self.sender(message, role),
            key or message.dedupe_key or None,
            kind,
        )

    def sender(self, message: IncomingMessage, role: Role) -> dict[str, Any]:
        """Return who a message is from: for records, for the model, and where its answer goes."""
        name = without_brackets(message.user_name)
        head = header(
            name=name,
            user_id=message.user_id,
            channel=self._channel,
            received_at=message.received_at or now_iso(),
        )
        who = {"id": message.user_id, "name": name, "role": role}
        heard = {"heard": _cut(message.transcript)} if message.transcript else {}
        return who | {"header": head, "message": message.message_id} | heard

    def _new(self, message: IncomingMessage, **place: Any) -> NewSession:

        owner = message.user_id if message.is_private else None
        return msgspec.structs.replace(self._defaults(), kind="chat", owner=owner, **place)

    async def _images(self, message: IncomingMessage) -> list[dict[str, Any]]:
        given = list(message.images)
        if message.image_base64 and (message.image_base64, message.image_mime_type) not in given:
            given.insert(0, (message.image_base64, message.image_mime_type))
        if len(given) > MOST_IMAGES:
            raise Rejected(f"A message may have {MOST_IMAGES} images; this one has {len(given)}.")
        return [await self._image(data) for data, _ in given]

    async def _image(self, data: str) -> dict[str, Any]:
        try:
            content = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise Rejected("The image could not be read.") from error
        if len(content) > PICTURE_BYTES:
            raise Rejected(f"The image is larger than {PICTURE_BYTES >> 20} MiB.")
        block = await picture_block(self._sessions.store, content)
        if block is None:
            raise Rejected("That is no PNG, JPEG, GIF or WebP image.")
        return block

    async def _files(self, thread_id: str, message: IncomingMessage) -> list[str]:
        sources = list(message.files)
        if message.file_path and Path(message.file_path) not in sources:
            sources.insert(0, Path(message.file_path))
        if not sources:
            return []
        branch = await self._sessions.branch(thread_id)
        names = [media.name for media in message.media if media.kind == "document"]
        placed: list[str] = []
        for number, source in enumerate(sources):
            name = names[number] if number < len(names) and names[number] else source.name
            placed.append(await put_upload(branch, name, source))
        await in_thread(_remove, sources)
        await self._sessions.note_changes(thread_id)
        return placed


async def put_upload(branch: "Branch", name: str, source: Path) -> str:
    """Put a file below `uploads/` of a branch under a name that is free; returns its path."""
    stem, suffix = posixpath.splitext(safe_name(name))
    for number in range(1000):
        path = f"{UPLOADS}/{stem}{f'-{number}' if number else ''}{suffix}"
        if await branch.stat(path) is None:
            await in_thread(branch.take, [(path, source)])
            return path
    raise InvalidArgument(f"there are too many uploads called {stem}{suffix}")


def safe_name(name: str) -> str:
    """Return the last part of a file's name, with nothing in it that means something in a path. Pure.

    Example:
        >>> safe_name("../../etc/pass wd"), safe_name("..")
        ('pass_wd', 'file')
    """
    last = re.split(r"[/\\\\]", without_brackets(name))[-1]
    stem, suffix = posixpath.splitext(_UNSAFE.sub("_", last).strip("."))
    return (stem[: NAME_CHARS - len(suffix[:20])] + suffix[:20]) or "file"


def _remove(paths: Sequence[Path]) -> None:
    """Remove what a channel downloaded: it is on the branch now."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def _cut(heard: str) -> str:
    return heard if len(heard) <= HEARD_CHARS else f"{heard[: HEARD_CHARS - 1]}…"
