"""What went wrong at a provider, as `ModelError`s a user can act on (MO-13).

Here: the decision from status, headers and body to an error, pure. Not here: connections that
fail (`providers/transport`), whether a request is repeated (`wrappers/retry`).
"""

import email.utils
import html
import json
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from bowerbird.core.errors import ModelError, ModelErrorKind
from bowerbird.models.redact import Redactor

BODY_LIMIT = 500
_BODY_READ = 8_000  # characters of a body that are looked at for what it means
# 520 to 524: Cloudflare, of a provider behind it that does not answer.
RETRYABLE_STATUSES = frozenset({408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})

_KIND_BY_STATUS: dict[int, ModelErrorKind] = {
    400: "bad_request", 401: "auth", 402: "quota", 403: "auth", 404: "not_found", 408: "timeout",
    409: "server", 422: "bad_request", 429: "rate_limit", 503: "overloaded",
    504: "timeout", 529: "overloaded",
}  # fmt: skip

# Error types and codes of both wires, also as they appear inside a stream.
_STATUS_BY_TYPE = {
    "overloaded_error": 529, "api_error": 500, "rate_limit_error": 429, "authentication_error": 401,
    "permission_error": 403, "not_found_error": 404, "invalid_request_error": 400, "timeout_error": 504,
    "request_too_large": 413, "billing_error": 402, "server_error": 500, "internal_server_error": 500,
    "rate_limit_exceeded": 429, "insufficient_quota": 429, "invalid_api_key": 401,
    "context_length_exceeded": 400, "content_filter": 400,
}  # fmt: skip

