"""What of a history is sent: shortened results, summaries in place of old messages (AG-54 … AG-57).

Here: pure functions from history to the messages of a request, and the plan of a summary. This is
the one file to change for another compaction rule. Not here: calling a model for the summary
(`turn_loop/summarise`), storing anything, the history itself, which no function here alters.
"""

from collections.abc import Container, Iterable, Mapping, Sequence

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
SUMMARY_SHARE = 0.04  # of the window, for all of a summary: 8,000 tokens of 200,000
LEAST_SUMMARY = 1_000  # tokens, where the window has four times as many
WRITTEN_SHARE, PART_SHARE = 0.4, 0.15  # of a summary: what the model wrote, and each list beside it
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
        said: what the user said before it, answers to the agent's questions too.
        ran: commands, each with what it failed with, and other calls that failed.
    """

    old: tuple[Message, ...]
    kept: tuple[Message, ...]
    request: Message | None
    said: tuple[str, ...] = ()
    ran: tuple[str, ...] = ()


def plan_summary(
    history: History, window: int, *, share: float = KEPT_SHARE, before_request: bool = False
) -> SummaryPlan | None:
    """Return what to summarise, None when there is nothing but the last message.

    Args:
        history: complete, without pending calls.
        window: tokens of the model's window.
        share: the part of the window that the newest messages may fill.
        before_request: summarise all that came before the user's last message, and nothing after it.
    """
    messages = tuple(history.messages)
    if len(messages) < 2:
        return None
    # When all of it would be kept, the last exchange is: a summary of nothing helps nobody.
    cut = _first_kept(messages, int(window * share))
    last = next((i for i in range(len(messages) - 1, -1, -1) if _is_own(messages[i], history)), None)
    if last and before_request:
        cut = last
    elif last is not None and cut == len(messages) == last + 1:
        cut -= 1  # an unanswered question is kept itself
    request = messages[last] if last is not None and last < cut else None
    said, ran = _word_for_word(messages[:cut], history, request)
    return SummaryPlan(messages[:cut], messages[cut:], request, said, ran)


def _word_for_word(
    old: Sequence[Message], history: History, request: Message | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what the user said and what was run, from the messages themselves: no summary tells it again."""
    uses: dict[str, ToolUseBlock] = {}
    said: list[str] = []
    ran: dict[str, None] = {}
    for message in old:
        uses |= {use.id: use for use in message.tool_uses}
        if message is not request and _is_own(message, history):
            said.append(message.text)
        for result in message.tool_results:
            use = uses.get(result.tool_use_id)
            if use is None:
                continue
            if use.name == "ask_user":
                said.append(f"{use.input.get('question')}: {result_text(result)}")
            elif line := _run_line(use, result):
                ran.pop(line, None)
                ran[line] = None
    return tuple(said), tuple(ran)


def _run_line(use: ToolUseBlock, result: ToolResultBlock) -> str:
    """Return a command with what it failed with; "" for a call that is neither a command nor failed."""
    failed = result.is_error or bool((result.data or {}).get("exit_code"))
    command = use.input.get("command")
    if not failed and not isinstance(command, str):
        return ""
    shown = f"$ {command}" if command else f"{use.name} {msgspec.json.encode(use.input).decode()}"
    return clipped(shown, 600) + (f"\n→ {clipped(result_text(result), 600)}" if failed else "")


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


def summary_tokens(window: int) -> int:
    """Return how many tokens a summary may be, with all that is kept word for word in it."""
    return max(int(window * SUMMARY_SHARE), min(LEAST_SUMMARY, window // 4))


def summary_text(
    summary: str,
    plan: SummaryPlan,
    transcript: str | None,
    notes: Mapping[str, str],
    left_out: int = 0,
    window: int = 200_000,
) -> str:
    """Return the text that stands for `plan.old` from now on, of at most `summary_tokens(window)`.

    Args:
        summary: what the summariser wrote; "" when it failed and the old part is only left out.
        transcript: where the full text can be read.
        notes: heading → text: open tasks, changed files, plan.
        left_out: exchanges left out without a summary.
    """
    room = summary_tokens(window) * CHARS_PER_TOKEN
    where = f" The full text is in {transcript} (read_file)." if transcript else ""
    if summary:
        parts = [
            f"[Summary of the conversation so far.{where}]",
            clipped(summary.strip(), int(room * WRITTEN_SHARE)),
        ]
    else:
        parts = [f"[{left_out} earlier exchanges were left out to make room.{where}]"]
    each = int(room * PART_SHARE)
    kept = {heading: text.strip() for heading, text in notes.items() if text.strip()}
    parts += [f"## {heading}\n{clipped(text, each // len(kept))}" for heading, text in kept.items()]
    if ran := _newest(plan.ran, each):
        parts.append(f"## Commands that were run and what failed, word for word\n{ran}")
    room -= sum(len(part) + 2 for part in parts) + len(_SAID) + len(_LAST)
    request = "" if plan.request is None else plan.request.text
    if said := _newest(plan.said, max(room // 3, room - len(request)), first=True):
        parts.append(_SAID + said)
    if plan.request is not None:
        parts.append(_LAST + clipped(request, room - len(said)))
    return "\n\n".join(parts)


_SAID = "## What the user said before, word for word\n"
_LAST = "## The user's last message, verbatim\n"


def _newest(texts: Sequence[str], room: int, *, first: bool = False) -> str:
    """Return the newest of `texts` that fit, in order, and what is not there; with the first of all."""
    chosen: dict[int, str] = {}
    left = room - 60  # for the line that says what is not there
    order = [*([0] if first and texts else []), *range(len(texts) - 1, -1, -1)]
    for at in order:
        text = clipped(texts[at], left if len(texts) == 1 else room // 2)
        if at not in chosen and len(text) + 2 <= left:
            chosen[at] = text
            left -= len(text) + 2
        if left < 40:
            break
    missing = len(texts) - len(chosen)
    shown = [chosen[at] for at in sorted(chosen)]
    return "\n\n".join([*shown, *([f"[… {missing} more are not repeated here]"] if missing else [])])


def clipped(text: str, limit: int) -> str:
    """Return `text` with so much of its middle left out that it has at most `limit` characters."""
    if len(text) <= limit:
        return text
    mark = f"\n[… {len(text) - limit:,} characters left out …]\n"
    left = max(0, limit - len(mark))
    return f"{text[: left - left // 2]}{mark}{text[len(text) - left // 2 :]}" if left else text[:limit]


def exchanges(messages: Iterable[Message]) -> int:
    """Return how many answers of the model are among `messages`, at least 1."""
    return max(1, sum(m.role == "assistant" for m in messages))


def as_text(messages: Iterable[Message], limit: int, whole: Container[str] = ()) -> str:
    """Return a dialogue as plain text of at most `limit` characters, long parts cut in their middle.

    This is what a summariser reads: tool calls as lines, so that it needs no tools of its own.

    Args:
        whole: ids of messages that are not cut before others, say of an earlier summary.
    """
    parts = [(message.id in whole, _said(message)) for message in messages]
    if sum(len(said) for _, said in parts) > limit:
        # Every part gives up the same share above a floor, so that no single file crowds out the rest.
        room = limit - sum(len(said) for is_whole, said in parts if is_whole)
        each = max(200, room // len(parts))
        parts = [(is_whole, said if is_whole else clipped(said, each)) for is_whole, said in parts]
    return clipped("\n\n".join(said for _, said in parts), limit)


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
