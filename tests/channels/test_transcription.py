"""Voice to text by a configured service (AS-22, AS-63)."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.fake_transcription import KEY, FakeTranscription, fake_transcription

from bowerbird.channels.transcription import Transcriber, TranscriptionFailed, TranscriptionSettings


@pytest.fixture
async def service() -> AsyncIterator[FakeTranscription]:
    async with fake_transcription() as fake:
        yield fake


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    path = tmp_path / "voice.oga"
    path.write_bytes(b"OggS sound")
    return path


def settings(service: FakeTranscription) -> TranscriptionSettings:
    return TranscriptionSettings(enabled=True, api_key=KEY, base_url=service.url, first_delay_s=0.01)


async def failure(service: FakeTranscription, voice: Path, **changes: Any) -> TranscriptionFailed:
    with pytest.raises(TranscriptionFailed) as caught:
        await Transcriber(replace(settings(service), **changes)).transcribe(voice)
    assert KEY not in f"{caught.value!r} {caught.value.__cause__!r}"
    return caught.value


async def test_a_recording_is_sent_and_its_text_comes_back(service: FakeTranscription, voice: Path) -> None:
    """AS-63: multipart `file` and `model`; the name's end is one that services know."""
    service.text = "  hello there\n"
    assert await Transcriber(settings(service)).transcribe(voice, "audio/ogg") == "hello there"
    assert service.requests == [
        {
            "authorization": f"Bearer {KEY}",
            "model": "whisper-large-v3-turbo",
            "name": "audio.ogg",
            "type": "audio/ogg",
            "content": b"OggS sound",
        }
    ]


@pytest.mark.parametrize("status", [429, 500, 503, 0])
async def test_passing_failures_are_tried_twice_more(
    service: FakeTranscription, voice: Path, status: int
) -> None:
    """AS-63: 429, 5xx, network."""
    service.answers.extend([(status, {})] * 2)
    assert await Transcriber(settings(service)).transcribe(voice) == "hello there"
    assert len(service.requests) == 3
    service.answers.extend([(status, {})] * 3)
    error = await failure(service, voice)
    assert error.is_passing and len(service.requests) == 6


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, {"error": {"message": f"wrong key {KEY}"}}, "refuses transcription.api_key"),
        (400, {"error": {"message": f"bad file, your key {KEY}"}}, r"bad file, your key \[key\]"),
        (400, b"<html>", r"\(status 400\)\."),
        (302, {}, r"status 302"),
        (200, b"nonsense", "unknown form"),
        (200, [1], "unknown form"),
        (200, {"text": 5}, "unknown form"),
        (200, b"[" * 100_000, "unknown form"),
        (200, b"x" * 2_000_000, "more than 1 MiB"),
    ],
)
async def test_other_failures_are_told_at_once(
    service: FakeTranscription, voice: Path, status: int, body: Any, said: str
) -> None:
    """AS-63: one request, a sentence for the sender, never the key."""
    service.answers.append((status, body))
    error = await failure(service, voice)
    assert len(service.requests) == 1 and not error.is_passing
    assert re.search(said, str(error))


async def test_a_service_that_hangs_is_given_up(service: FakeTranscription, voice: Path) -> None:
    """AS-63: `timeout` is of one try."""
    service.answers.extend([(None, None)] * 3)
    error = await failure(service, voice, timeout_s=0.2)
    assert "did not answer within 0.2 s" in str(error) and error.is_passing


@pytest.mark.parametrize("changes", [{"enabled": False}, {"api_key": " "}])
async def test_without_a_key_the_setting_is_named(
    service: FakeTranscription, voice: Path, changes: dict[str, Any]
) -> None:
    """AS-63: nothing is sent."""
    error = await failure(service, voice, **changes)
    assert str(error).startswith("Voice is not configured") and "transcription.api_key" in str(error)
    assert service.requests == []


@pytest.mark.parametrize(
    "changes",
    [
        {"base_url": "http://"},
        {"base_url": "nonsense"},
        {"api_key": "a\r\nb: c"},
        {"base_url": "http://[::1"},
    ],
)
async def test_settings_that_cannot_work_are_told(
    service: FakeTranscription, voice: Path, changes: dict[str, Any]
) -> None:
    """AS-63: as an error of this module, whatever the HTTP library raises."""
    await failure(service, voice, **changes)


async def test_a_recording_that_is_gone_is_told(service: FakeTranscription, tmp_path: Path) -> None:
    """AS-22."""
    error = await failure(service, tmp_path / "no.ogg")
    assert "cannot be read" in str(error)


def test_services_are_known_by_name() -> None:
    """AS-63: `groq` and `openai`; the key is in no representation."""
    assert TranscriptionSettings().address == "https://api.groq.com/openai/v1/audio/transcriptions"
    assert (
        TranscriptionSettings(provider="openai").address == "https://api.openai.com/v1/audio/transcriptions"
    )
    assert KEY not in repr(TranscriptionSettings(api_key=KEY))
