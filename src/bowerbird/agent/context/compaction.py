"""What of a history is sent: shortened results, summaries in place of old messages (AG-54 … AG-57).

Here: pure functions from history to the messages of a request, and the plan of a summary. This is
the one file to change for another compaction rule. Not here: calling a model for the summary
(`turn_loop/summarise`), storing anything, the history itself, which no function here alters.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bowerbird.agent.context.history import History
from bowerbird.agent.context.sending import Sending, standing
from bowerbird.core.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    result_text,
)

KEPT_SHARE = 0.25  # of the window, for the newest messages beside a summary
CHARS_PER_TOKEN = 4


class SentView(msgspec.Struct, frozen=True):
    """The messages of a request.

    Attributes:
        cache_marks: indexes after which a provider may cache.
        size: characters of the messages.
    """

    messages: Sequence[Message]
    cache_marks: tuple[int, ...] = ()
    size: int = 0

    @property
    def tokens(self) -> int:
        """Roughly how many tokens the messages are."""
        return self.size // CHARS_PER_TOKEN


def sent_view(history: History) -> SentView:
    """Return what is sent of `history`. Pure: equal histories give equal views.

    A result that is replaced stays replaced in every longer history.
    """
    known = _sending_of(history)
    marks = {i for i in (known.shortened, len(known.sent) - 1) if i >= 0}
    return SentView(known.sent, tuple(sorted(marks)), known.size)


def sent_tokens(history: History) -> int:
    """Return roughly how many tokens what is sent of `history` is."""
    return _sending_of(history).size // CHARS_PER_TOKEN


def _sending_of(history: History) -> Sending:
    """Return what is sent of `history`, for reading only: it may be the one that was made with it."""
    known, messages = history.sending, history.messages
    is_older = known is not None and known.compactions != history.compactions
    if known is not None and is_older and messages and known.unsent == history.unsent:
        known = known.summed_up(history.compactions, messages[0].id) or known
    if (
        known is None
        or known.compactions != history.compactions
        or known.unsent != history.unsent
        or known.taken > len(messages)
    ):
        return Sending.of(messages, history.compactions, history.unsent, history.started, history.room)
    if known.taken < len(messages):
        known = known.copy()
        known.extend(messages[known.taken :], history.started)
    return known


def introduced(view: SentView, identity: str) -> SentView:
    """Return a view that says first who the agent is.

    Args:
        identity: what is said; "" leaves every view as it is.
    """
    if not identity or not view.messages:
        return view
    first = Message("user", (TextBlock(identity),), "identity", view.messages[0].ts)
    marks = tuple(mark + 1 for mark in view.cache_marks)
    return SentView((first, *view.messages), marks, view.size + first.size)


def standing_messages(history: History) -> list[Message]:
    """Return the messages with each compacted range replaced by its summary."""
    return standing(history.messages, history.compactions)


# ---------------------------------------------------------------- sizes


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Return roughly how many tokens these messages are: a quarter of their characters."""
    return sum([m.size for m in messages]) // CHARS_PER_TOKEN


def text_tokens(*texts: str) -> int:
    """Return roughly how many tokens these texts are."""
    return sum(len(t) for t in texts) // CHARS_PER_TOKEN


# ---------------------------------------------------------------- summaries


class SummaryPlan(msgspec.Struct, frozen=True):
    """Which messages a summary will stand for.

    Args:
        old: the messages summarised, from the first of the history on.
        kept: the newest ones, sent as they are after the summary.
        request: the user's last own message if it is among `old`, to be repeated verbatim.
    """

    old: tuple[Message, ...]
    kept: tuple[Message, ...]
    request: Message | None


def plan_summary(history: History, window: int, *, share: float = KEPT_SHARE) -> SummaryPlan | None:
    """Return what to summarise, None when there is nothing but the last message.

    Args:
        history: complete, without pending calls.
        window: tokens of the model's window.
        share: the part of the window that the newest messages may fill.
    """
    messages = tuple(history.messages)
    if len(messages) < 2:
        return None
    # When all of it would be kept, the last exchange is: a summary of nothing helps nobody.
    cut = _first_kept(messages, int(window * share))
    last = next((i for i in range(len(messages) - 1, -1, -1) if _is_own(messages[i], history)), None)
    if last is not None and cut == len(messages) == last + 1:
        cut -= 1  # an unanswered question is kept itself
    request = messages[last] if last is not None and last < cut else None
    return SummaryPlan(messages[:cut], messages[cut:], request)


def _first_kept(messages: Sequence[Message], room: int) -> int:
    """Return where the newest messages begin that fit `room` tokens; never between a call and its result.

    One pass from the end, which stops where the room does: a history may have 100,000 messages.
    """
    first, size = len(messages), 0
    for i in range(len(messages) - 1, 0, -1):
        size += messages[i].size
        if size // CHARS_PER_TOKEN > room:
            break
        if not messages[i].tool_results:
            first = i
    return first


def _is_own(message: Message, history: History) -> bool:
    """Whether the user said this."""
    return message.role == "user" and message.id not in history.injected and not message.tool_results


def summary_text(
    summary: str, plan: SummaryPlan, transcript: str | None, notes: Mapping[str, str], left_out: int = 0
) -> str:
    """Return the text that stands for `plan.old` from now on.

    Args:
        summary: what the summariser wrote; "" when it failed and the old part is only left out.
        transcript: where the full text can be read.
        notes: heading → text: open tasks, changed files, plan.
        left_out: exchanges left out without a summary.
    """
    where = f" The full text is in {transcript} (read_file)." if transcript else ""
    if summary:
        parts = [f"[Summary of the conversation so far.{where}]", summary.strip()]
    else:
        parts = [f"[{left_out} earlier exchanges were left out to make room.{where}]"]
    parts += [f"## {heading}\n{text.strip()}" for heading, text in notes.items() if text.strip()]
    if plan.request is not None:
        parts.append(f"## The user's last message, verbatim\n{plan.request.text}")
    return "\n\n".join(parts)


def exchanges(messages: Iterable[Message]) -> int:
    """Return how many answers of the model are among `messages`, at least 1."""
    return max(1, sum(m.role == "assistant" for m in messages))


def as_text(messages: Iterable[Message], limit: int) -> str:
    """Return a dialogue as plain text of at most `limit` characters, long parts cut in their middle.

    This is what a summariser reads: tool calls as lines, so that it needs no tools of its own.
    """
    parts = [_said(m) for m in messages]
    total = sum(len(p) for p in parts)
    if total > limit and parts:
        # Every part gives up the same share above a floor, so that no single file crowds out the rest.
        each = max(200, limit // len(parts))
        parts = [p if len(p) <= each else f"{p[: each * 2 // 3]}\n[…]\n{p[-each // 3 :]}" for p in parts]
    text = "\n\n".join(parts)
    return text if len(text) <= limit else f"{text[: limit // 3]}\n[…]\n{text[-limit * 2 // 3 :]}"


def _said(message: Message) -> str:
    lines: list[str] = []
    for block in message.content:
        match block:
            case TextBlock():
                lines.append(block.text)
            case ToolUseBlock():
                lines.append(f"→ {block.name} {msgspec.json.encode(block.input).decode()}")
            case ToolResultBlock():
                lines.append(f"← {'error: ' if block.is_error else ''}{result_text(block)}")
            case ImageBlock():
                lines.append(f"[{block.media_type}]")
            case _:
                pass
    return f"{message.role}: " + "\n".join(lines)
