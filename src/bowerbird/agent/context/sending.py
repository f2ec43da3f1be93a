"""What is sent of a history while it grows: each message is looked at once, not once per model call.

Here: summaries in place of what they stand for, orphaned calls (AG-47), old results shortened (AG-55), and
the running result of all three. Not here: when a summary is made and what it says (`turn_loop/summarise`),
the history itself (`history`), which nothing here alters.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from bowerbird.core.events import Compaction
from bowerbird.core.growing import Growing, Names
from bowerbird.core.messages import IMAGE_SIZE, ImageBlock, Message, TextBlock, ToolResultBlock, result_text

LONG_RESULT = 100  # characters; longer results are replaced once they are old
FULL_RESULTS = 3  # newest results that stay whole
LEFT = 0.5  # of the room, once results were replaced to make some
LEAST_GAIN = 0.125  # of the room; a step that frees less is not worth a beginning that is written anew
CLEARED = "[Previous: used {tool}. The result was cleared to make room: call it again to read it again.]"
NEVER_SHORTENED = frozenset(("read_skill",))
EFFECT_UNKNOWN = "interrupted, effect unknown"
NOT_EXECUTED = "not executed"


class _Open(NamedTuple):
    """A result that may still be shortened, and in which sent message it is."""

    at: int
    call: str
    tool: str
    can_be: bool
    size: int


class Sending:
    """The sent form of a history up to its last finished exchange. Owned by whoever made or copied it.

    A result that is replaced stays replaced in every longer history with the same summaries, whether it
    grew or is worked out anew: what is replaced follows from the messages before alone.

    Attributes:
        room: characters of what is sent; when there are more, results are replaced in one large step, old
            and large ones first. 0 = all but the newest three always are, None = none is.
        taken: how many messages of the history are in it.
        sent: what is sent of them. size: characters of that.
        shortened: index of the last sent message with a shortened result, -1 for none.
        calls: ids of every call in the messages taken.
    """

    def __init__(
        self,
        compactions: tuple[Compaction, ...] = (),
        unsent: frozenset[str] = frozenset(),
        room: int | None = None,
    ) -> None:
        self.compactions, self.unsent, self.room = compactions, unsent, room
        self.taken = 0
        self.sent: Growing[Message] = Growing()
        self.size = 0
        self.shortened = -1
        self.calls = Names()
        self._open: deque[_Open] = deque()
        self._said = -1
        self._names: dict[str, str] = {}

    @classmethod
    def of(
        cls,
        messages: Sequence[Message],
        compactions: tuple[Compaction, ...],
        unsent: frozenset[str],
        started: Collection[str],
        room: int | None = None,
    ) -> "Sending":
        """Return the sent form of a whole history."""
        made = cls(compactions, unsent, room)
        made._extend(standing(messages, compactions), started)
        made.taken = len(messages)
        made.calls = Names.of(use.id for message in messages for use in message.tool_uses)
        return made

    def copy(self) -> "Sending":
        """Return one that can grow by itself."""
        other = Sending(self.compactions, self.unsent, self.room)
        other.taken, other.size, other.shortened = self.taken, self.size, self.shortened
        other.sent, other.calls = self.sent, self.calls
        other._open, other._said, other._names = self._open.copy(), self._said, self._names
        return other

    def within(self, room: int | None) -> "Sending | None":
        """Return the sent form with another room; None where it has to be worked out anew."""
        if room != 0 and self.shortened < 0 and (room is None or self.size <= room):
            other = self.copy()
            other.room = room
            return other
        return None

    def summed_up(self, compactions: tuple[Compaction, ...], first_id: str) -> "Sending | None":
        """Return what is sent once one more summary stands for the beginning; the rest is not looked at.

        Args:
            compactions: all of them. first_id: of the history's first message.

        Returns None where only a look at the whole history tells: the summary is not of its beginning, or
        ends where something else begins that is not sent by itself; or results are whole again, as there is
        room for them.
        """
        if self.room and self.shortened >= 0:
            return None
        if not compactions or self.compactions != compactions[:-1] or compactions[-1].from_id != first_id:
            return None
        made = compactions[-1]
        back = next((i for i, m in enumerate(reversed(self.sent), 1) if m.id == made.to_id), None)
        end = None if back is None else len(self.sent) - back
        if end is None or self.sent[end].tool_uses:
            return None
        kept = self.sent[end + 1 :]
        other = Sending(compactions, self.unsent, self.room)
        other.sent = Growing.of((summary_message(made, self.sent[end].ts), *kept))
        other.size = sum(message.size for message in other.sent)
        other.taken, other.calls = self.taken, self.calls
        other.shortened = self.shortened - end if self.shortened > end else -1
        other._open = deque(each._replace(at=each.at - end) for each in self._open if each.at > end)
        other._said, other._names = (self._said - end if self._said > end else -1), self._names
        return other

    def extend(self, messages: Sequence[Message], started: Collection[str]) -> None:
        """Take the messages that follow; the results of a call in them are among them, or never come."""
        if messages:
            self._extend(messages, started)
            self.taken += len(messages)
            self.calls = self.calls.plus(use.id for message in messages for use in message.tool_uses)

    def _extend(self, messages: Sequence[Message], started: Collection[str]) -> None:
        known = len(self.sent)
        added = closed([m for m in messages if m.id not in self.unsent], started)
        for at, message in enumerate(added, known):
            self.size += message.size
            if message.role == "assistant":
                self._said = at
                self._names = {use.id: use.name for use in message.tool_uses}
            for result in message.tool_results:
                tool = self._names.get(result.tool_use_id, "")
                can_be = tool not in NEVER_SHORTENED and _is_long(result)
                self._open.append(_Open(at, result.tool_use_id, tool, can_be, _size_of(result)))
            if self.room and message.role == "user" and self.size > self.room:
                self._make_room(self.room, known, added)
        while self.room == 0 and len(self._open) > FULL_RESULTS and self._open[0].at <= self._said:
            self._replace(self._open.popleft(), known, added)
        self.sent = self.sent.plus(added)

    def _make_room(self, room: int, known: int, added: list[Message]) -> None:
        """Replace results in one large step, those first that are old and large; unseen ones never."""
        seen = [old for old in self._open if old.at <= self._said and old.can_be]
        newest = {old.call for old in list(self._open)[-FULL_RESULTS:]}
        able = [old for old in seen if old.call not in newest]
        if sum(old.size for old in able) < LEAST_GAIN * room:
            return
        end = self._said + 1
        for old in sorted(able, key=lambda old: old.size * (end - old.at), reverse=True):
            if self.size <= LEFT * room:
                break
            self._replace(old, known, added)
            self._open.remove(old)

    def _replace(self, old: _Open, known: int, added: list[Message]) -> None:
        if old.can_be and old.at < known:
            self.sent = self.sent.replaced(old.at, self._shortened(self.sent[old.at], old))
        elif old.can_be:
            added[old.at - known] = self._shortened(added[old.at - known], old)

    def _shortened(self, message: Message, old: _Open) -> Message:
        blocks = tuple(
            ToolResultBlock(b.tool_use_id, CLEARED.format(tool=old.tool or "a tool"), b.is_error)
            if isinstance(b, ToolResultBlock) and b.tool_use_id == old.call
            else b
            for b in message.content
        )
        shorter = Message(message.role, blocks, message.id, message.ts)
        self.size += shorter.size - message.size
        self.shortened = max(self.shortened, old.at)
        return shorter


def _is_long(result: ToolResultBlock) -> bool:
    if isinstance(result.content, str):
        return len(result.content) > LONG_RESULT
    return len(result_text(result)) > LONG_RESULT or any(isinstance(b, ImageBlock) for b in result.content)


def _size_of(result: ToolResultBlock) -> int:
    if isinstance(result.content, str):
        return len(result.content)
    images = sum(isinstance(part, ImageBlock) for part in result.content)
    return len(result_text(result)) + images * IMAGE_SIZE


def standing(messages: Sequence[Message], compactions: Iterable[Compaction]) -> list[Message]:
    """Return the messages with each compacted range replaced by its summary."""
    made = list(compactions)
    if not made:
        return list(messages)
    wanted = {m for each in made for m in (each.from_id, each.to_id)}
    places = {message.id: i for i, message in enumerate(messages) if message.id in wanted}
    ranges: dict[int, tuple[int, Compaction]] = {}  # first → last, of what stands now
    for each in made:
        first, last = places.get(each.from_id), places.get(each.to_id)
        if first is None or last is None or last < first:
            continue  # the range is not in this history (a fork from before it)
        if any(a < first <= b or a <= last < b for a, (b, _) in ranges.items()):
            continue  # it begins or ends inside of what a summary stands for already
        ranges = {a: kept for a, kept in ranges.items() if not first <= a <= last}
        ranges[first] = (last, each)
    found: list[Message] = []
    at = 0
    for first in sorted(ranges):
        last, each = ranges[first]
        found += [*messages[at:first], summary_message(each, messages[last].ts)]
        at = last + 1
    return [*found, *messages[at:]]


def summary_message(made: Compaction, ts: str) -> Message:
    """Return the message that stands for the compacted range."""
    return Message("user", (TextBlock(made.summary),), f"{made.to_id}_summary", ts)


def results_id(asker: Message) -> str:
    """Return the id of the message that holds the results of the calls in `asker`."""
    return f"{asker.id}_results"


def closed(messages: Sequence[Message], started: Collection[str]) -> list[Message]:
    """Return `messages` with exactly one result directly after each call.

    A call without result gets an error result; results without a call, or far from it, are moved
    or left out. Messages without content are left out.
    """
    results = {r.tool_use_id: r for m in messages for r in m.tool_results}
    sent: list[Message] = []
    for message in messages:
        if len(message.content) == 1 and isinstance(message.content[0], TextBlock):
            sent.append(message)  # by far the most
            continue
        if message.role == "assistant":
            if message.content:
                sent.append(message)
            if message.tool_uses:
                sent.append(_results_after(message, results, started))
            continue
        rest = tuple(b for b in message.content if not isinstance(b, ToolResultBlock))
        if len(rest) == len(message.content):
            if rest:
                sent.append(message)
        elif rest:
            sent.append(Message("user", rest, message.id, message.ts))
    return sent


def _results_after(asker: Message, results: dict[str, ToolResultBlock], started: Collection[str]) -> Message:
    blocks = tuple(
        results.get(use.id)
        or ToolResultBlock(use.id, EFFECT_UNKNOWN if use.id in started else NOT_EXECUTED, True)
        for use in asker.tool_uses
    )
    return Message("user", blocks, results_id(asker), asker.ts)