_OVERFLOWS = (
    r"context_length_exceeded|maximum context length",  # OpenAI, DeepSeek, OpenRouter, LiteLLM, Mistral
    r"reduce the length of the (?:messages|prompt)",  # Groq, older OpenAI
    r"prompt (?:is )?too long",  # Anthropic, Ollama
    r"exceeds? context limit",  # Anthropic: "input length and `max_tokens` exceed context limit"
    r"input token count.{0,40}exceeds? the maximum",  # Gemini, Vertex
    r"maximum prompt length is",  # xAI
    r"exceeded model token limit",  # Kimi
    r"prompt exceeds max length|\"code\": ?\"?1261\b",  # GLM
    r"range of input length should be",  # Qwen at DashScope
    r"greater than the context length|context length of only|n_keep",  # LM Studio
    r"longer than the (?:model's context|maximum model) length",  # Together, vLLM
    r"`inputs` tokens \+ `max_new_tokens` must be",  # Together, TGI
    r"exceed_context_size|exceeds? the (?:available )?context|context size has been exceeded",  # llama.cpp
    r"token count of [\d,]+ exceeds|exceeds (?:the )?maximum allowed input length",  # Copilot, Poolside
    r"context window.{0,20}exceed|(?:exceed|larger than|fit).{0,40}context window",  # MiniMax, OpenAI
    r"input is too long|too many input tokens",  # Bedrock
    r"too many tokens: ",  # Cohere
)
_OVERFLOW = re.compile("|".join(_OVERFLOWS), re.IGNORECASE)
# Of a limit per minute that one request exceeds alone: no waiting helps (OpenAI with 429, Groq with 413).
_NEVER_FITS = re.compile(r"tokens must be reduced|reduce your message size", re.IGNORECASE)
_NO_MONEY = re.compile(r"insufficient_quota|exceeded_current_quota_error", re.IGNORECASE)  # OpenAI, Kimi
_QUOTA = re.compile(
    r"exceeded your current quota|credit balance|billing|out of credits|all available credits|"
    r"insufficient (?:balance|credits|funds|quota)|payment required|spending limit",
    re.IGNORECASE,
)
_SPAN_OF_QUOTA = re.compile(r"quota(?:Id|_limit)\W+\w*Per(Day|Minute)")  # Google's QuotaFailure and ErrorInfo
_DAILY = re.compile(r"per[ _-]day\b|\bdaily\b", re.IGNORECASE)
_SPAN = r"(\d+(?:\.\d+)?) ?(ms|milli|[dhms])[a-z]*"
# Google's RetryInfo; Groq, OpenAI and Azure in words: "try again in 2m3.5s", "retry after 28 seconds".
_WAIT = re.compile(rf"(?:retryDelay\W+|(?:try again|retry) (?:in|after) )((?:{_SPAN} ?)+)", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "milli": 0.001, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
_LONG_WAIT_S = 60.0
_BAD_KEY = re.compile(r"API_KEY_INVALID|API key (?:not valid|expired)", re.IGNORECASE)  # Google, with 400
_REFUSED = re.compile(r"content_policy_violation|content_filter|content management policy", re.IGNORECASE)
PICTURES = "pictures"
"""What a refusal of a picture names in place of a field; see `refused_field`."""
PART = "part"
"""Of any other part; see `providers/refused_parts`."""
_REFUSAL_WORDS = re.compile(
    r"unsupported|not supported|does(?: not|n't) support|unrecognized|unknown|unexpected|not permitted|"
    r"not allowed|extra (?:inputs|fields|field)|extra_forbidden|deprecated|must be one of|only .*default",
    re.IGNORECASE,
)


class FieldRefused(ModelError):
    """A server refused one optional field, or a part; the adapter will leave it out from now on.

    Attributes:
        field: the refused field of the request; PICTURES: one of its pictures; PART: that of `key`.
        left_out: what a person is told, "" for fields: nothing of what was said is missing without them.
    """

    def __init__(self, error: ModelError, field: str, part: str = "", key: str = "") -> None:
        named = {PICTURES: "its pictures are", PART: f"{part} is"}.get(field, f"the field {field!r} is")
        self.left_out = f"{error}; {named} left out from now on" if field in (PICTURES, PART) else ""
        self.key = key
        super().__init__(
            f"{error} ({named} left out from now on)",
            kind="bad_request",
            provider=error.provider,
            model=error.model,
            status=error.status,
            retryable=True,
            request_id=error.request_id,
        )
        self.field = field


class Asked(msgspec.Struct, frozen=True):
    """Who was asked: named in every error."""

    provider: str
    model: str
    base_url: str = ""
    key_variable: str | None = None

    def error(self, kind: ModelErrorKind, message: str, **details: Any) -> ModelError:
        """Return a ModelError that names this provider and model."""
        return ModelError(message, kind=kind, provider=self.provider, model=self.model, **details)


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds a server asks to wait, from `Retry-After` (seconds or date), else None.

    Example:
        >>> retry_after_s({"retry-after": "2"})
        2.0
    """
    millis, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if millis:
            return max(0.0, float(millis) / 1000)
        if value:
            return max(0.0, float(value))
    except ValueError:
        pass
    if not value:
        return None
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - (now or datetime.now(UTC))).total_seconds())


def error_from_status(
    asked: Asked, status: int, headers: Mapping[str, str], body: str, redactor: Redactor
) -> ModelError:
    """Return the error that an HTTP answer of `status` means.

    Args:
        asked: who answered.
        headers: with lower-case names.
        body: the answer's text, of any length.
        redactor: removes secrets from what is quoted.
    """
    said = _said(body)
    text = said[:_BODY_READ] + body[:_BODY_READ]
    wait = retry_after_s(headers)
    if wait is None and status in RETRYABLE_STATUSES:
        wait = _named_wait(text)
    kind = _kind(status, text, wait)
    retryable = status in RETRYABLE_STATUSES and kind not in ("quota", "context_overflow")
    message = (
        f"{_headline(asked, kind, status)}: {quoted(said, redactor)}"
        if said
        else _headline(asked, kind, status)
    )
    if wait is not None and retryable:
        message += f" (it asks to wait {wait:.0f} s)"
    advice = _advice(asked, kind)
    return asked.error(
        kind,
        message.rstrip(".") + advice if advice else message,
        status=status,
        retryable=retryable,
        retry_after_s=wait,
        request_id=headers.get("request-id") or headers.get("x-request-id"),
    )


def error_in_stream(asked: Asked, payload: Mapping[str, Any], redactor: Redactor) -> ModelError:
    """Return the error that an error event inside a stream means; it has no status of its own."""
    codes = [payload.get(key) for key in ("type", "code", "status")]
    numbers = [
        int(c) for c in codes if isinstance(c, int) or (isinstance(c, str) and len(c) == 3 and c.isdecimal())
    ]
    status = next((number for number in numbers if 400 <= number < 600), None)
    if status is None:
        status = next((_STATUS_BY_TYPE[c] for c in codes if isinstance(c, str) and c in _STATUS_BY_TYPE), 500)
    return error_from_status(asked, status, {}, json.dumps({"error": dict(payload)}), redactor)


def quoted(text: str, redactor: Redactor) -> str:
    """Return what a provider said, on one line, without secrets, at most 500 characters."""
    # Redacted before it is cut: half a key would no longer be recognised.
    clean = " ".join(redactor.text(text).split())
    return clean if len(clean) <= BODY_LIMIT else clean[: BODY_LIMIT - 1] + "…"


def refused_field(status: int | None, body: str, optional: Collection[str]) -> str | None:
    """Return which optional field of a request a 400 or 422 complains about, None for other reasons.

    Args:
        status: HTTP status.
        body: the answer's text.
        optional: fields that were sent and may be left out; longer names win.

    Example:
        >>> refused_field(400, '{"message":"Unknown parameter: stream_options"}', ["stream_options"])
        'stream_options'
    """
    if status not in (400, 404, 422):
        return None
    error, said = _error_of(body), _said(body)
    if PICTURES in optional and "image" in said.lower():
        return PICTURES  # by name of the part, or what is wrong with it; 404: no model there takes any
    if status == 404 or not _REFUSAL_WORDS.search(said):
        return None
    names = sorted(optional, key=len, reverse=True)
    param = error.get("param")
    if isinstance(param, str) and param.split(".", 1)[0] in names:
        return param.split(".", 1)[0]
    # Some say `reasoningEffort` of `reasoning_effort`, and thinking of `think`.
    plain = said.replace("_", "").lower()
    return next((n for n in names if re.search(rf"(?<!\w){n.replace('_', '')}(?:ing)?(?!\w)", plain)), None)


def _error_of(body: str) -> dict[str, Any]:
    try:
        data: object = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    while isinstance(data, list) and data:  # Google answers with a list of one error
        data = cast("list[object]", data)[0]
    if not isinstance(data, dict):
        return {}
    table = cast("dict[str, Any]", data)
    inner = table.get("error")
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else table


def _said(body: str) -> str:
    """Return the words of an error body: its message and code, or the body itself."""
    error = _error_of(body)
    for key in ("message", "detail", "error", "msg"):
        value = error.get(key)
        if value:
            text = value if isinstance(value, str) else json.dumps(value)
            code = error.get("code")
            return f"{text} [{code}]" if isinstance(code, str) and code not in text else text
    text = body.strip()
    return _words_of_page(text) if _PAGE.match(text) else text


_PAGE = re.compile(r"<(!doctype html|html)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)
_UNSEEN = re.compile(r"<(style|script)\b[^<>]*>[^<]*", re.IGNORECASE)
_MARK = re.compile(r"<[^<>]*>?")
_PAGE_READ = 20_000
"""Characters of a page that are looked at: its title stands at the beginning."""


def _words_of_page(page: str) -> str:
    """Return what a proxy's error page says: its title, else its words."""
    begin = page[:_PAGE_READ]
    title = _TITLE.search(begin)
    words = title[1] if title and title[1].strip() else _MARK.sub(" ", _UNSEEN.sub(" ", begin))
    return " ".join(html.unescape(words).split())


def _kind(status: int, text: str, wait: float | None) -> ModelErrorKind:
    never_fits = status in (413, 429) and _NEVER_FITS.search(text)
    if status == 413 or never_fits or ((status in (400, 422) or status >= 500) and _OVERFLOW.search(text)):
        return "context_overflow"
    if _is_quota(status, text, wait):
        return "quota"
    if status in (400, 403, 422) and _REFUSED.search(text):
        return "refused"
    if status == 400 and _BAD_KEY.search(text):
        return "auth"
    return _KIND_BY_STATUS.get(status, "server" if status >= 500 else "bad_request")


def _is_quota(status: int, text: str, wait: float | None) -> bool:
    """Whether what is used up does not come back within minutes; the words alone are those of both."""
    if status not in (400, 402, 403, 422, 429):
        return False
    if status != 429 or _NO_MONEY.search(text):
        return bool(_NO_MONEY.search(text) or _QUOTA.search(text))
    spans = set(_SPAN_OF_QUOTA.findall(text))
    if spans:
        return "Day" in spans
    if wait is not None and wait <= _LONG_WAIT_S:
        return False
    return bool(_DAILY.search(text)) or (wait is None and bool(_QUOTA.search(text)))


def _named_wait(text: str) -> float | None:
    """Return the seconds that an error body asks to wait, None where it names none."""
    found = _WAIT.search(text)
    if found is None:
        return None
    return sum(float(count) * _SECONDS[unit] for count, unit in re.findall(_SPAN, found[1].lower()))


_HEADLINES: dict[ModelErrorKind, str] = {
    "auth": "{provider} refused the key",
    "not_found": "{provider} has no model {model!r} at {base_url}",
    "rate_limit": "{provider} limits the rate of requests",
    "overloaded": "{provider} is overloaded",
    "server": "{provider} failed",
    "timeout": "{provider} timed out",
    "bad_request": "{provider} refused the request to {model}",
    "context_overflow": "the conversation is too long for {provider}:{model}",
    "quota": "the quota at {provider} is used up",
    "refused": "{provider} refused the content",
}


def _headline(asked: Asked, kind: ModelErrorKind, status: int) -> str:
    text = _HEADLINES[kind].format(provider=asked.provider, model=asked.model, base_url=asked.base_url)
    return f"{text} (HTTP {status})"


def _advice(asked: Asked, kind: ModelErrorKind) -> str:
    if kind == "auth" and asked.key_variable:
        return f"; check {asked.key_variable}"
    if kind == "not_found":
        return "; check the model's name and the base URL"
    if kind == "quota":
        return "; add credit there or choose another model"
    return ""
