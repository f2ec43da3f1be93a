"""Whether a model, as its endpoint serves it, can do an agent's work: `bowerbird model check`.

Here: the questions, what an answer is worth, the verdict and the settings that follow. Not here: opening the
model, tables, writing settings (`cli/admin/model_check.py`).

Everything is found out from what comes back: no list of models and no name is asked.
"""

import json
import struct
import time
import zlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from bowerbird.core.errors import BowerbirdError
from bowerbird.core.messages import BlobSource, ImageBlock, Message, TextBlock, ToolResultBlock, user_text
from bowerbird.core.requests import End, ModelRequest, TextDelta, ToolSpec
from bowerbird.models.protocol import Model, complete

Worth = Literal["good", "poor", "bad", "unknown"]
SHARES = (0.25, 0.5, 0.75, 0.95)
"""Of the window: so much is sent, with what is asked for at its very beginning."""
SMALLEST_WINDOW = 8_192
"""Tokens below which no agent's work fits beside its tools."""
MOST_TOKENS = 32_000
"""Of one request, unless the whole window is to be tried: more would cost money that nobody expects."""
_TOKENS_OF_LINE = 11  # at most; what the provider counts decides
_LONG = "\n".join(f"{n:03}: the quick brown fox jumps over the lazy dog" for n in range(100))  # 5 KB
_WORDS = "größe, naïve, 東京, 🐦"
PICTURE = "sha256:check"
_ADD = ToolSpec(
    "add", "Add two numbers.",
    {"type": "object", "required": ["a", "b"],
     "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
)  # fmt: skip
_SAVE = ToolSpec(
    "save", "Save a text under a name.",
    {"type": "object", "properties": {"name": {"type": "string"}, "text": {"type": "string"}},
     "required": ["name", "text"]},
)  # fmt: skip
_ORDER = ToolSpec(
    "order", "Place an order.",
    {"type": "object", "required": ["buyer", "items"], "properties": {
        "buyer": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "items": {"type": "array", "items": {"type": "object", "required": ["what", "count"], "properties": {
            "what": {"type": "string"}, "count": {"type": "integer"}}}}}},
)  # fmt: skip


class Finding(msgspec.Struct, frozen=True):
    """What one question showed: its name, what that is worth, and a sentence with the figure."""

    name: str
    worth: Worth
    told: str


class Report(msgspec.Struct):
    """All findings; `window`: tokens of the largest context that was seen to be there; `cut`: more is not."""

    findings: list[Finding] = msgspec.field(default_factory=list[Finding])
    window: int = 0
    planned: int = 0
    cut: bool = False

    @property
    def verdict(self) -> str:
        """What this means, in a sentence or two."""
        bad = [finding.name for finding in self.findings if finding.worth == "bad"]
        poor = [finding.name for finding in self.findings if finding.worth == "poor"]
        if bad:
            return f"not fit for an agent: {', '.join(bad)}"
        if poor:
            return f"fit for an agent, with limits: {', '.join(poor)}"
        return "fit for an agent"

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of this model that follow, by their names under `models.NAME`."""
        return {"context_window": self.window} if self.cut and self.window >= SMALLEST_WINDOW else {}


def picture() -> bytes:
    """Return a red square as a PNG file of 64 × 64 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff\0\0" * 64) * 64
    head = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


async def check(model: Model, report: Report, *, whole_window: bool = False) -> AsyncGenerator[Finding]:
    """Ask `model` one question after the other; each finding is yielded as it comes, and kept in `report`.

    Args:
        report: is filled.
        whole_window: try the context up to 95 % of the window, whatever that costs; else at most
            `MOST_TOKENS` a request.

    Example:
        >>> report = Report()  # doctest: +SKIP
        >>> async for finding in check(model, report):
        ...     print(finding.told)
    """
    report.planned = model.info.context_window
    first = await _asked("an answer", _speaks(model))
    report.findings.append(first)
    yield first
    if first.worth == "bad":
        return  # nothing else can be found out
    tries = [
        ("a call", _one_call(model)), ("calls at once", _two_calls(model)),
        ("nested and Unicode arguments", _nested(model)), ("5 KB of arguments", _long_arguments(model)),
        ("no call where none is needed", _no_call(model)), ("a long answer", _long_answer(model)),
        ("a form of answers", _form(model)), ("a picture", _sees(model)), ("caching", _caches(model)),
    ]  # fmt: skip
    for name, question in tries:
        finding = await _asked(name, question)
        report.findings.append(finding)
        yield finding
    finding = await _asked("the context", _context(model, report, whole_window))
    report.findings.append(finding)
    yield finding


async def _asked(name: str, question: Any) -> Finding:
    try:
        worth, told = await question
    except BowerbirdError as error:
        return Finding(name, "bad", str(error))
    return Finding(name, worth, told)


async def _say(model: Model, text: str, tools: Sequence[ToolSpec] = (), most: int = 1_024) -> End:
    return await complete(model, ModelRequest((user_text(text),), tools=tuple(tools), max_tokens=most))


async def _speaks(model: Model) -> tuple[Worth, str]:
    began, first, pieces, end = time.monotonic(), 0.0, 0, None
    request = ModelRequest(
        (user_text("Count from 1 to 60, separated by spaces, and say no more."),), max_tokens=2_048
    )
    async for event in model.stream(request):
        if isinstance(event, TextDelta):
            first, pieces = first or time.monotonic(), pieces + 1
        if isinstance(event, End):
            end = event
    took = time.monotonic() - (first or began)
    if end is None or not end.message.text.strip():
        return "bad", "it said nothing"
    rate = end.usage.output_tokens / took if took > 0.01 else 0.0
    speed = f"first word after {(first or began) - began:.1f} s" + (
        f", {rate:.0f} tokens a second" if rate else ""
    )
    if "58 59 60" not in " ".join(end.message.text.split()):
        return "bad", f"it did not do as asked ({speed})"
    if end.stop_reason != "end_turn":
        return "poor", f"it ended with {end.stop_reason} ({speed})"
    return ("poor", f"it comes in one piece ({speed})") if pieces < 3 else ("good", speed)


async def _one_call(model: Model) -> tuple[Worth, str]:
    asked = user_text("Use the tool to add 1742 and 2593.")
    end = await complete(model, ModelRequest((asked,), tools=(_ADD,), max_tokens=1_024))
    uses = end.message.tool_uses
    if not uses:
        return "bad", "it called no tool"
    if end.invalid_calls or uses[0].name != "add" or uses[0].input != {"a": 1742, "b": 2593}:
        return "bad", f"the call was wrong: {uses[0].name} {_short(uses[0].input)}"
    results = Message("user", tuple(ToolResultBlock(use.id, "4335") for use in uses))
    then = await complete(model, ModelRequest((asked, end.message, results), tools=(_ADD,), max_tokens=1_024))
    if "4335" not in then.message.text.replace(",", "").replace(" ", ""):
        return "bad", "it did not use the result"
    return "good", "made, and its result used" + (", after a repair of its form" if end.repairs else "")


async def _two_calls(model: Model) -> tuple[Worth, str]:
    end = await _say(model, "Add 1 and 2, and add 30 and 40: make both calls at once, in one answer.", [_ADD])
    sums = sorted(use.input.get("a", 0) for use in end.message.tool_uses if use.name == "add")
    return ("good", "two in one answer") if sums == [1, 30] else ("poor", "one at a time")


async def _nested(model: Model) -> tuple[Worth, str]:
    said = f"Order 3 pieces of what is called “{_WORDS}” for the buyer Zoë, with the tool."
    end = await _say(model, said, [_ORDER])
    wanted = {"buyer": {"name": "Zoë"}, "items": [{"what": _WORDS, "count": 3}]}
    got = end.message.tool_uses[0].input if end.message.tool_uses else None
    return ("good", "as asked") if got == wanted else ("poor", f"not as asked: {_short(got)}")


async def _long_arguments(model: Model) -> tuple[Worth, str]:
    said = f"Save this text word for word under the name log, with the tool:\n\n{_LONG}"
    end = await _say(model, said, [_SAVE], 8_192)
    uses = end.message.tool_uses
    if not uses or end.invalid_calls:
        return "bad", "no call that can be read" if uses else "it called no tool"
    got = str(uses[0].input.get("text", "")).strip().splitlines()
    right = sum(one == other for one, other in zip(got, _LONG.splitlines(), strict=False))
    return (
        "good" if right >= 98 else "poor" if right >= 50 else "bad"
    ), f"{right} of 100 lines came as they were"


async def _no_call(model: Model) -> tuple[Worth, str]:
    end = await _say(model, "What is the capital of France? Answer with the one word.", [_SAVE, _ADD])
    if end.message.tool_uses:
        return "poor", f"it called {end.message.tool_uses[0].name}"
    return ("good", "none was made") if "paris" in end.message.text.lower() else ("poor", "an odd answer")


async def _long_answer(model: Model) -> tuple[Worth, str]:
    end = await _say(
        model, "Write the numbers from 1 to 500, one a line, leave none out, and say no more.", (), 8_192
    )
    numbers = [line.strip() for line in end.message.text.splitlines() if line.strip().isdigit()]
    right = sum(one == str(number) for number, one in enumerate(numbers, 1))
    return ("good" if right == 500 else "poor"), f"{right} of 500 lines, ended with {end.stop_reason}"


async def _form(model: Model) -> tuple[Worth, str]:
    if not model.info.constrained_output:
        return "unknown", "not asked for: answers are checked, and asked for again"
    form = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    asked = user_text("Name the capital of France as JSON.")
    end = await complete(model, ModelRequest((asked,), output_schema=form, max_tokens=512))
    try:
        data = json.loads(end.message.text)
    except ValueError:
        return "poor", "the answer is not JSON"
    return ("good", "kept") if isinstance(data, dict) and "city" in data else ("poor", "not kept")


async def _sees(model: Model) -> tuple[Worth, str]:
    if not model.info.images:
        return "unknown", "none is sent to this model"
    blocks = (
        TextBlock("Which colour is this square? One word."),
        ImageBlock("image/png", BlobSource(PICTURE)),
    )
    asked = ModelRequest((Message("user", blocks),), max_tokens=256, read_blob=lambda _: picture())
    end = await complete(model, asked)
    return ("good", "seen") if "red" in end.message.text.lower() else ("poor", "not seen")


async def _caches(model: Model) -> tuple[Worth, str]:
    text = _filler(5_000) + "\nAnswer with the word ok."
    await _say(model, text, (), 64)
    used = (await _say(model, text, (), 64)).usage
    if used.estimated:
        return "unknown", "the endpoint counts no tokens"
    if used.cache_read_tokens:
        return "good", f"{used.cache_read_tokens:,} of {used.context_tokens:,} tokens read from the cache"
    return "poor", "none reported: what is sent again is paid for, or evaluated, again"


async def _context(model: Model, report: Report, whole: bool) -> tuple[Worth, str]:
    """Send more and more, each with a word at its very beginning: what is cut is cut there."""
    planned = report.planned
    sizes = {int(planned * share) for share in SHARES} | {3_000, 6_000, 12_000, 24_000, MOST_TOKENS}
    most = planned if whole else min(planned, MOST_TOKENS)
    for size in sorted(size for size in sizes if size <= most):
        word = f"heron-{size * 7919 % 100_003}"
        text = f"The password is {word}.\n{_filler(size - 200)}\nWhat is the password? Answer with it alone."
        try:
            end = await _say(model, text, (), 256)
        except BowerbirdError as error:
            return _window_worth(report, f"more is refused: {error}")
        if word not in end.message.text:
            return _window_worth(report, f"the beginning of {size:,} tokens was not there any more")
        report.window = max(report.window, end.usage.context_tokens if not end.usage.estimated else size)
    tried = (
        "as large as planned" if most == planned else f"more was not tried, of {planned:,} that are planned"
    )
    return "good", f"{report.window:,} tokens are there; {tried}"


def _window_worth(report: Report, why: str) -> tuple[Worth, str]:
    report.cut = True
    worth: Worth = "bad" if report.window < SMALLEST_WINDOW else "poor"
    return worth, f"{report.window:,} tokens of {report.planned:,} are there; {why}"


def _filler(tokens: int) -> str:
    lines = max(0, tokens) // _TOKENS_OF_LINE
    return "\n".join(f"Line {number} says nothing that matters here." for number in range(lines))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:119]}…"
