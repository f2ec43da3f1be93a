"""Voice to text by a configured service (AS-22, AS-63).

Here: the request, its retries, what it means when it fails. Not here: downloading voice messages (each
channel), what a transcript is used for.
"""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import aiohttp
import msgspec

from bowerbird.core.errors import BowerbirdError
from bowerbird.core.forms import decode

RETRIES = 2
FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 10.0
LARGEST_ANSWER = 1024 * 1024
NOT_CONFIGURED = "Voice is not configured: set transcription.enabled to true and transcription.api_key."

_SERVICES = {"groq": "https://api.groq.com/openai/v1", "openai": "https://api.openai.com/v1"}
# Services tell the format by the name's end; Telegram's voice messages end with one that they do not know.
_ENDS = {".oga": ".ogg", ".opus": ".ogg"}
_KNOWN = {".flac", ".m4a", ".mp3", ".mp4", ".mpeg", ".mpga", ".ogg", ".wav", ".webm"}
_PASSING = {408, 425, 429}


class TranscriptionFailed(BowerbirdError):
    """A voice message could not be transcribed; the text is for whoever sent it.

    Attributes:
        is_passing: trying later may help.
    """

    def __init__(self, message: str, *, is_passing: bool = False) -> None:
        super().__init__(message)
        self.is_passing = is_passing


@dataclass(frozen=True, slots=True)
class TranscriptionSettings:
    """The section `transcription`.

    Attributes:
        base_url: of an OpenAI-compatible service; None = that of `provider`.
        timeout_s: of one try.
        first_delay_s: before the first retry, doubled before the second.
    """

    enabled: bool = False
    provider: Literal["groq", "openai"] = "groq"
    model: str = "whisper-large-v3-turbo"
    api_key: str = field(default="", repr=False)
    base_url: str | None = None
    timeout_s: float = 30.0
    first_delay_s: float = FIRST_DELAY_S

    @property
    def address(self) -> str:
        """Where a file is sent."""
        return f"{(self.base_url or _SERVICES[self.provider]).rstrip('/')}/audio/transcriptions"


class _Passing(Exception):
    """A failure that is tried again."""

    def __init__(self, text: str, delay_s: float | None = None) -> None:
        super().__init__(text)
        self.delay_s = delay_s


class Transcriber:
    """Transcribes one file at a time, as often as it is asked.

    Example:
        text = await Transcriber(settings).transcribe(Path("voice.oga"))
    """

    def __init__(self, settings: TranscriptionSettings) -> None:
        self._settings = settings

    @property
    def is_configured(self) -> bool:
        """Whether a service and a key are set."""
        return self._settings.enabled and bool(self._settings.api_key.strip())

    async def transcribe(self, path: Path, mime_type: str = "") -> str:
        """Return what is said in a file, "" for silence.

        Raises:
            TranscriptionFailed: not configured, refused, or unreachable three times.
        """
        if not self.is_configured:
            raise TranscriptionFailed(NOT_CONFIGURED)
        for attempt in range(RETRIES + 1):
            try:
                return await self._once(path, mime_type)
            except _Passing as failure:
                if attempt == RETRIES:
                    text = f"The voice message could not be transcribed: {failure}."
                    raise TranscriptionFailed(text, is_passing=True) from None
                own = self._settings.first_delay_s * 2**attempt
                await asyncio.sleep(min(max(own, failure.delay_s or 0.0), LONGEST_DELAY_S))
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, path: Path, mime_type: str) -> str:
        settings = self._settings
        timeout = aiohttp.ClientTimeout(total=settings.timeout_s)
        key = {"authorization": f"Bearer {settings.api_key.strip()}", "user-agent": "bowerbird"}
        try:
            with path.open("rb") as file:
                form = aiohttp.FormData()
                form.add_field("model", settings.model)
                form.add_field("response_format", "json")
                form.add_field(
                    "file", file, filename=_name(path), content_type=mime_type or "application/octet-stream"
                )
                async with (
                    aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                    # A redirect would carry the recording and the key to wherever it says.
                    session.post(settings.address, data=form, headers=key, allow_redirects=False) as answer,
                ):
                    return self._read(answer, await _bounded(answer))
        except TimeoutError:
            raise _Passing(f"the service did not answer within {settings.timeout_s:g} s") from None
        except aiohttp.InvalidURL:
            raise TranscriptionFailed("transcription.base_url is no address of a service.") from None
        except aiohttp.ClientError as error:
            raise _Passing(f"the service cannot be reached ({type(error).__name__})") from None
        except ValueError:  # of a header that holds line ends, say
            raise TranscriptionFailed(
                "transcription.api_key or base_url has characters it must not have."
            ) from None
        except OSError as error:
            raise TranscriptionFailed(f"The recording cannot be read: {error.strerror or error}.") from None

    def _read(self, answer: aiohttp.ClientResponse, body: bytes) -> str:
        status = answer.status
        if status in _PASSING or status >= 500:
            raise _Passing(f"the service answered with status {status}", _retry_after(answer))
        if status in (401, 403):
            raise TranscriptionFailed("The transcription service refuses transcription.api_key.")
        said = _json(body)
        if status != 200:
            why = self._without_key(_reason(said))
            raise TranscriptionFailed(
                f"The transcription service refuses the recording (status {status}){why}."
            )
        text = said.get("text")
        if not isinstance(text, str):
            raise TranscriptionFailed("The transcription service answered in an unknown form.")
        return text.strip()

    def _without_key(self, text: str) -> str:
        return text.replace(self._settings.api_key.strip(), "[key]")


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_chunked(64 * 1024):
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise TranscriptionFailed("The transcription service answered with more than 1 MiB.")
    return bytes(body)


def _json(body: bytes) -> dict[str, Any]:
    try:
        return decode(body, dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}


def _reason(said: dict[str, Any]) -> str:
    match said.get("error"):
        case {"message": str(text)} if text:
            return f": {text[:200]}"
        case _:
            return ""


def _retry_after(answer: aiohttp.ClientResponse) -> float | None:
    try:
        return max(0.0, float(answer.headers.get("retry-after", "")))
    except ValueError:
        return None


def _name(path: Path) -> str:
    end = _ENDS.get(path.suffix.lower(), path.suffix.lower())
    return f"audio{end if end in _KNOWN else '.ogg'}"
