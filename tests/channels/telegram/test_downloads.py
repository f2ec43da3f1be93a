"""What an admitted message brought is downloaded within its limits (AS-22, AS-23)."""

import asyncio
import base64
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from support.fake_telegram import FakeTelegram
from support.fake_transcription import KEY, fake_transcription

from bowerbird.channels.contract import IncomingMessage, Media, Rejected
from bowerbird.channels.transcription import Transcriber, TranscriptionSettings

PNG = b"\x89PNG\r\n\x1a\n" + b"picture"


def incoming(*media: Media, text: str = "") -> IncomingMessage:
    return IncomingMessage("telegram", "7", "7", "Ann", text, True, media=media)


def left(desk: Any) -> list[Path]:
    return [path for path in desk.directory.rglob("*") if path.is_file()]


async def test_nothing_is_downloaded_before_it_is_asked_for(desk: Any, fake: FakeTelegram) -> None:
    """AS-4: a photo arrives as a name only."""
    fake.files["p"] = PNG
    async with desk.open():
        await fake.message({"photo": [{"file_id": "p"}]})
        await desk.all_confirmed()
    assert {call.method for call in fake.calls} == {"getMe", "deleteWebhook", "getUpdates"}


async def test_photos_are_content(desk: Any, fake: FakeTelegram) -> None:
    """AS-23: by what they hold, whatever they are called; no file stays."""
    fake.files |= {"p": PNG, "q": b"\xff\xd8\xffjpeg"}
    async with desk.open() as channel:
        done = await channel.complete(incoming(Media("photo", "p"), Media("photo", "q"), text="look"))
    assert done.images == (
        (base64.b64encode(PNG).decode(), "image/png"),
        (base64.b64encode(b"\xff\xd8\xffjpeg").decode(), "image/jpeg"),
    )
    assert (done.image_base64, done.image_mime_type) == done.images[0]
    assert done.text == "look" and left(desk) == []


async def test_documents_are_files_in_a_private_directory(desk: Any, fake: FakeTelegram) -> None:
    """AS-23: with their own plain names."""
    names = ["a b.txt", "../../x", "", "ü" * 200 + ".txt", "con\x00trol\n.md", "..."]
    fake.files = {f"d{n}": b"content %d" % n for n in range(len(names))}
    media = [Media("document", f"d{n}", name) for n, name in enumerate(names)]
    async with desk.open() as channel:
        done = await channel.complete(incoming(*media))
    assert [path.read_bytes() for path in done.files] == list(fake.files.values())
    assert done.files[0].name == "a b.txt" and done.files[2].name == "document"
    assert all(path.parent.parent == desk.directory / "files" for path in done.files)
    assert all(len(path.name.encode()) <= 120 and path.name.isprintable() for path in done.files)
    assert done.files[3].name.endswith(".txt")
    assert done.file_path == str(done.files[0])
    assert stat.S_IMODE((desk.directory / "files").stat().st_mode) == 0o700
    assert stat.S_IMODE(done.files[0].stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("media", "told", "limit"),
    [
        (Media("photo", "f", size=5 * 1024 * 1024 + 1), None, "5 MiB"),
        (Media("photo", "f"), 5 * 1024 * 1024 + 1, "5 MiB"),
        (Media("document", "f", "big.zip", size=20_000_001), None, "20 MB"),
        (Media("document", "f", "big.zip"), 20_000_001, "20 MB"),
        (Media("document", "f", "big.zip"), 30_000_000, "20 MB"),
    ],
)
async def test_too_large_is_said_with_the_limit(
    desk: Any, fake: FakeTelegram, media: Media, told: int | None, limit: str
) -> None:
    """AS-22, AS-23: by what the message says, and by what Telegram says; nothing is downloaded."""
    fake.files["f"] = b"x"
    if told is not None:
        fake.told_sizes["f"] = told
    async with desk.open() as channel:
        with pytest.raises(Rejected, match=limit):
            await channel.complete(incoming(media))
    assert not fake.of("download") and left(desk) == []


async def test_what_is_larger_than_was_said_is_cut_off(desk: Any, fake: FakeTelegram) -> None:
    """AS-23: byte by byte; the beginning does not stay."""
    fake.files["f"] = PNG * 500_000
    fake.told_sizes["f"] = 10
    async with desk.open() as channel:
        with pytest.raises(Rejected, match="5 MiB"):
            await channel.complete(incoming(Media("photo", "f", size=10)))
    assert left(desk) == []


