"""What an admitted message brought: photos, voice, documents, within their limits (AS-22, AS-23).

Here: downloading into a private directory, pictures as content, voice as text. Not here: who is admitted,
where a document goes, models without vision.

The size is checked three times: as the message says it, as Telegram says it when asked, and byte by byte.
"""

import asyncio
import base64
import os
import secrets
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from telegram import Bot
from telegram.error import BadRequest, TelegramError

from bowerbird.channels.contract import IncomingMessage, Media, Rejected
from bowerbird.channels.telegram.updates import MAX_PHOTO
from bowerbird.channels.transcription import (
    NOT_CONFIGURED,
    Transcriber,
    TranscriptionFailed,
)
from bowerbird.core.pictures import picture_type
from bowerbird.core.threads import to_thread

MAX_FILE = 20 * 1000 * 1000
MAX_NAME = 120  # characters of a file's name
TRIES = 3
KEPT_S = 24 * 3600.0
TIMEOUT_S = 120.0

_NAMES = {"photo": "photo", "voice": "voice.oga", "audio": "audio.mp3", "document": "document"}


@dataclass(frozen=True, slots=True)
class _Got:
    media: Media
    path: Path


class Downloads:
    """Downloads with one bot.

    Args:
        directory: made with mode 0700; each file gets a directory of its own in it.
        transcriber: None = voice is not configured.
    """

    def __init__(self, bot: Bot, directory: Path, transcriber: Transcriber | None) -> None:
        self._bot = bot
        self._directory = directory
        self._transcriber = transcriber

    async def sweep(self) -> None:
        """Remove what a process that died has left behind: whoever takes a file does it within a day."""
        await to_thread(_sweep, self._directory, time.time() - KEPT_S)

    async def complete(self, message: IncomingMessage) -> IncomingMessage:
        """Return the message with its files, pictures and transcript.

        Raises:
            Rejected: the text is for the sender.
        """
        for media in message.media:
            self._check(media, media.size)
            if media.kind in ("voice", "audio") and not self._can_hear():
                raise Rejected(NOT_CONFIGURED)
        got: list[_Got] = []
        try:
            for media in message.media:
                path = await self._download(media)
                got.append(_Got(media, path))
            return await self._with_contents(message, got)
        except BaseException:  # whatever ends it, cancelling included, no file is left without an owner
            for one in got:
                await to_thread(_remove, one.path)
            raise

    async def _with_contents(self, message: IncomingMessage, got: list[_Got]) -> IncomingMessage:
        pictures: list[tuple[str, str]] = []
        heard: list[str] = []
        files: list[Path] = []
        for one in got:
            if one.media.kind == "photo":
                pictures.append(await to_thread(_picture, one.path))
            elif one.media.kind in ("voice", "audio"):
                heard.append(await self._heard(one))
            else:
                files.append(one.path)
                continue
            await to_thread(_remove, one.path)
        transcript = "\n".join(text for text in heard if text)
        return replace(
            message,
            text="\n\n".join(text for text in (message.text, transcript) if text),
            transcript=transcript,
            files=tuple(files),
            file_path=str(files[0]) if files else None,
            images=tuple(pictures),
            image_base64=pictures[0][0] if pictures else None,
            image_mime_type=pictures[0][1] if pictures else message.image_mime_type,
        )

    def _can_hear(self) -> bool:
        return self._transcriber is not None and self._transcriber.is_configured

    async def _heard(self, one: _Got) -> str:
        if self._transcriber is None:
            raise Rejected(NOT_CONFIGURED)
        try:
            return await self._transcriber.transcribe(one.path, one.media.mime_type)
        except TranscriptionFailed as error:
            raise Rejected(str(error)) from None

    def _check(self, media: Media, size: int | None) -> None:
        most = MAX_PHOTO if media.kind == "photo" else MAX_FILE
        if size is not None and size > most:
            limit = "5 MiB" if media.kind == "photo" else "20 MB"
            raise Rejected(f"{_shown(media)} is too large ({size / 1e6:.1f} MB); the limit is {limit}.")

    async def _download(self, media: Media) -> Path:
        failure = ""
        for tried in range(TRIES):
            await asyncio.sleep(tried / 2)
            try:
                file = await self._bot.get_file(media.ref)
                self._check(media, file.file_size)
                return await self._fetch(media, file.file_path or "")
            except BadRequest as error:
                if "too big" in str(error).lower():
                    raise Rejected(f"{_shown(media)} is too large; the limit is 20 MB.") from None
                raise Rejected(f"{_shown(media)} is no longer at Telegram; please send it again.") from None
            except (TelegramError, aiohttp.ClientError, TimeoutError) as error:
                failure = type(error).__name__  # its text may hold the address, and that the token
            except (TypeError, KeyError, ValueError) as error:  # of an answer of unknown form
                failure = type(error).__name__
            except OSError as error:
                raise Rejected(f"{_shown(media)} could not be stored: {error.strerror or 'error'}.") from None
        raise Rejected(
            f"{_shown(media)} could not be downloaded from Telegram ({failure}); please send it again."
        )

    async def _fetch(self, media: Media, address: str) -> Path:
        if urlsplit(address).scheme not in ("http", "https"):
            raise Rejected(f"{_shown(media)} cannot be downloaded from this server of the Bot API.")
        path = await to_thread(_place, self._directory, _safe_name(media))
        try:
            timeout = aiohttp.ClientTimeout(total=TIMEOUT_S, sock_connect=20, sock_read=20)
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.get(address, allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    raise aiohttp.ClientPayloadError(f"status {answer.status}")
                await self._store(media, answer, path)
        except BaseException:  # half a file must not stay, whatever ended the download
            await to_thread(_remove, path)
            raise
        return path

    async def _store(self, media: Media, answer: aiohttp.ClientResponse, path: Path) -> None:
        size = 0
        with path.open("wb") as file:
            async for chunk in answer.content.iter_chunked(256 * 1024):
                size += len(chunk)
                self._check(media, size)
                await to_thread(file.write, chunk)


def _picture(path: Path) -> tuple[str, str]:
    content = path.read_bytes()
    kind = picture_type(content)
    if kind is None:
        raise Rejected("The photo is neither PNG, JPEG, GIF nor WebP.")
    return base64.b64encode(content).decode(), kind


def _shown(media: Media) -> str:
    return media.name[:MAX_NAME] or f"The {media.kind}"


def _safe_name(media: Media) -> str:
    """Return a name that is one plain part of a path."""
    name = "".join(char for char in media.name if char.isprintable() and char not in '/\\:*?"<>|')
    name = name.strip(" .") or _NAMES[media.kind]
    while len(name.encode("utf-8", "replace")) > MAX_NAME:
        stem, dot, end = name.rpartition(".")
        name = f"{stem[:-1]}{dot}{end}" if stem and len(end) < 20 else name[:-1]
    return name.encode("utf-8", "replace").decode()


def _place(directory: Path, name: str) -> Path:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)
    own = directory / secrets.token_hex(8)
    own.mkdir(mode=0o700)
    path = own / name
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return path


def _sweep(directory: Path, before: float) -> None:
    try:
        for own in directory.iterdir():
            if own.is_dir() and not own.is_symlink() and own.stat().st_mtime < before:
                shutil.rmtree(own, ignore_errors=True)
    except OSError:
        return  # there is none yet, or it cannot be read, which the first download says


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        path.parent.rmdir()