async def test_a_download_that_breaks_is_tried_again(desk: Any, fake: FakeTelegram) -> None:
    """AS-23: twice; then the sender is asked, without any address or token."""
    fake.files["d"] = b"whole"
    async with desk.open() as channel:
        fake.script("download", 0, sent=100)
        fake.script("getFile", 500, "Internal Server Error")
        done = await channel.complete(incoming(Media("document", "d", "a.txt")))
        assert done.files[0].read_bytes() == b"whole"
        done.files[0].unlink()
        for _ in range(3):
            fake.script("download", 503)
        with pytest.raises(Rejected, match="could not be downloaded") as caught:
            await channel.complete(incoming(Media("document", "d", "a.txt")))
        assert "TESTtoken" not in str(caught.value) and "127.0.0.1" not in str(caught.value)
        with pytest.raises(Rejected, match="no longer at Telegram"):
            await channel.complete(incoming(Media("document", "unknown", "a.txt")))
    assert left(desk) == []


async def test_of_two_files_one_of_which_fails_none_stays(desk: Any, fake: FakeTelegram) -> None:
    """AS-23."""
    fake.files["d"] = b"whole"
    async with desk.open() as channel:
        with pytest.raises(Rejected):
            await channel.complete(incoming(Media("document", "d", "a"), Media("document", "no", "b")))
    assert left(desk) == []


async def test_a_photo_that_is_none_is_refused(desk: Any, fake: FakeTelegram) -> None:
    """AS-63: pictures are known by their content."""
    fake.files["p"] = b"<svg>"
    async with desk.open() as channel:
        with pytest.raises(Rejected, match="neither PNG"):
            await channel.complete(incoming(Media("photo", "p")))
    assert left(desk) == []


async def test_voice_becomes_the_text(desk: Any, fake: FakeTelegram) -> None:
    """AS-22: and is known as what was said; silence is no text."""
    fake.files["v"] = b"OggS"
    async with fake_transcription() as service:
        desk.transcriber = Transcriber(TranscriptionSettings(True, api_key=KEY, base_url=service.url))
        async with desk.open() as channel:
            done = await channel.complete(incoming(Media("voice", "v", mime_type="audio/ogg")))
            assert (done.text, done.transcript) == ("hello there", "hello there")
            done = await channel.complete(incoming(Media("audio", "v", "song.mp3"), text="caption"))
            assert done.text == "caption\n\nhello there"
            service.text = " "
            done = await channel.complete(incoming(Media("voice", "v")))
            assert (done.text, done.transcript) == ("", "")
            service.answers.append((401, {}))
            with pytest.raises(Rejected, match=r"refuses transcription\.api_key"):
                await channel.complete(incoming(Media("voice", "v")))
    assert left(desk) == []


async def test_voice_without_a_service_names_the_setting(desk: Any, fake: FakeTelegram) -> None:
    """AS-63: nothing is downloaded."""
    fake.files["v"] = b"OggS"
    async with desk.open() as channel:
        with pytest.raises(Rejected, match=r"Voice is not configured.*transcription\.enabled"):
            await channel.complete(incoming(Media("voice", "v")))
    assert not fake.of("getFile")


async def test_a_download_that_is_cancelled_leaves_nothing(desk: Any, fake: FakeTelegram) -> None:
    """AS-23: a turn that is stopped while its file comes."""
    fake.files["d"] = b"x" * 15_000_000
    async with desk.open() as channel:
        task = asyncio.create_task(channel.complete(incoming(Media("document", "d", "a"))))
        await fake.until(lambda: fake.of("getFile"))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert left(desk) == []


async def test_files_that_nobody_took_are_gone_after_a_day(desk: Any, fake: FakeTelegram) -> None:
    """AS-23: a process that was killed between download and use leaves nothing for ever."""
    fake.files["d"] = b"x"
    async with desk.open() as channel:
        old = await channel.complete(incoming(Media("document", "d", "a")))
        new = await channel.complete(incoming(Media("document", "d", "b")))
    long_ago = time.time() - 25 * 3600
    os.utime(old.files[0].parent, (long_ago, long_ago))
    async with desk.open():
        assert left(desk) == [new.files[0]]


async def test_a_directory_that_cannot_be_written_is_said(desk: Any, fake: FakeTelegram) -> None:
    """AS-23: an error of the disk is for the sender, too."""
    fake.files["d"] = b"x"
    (desk.directory / "files").write_text("in the way")
    async with desk.open() as channel:
        with pytest.raises(Rejected, match="could not be stored"):
            await channel.complete(incoming(Media("document", "d", "a")))
