"""Journal bodies of SE-7 to and from the core's events. Pure.

Here: the form of each record type, effect classes to ledger classes, message ids to record
numbers. Not here: appending or reading records (`store`), what history follows (`history.py`).

A message of the journal has no id of its own: read back, it is called after its record
(`msg_42`), so that a compaction can say which records it stands for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from bowerbird.agent.context.history import results_id
from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    AssistantStep,
    CallAnswer,
    Compaction,
    EffectClass,
    Injected,
    ModeChange,
    ModelSwitch,
    StepEvent,
    ToolIntent,
    ToolOutcome,
    UsageStep,
    UserStep,
)
from bowerbird.core.forms import convert
from bowerbird.core.messages import (
    Block,
    Message,
    Role,
    TextBlock,
    block_to_data,
    blocks_from_data,
)
from bowerbird.core.usage import Usage
from bowerbird.store.journal.journal import CORRUPT, VERSION, LedgerClass, NewRecord, Record

GAP_TEXT = "[Record {seq} of this conversation could not be read and was set aside: {reason}]"

_LEDGER: dict[EffectClass, LedgerClass] = {
    "read": "read",
    "plan": "store",
    "session": "store",
    "branch": "branch",
    "outside": "external",
}
_EFFECT: dict[str, EffectClass] = {
    "read": "read",
    "store": "session",
    "branch": "branch",
    "keyed": "outside",
    "external": "outside",
}


def ledger_class(effect: EffectClass, key: str | None) -> LedgerClass:
    """Return the class of the effect ledger for a tool's class.

    Args:
        effect: class of the tool with these arguments.
        key: the idempotency key the call passes on, None for none.

    Example:
        >>> ledger_class("outside", "k-1")
        'keyed'
    """
    return "keyed" if effect == "outside" and key is not None else _LEDGER[effect]


# ---------------------------------------------------------------- message ids


class MessageSeqs(msgspec.Struct):
    """Which record holds which message, for compactions; owned by one driver.

    A driver's are its own over the session's, which only grow: so beginning a turn copies nothing.
    """

    _first: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    _last: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    _asker: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    _name: dict[int, str] = msgspec.field(default_factory=dict[int, str])
    _under: "MessageSeqs | None" = None

    def add(self, event: StepEvent, seq: int) -> None:
        """Note that `event` is record `seq`."""
        if isinstance(event, UserStep | Injected | AssistantStep):
            self._note(event.message.id, seq)
            for use in event.message.tool_uses:
                self._asker[use.id] = results_id(event.message)
        elif isinstance(event, ToolOutcome) and (asker := self._asker_of(event.call)) is not None:
            self._note(asker, seq)

    def over(self) -> "MessageSeqs":
        """Return places that can be added to without changing these."""
        return MessageSeqs(_under=self)

    def span(self, from_id: str, to_id: str) -> tuple[int, int]:
        """Return the first and last record of the messages `from_id` … `to_id`; 0 when unknown."""
        first, last = self._first.get(from_id), self._last.get(to_id)
        if self._under is not None and (first is None or last is None):
            below = self._under.span(from_id, to_id)
            return first or below[0], last or below[1]
        return first or 0, last or 0

    def id_of(self, seq: int) -> str:
        """Return the id of the message that record `seq` is part of, "" when there is none."""
        name = self._name.get(seq, "")
        return name or (self._under.id_of(seq) if self._under is not None else "")

    def _asker_of(self, call: str) -> str | None:
        asker = self._asker.get(call)
        return self._under._asker_of(call) if asker is None and self._under is not None else asker

    def _note(self, message_id: str, seq: int) -> None:
        if message_id not in self._first:
            below = self._under.span(message_id, message_id)[0] if self._under is not None else 0
            self._first[message_id] = below or seq
        self._last[message_id] = seq
        self._name[seq] = message_id


# ---------------------------------------------------------------- event → record


def to_record(event: StepEvent, turn: str, seqs: MessageSeqs) -> NewRecord | None:
    """Return the record of a step event, None for one that only has ledger or usage rows.

    Args:
        turn: the running turn's id.
        seqs: where the messages so far are; needed for compactions.
    """
    match event:
        case UserStep():
            return user_record(event.message.content, turn, {}, steer=event.steer)
        case AssistantStep():
            body = _assistant_body(event)
        case ToolIntent():
            body = {
                "call": event.call, "tool": event.tool, "input": event.input,
                "class": ledger_class(event.effect, event.key), "mark": event.mark, "key": event.key,
            }  # fmt: skip
        case ToolOutcome():
            body = _outcome_body(event)
        case Injected():
            body = {"source": event.source, "content": _blocks(event.message.content)}
            body |= {"ids": list(event.ids)} if event.ids else {}
        case Compaction():
            first, last = seqs.span(event.from_id, event.to_id)
            body = {
                "from_seq": first, "to_seq": last, "summary": event.summary, "reason": event.reason,
                "focus": event.focus,
            }  # fmt: skip
            body |= {"transcript": event.transcript} if event.transcript else {}
        case ApprovalRequest():
            body = {"id": event.id, "kind": event.kind, "calls": list(event.calls)}
            body |= {"expires_at": event.expires_at}
            body |= {"tools": list(event.tools)} if event.tools else {}
            body |= {"text": event.text} if event.text else {}
        case ApprovalAnswer():
            body = {"id": event.id, "decision": event.decision, "by": event.by, "feedback": event.feedback}
            body |= {"calls": msgspec.to_builtins(event.calls)} if event.calls else {}
        case ModelSwitch():
            body = {"tier": event.tier, "by": event.by}
        case ModeChange():
            body = {**event.changes, "by": event.by}
        case UsageStep():
            return None
    return NewRecord(_TYPES[type(event)], body, turn)


def user_record(
    content: Sequence[Block], turn: str, sender: Mapping[str, Any], *, steer: bool = False
) -> NewRecord:
    """Return the record of a user's message; `sender` has `id`, `name`, `door`, perhaps `header`."""
    known = {"id": sender.get("id"), "name": sender.get("name"), "door": sender.get("door")}
    known |= {"header": sender["header"]} if sender.get("header") else {}
    return NewRecord("user", {"content": _blocks(content), "sender": known, "steer": steer}, turn)


_TYPES: dict[type, str] = {
    AssistantStep: "assistant",
    ToolIntent: "tool_intent",
    ToolOutcome: "tool_outcome",
    Injected: "injected",
    Compaction: "compaction",
    ApprovalRequest: "request",
    ApprovalAnswer: "answer",
    ModelSwitch: "model_switch",
    ModeChange: "settings",
}


def _blocks(content: Iterable[Block]) -> list[dict[str, Any]]:
    return [block_to_data(block) for block in content]


def _assistant_body(event: AssistantStep) -> dict[str, Any]:
    body = {
        "content": _blocks(event.message.content),
        "stop_reason": event.stop_reason,
        "model": event.model,
        "usage": msgspec.to_builtins(event.usage),
    }
    body |= {"invalid_calls": event.invalid_calls} if event.invalid_calls else {}
    return body | ({"left_out": list(event.left_out)} if event.left_out else {})


def _outcome_body(event: ToolOutcome) -> dict[str, Any]:
    content = event.content
    blocks: Sequence[Block] = [TextBlock(content)] if isinstance(content, str) else content
    body = {
        "call": event.call,
        "status": event.status,
        "content": _blocks(blocks),
        "truncated": event.truncated,
        "ms": event.ms,
        "blob": event.blob,
    }
    body |= {"data": event.data} if event.data is not None else {}
    return body | ({"tainted": True} if event.tainted else {})


# ---------------------------------------------------------------- record → event


def events_of(
    records: Iterable[Record], seqs: MessageSeqs | None = None, tools: dict[str, str] | None = None
) -> list[tuple[Record, StepEvent | None]]:
    """Return each record with its event; None for those that are no part of the dialogue.

    Unknown types, records of a newer version and the marks of a turn have no event. A damaged
    record becomes a note in its place.

    Args:
        seqs: filled with the messages' places, when given.
        tools: names of the tools called so far, by call; filled, when given, for records that follow.
    """
    places = seqs if seqs is not None else MessageSeqs()
    names = {} if tools is None else tools
    pairs: list[tuple[Record, StepEvent | None]] = []
    for record in records:
        event = _event(record, names, places)
        if event is not None:
            places.add(event, record.seq)
        if isinstance(event, AssistantStep):
            names.update((use.id, use.name) for use in event.message.tool_uses)
        pairs.append((record, event))
    return pairs


def _event(record: Record, tools: Mapping[str, str], places: MessageSeqs) -> StepEvent | None:
    if record.type == CORRUPT:
        return _gap(record, str(record.body.get("reason")))
    if record.v > VERSION:
        return None
    try:
        return _read(record, tools, places)
    except (AttributeError, KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
        return _gap(record, f"{record.type}: {error}")


def _gap(record: Record, reason: str) -> Injected:
    return Injected(
        "recovery", _message("user", record, (TextBlock(GAP_TEXT.format(seq=record.seq, reason=reason)),))
    )


def _message(role: Role, record: Record, content: tuple[Block, ...]) -> Message:
    return Message(role, content, f"msg_{record.seq}", record.at)


def _read(record: Record, tools: Mapping[str, str], places: MessageSeqs) -> StepEvent | None:
    if record.type == "assistant":
        return _assistant(record)
    if record.type == "tool_outcome":
        return _outcome(record.body, tools)
    if record.type == "compaction":
        return _compaction(record.body, places)
    reader = _READERS.get(record.type)
    return None if reader is None else reader(record)


def _user(record: Record) -> UserStep:
    message = _message("user", record, blocks_from_data(record.body["content"]))
    sender: dict[str, Any] = record.body.get("sender") or {}
    return UserStep(message, bool(record.body.get("steer")), str(sender.get("header") or ""))


def _assistant(record: Record) -> AssistantStep:
    body = record.body
    return AssistantStep(
        message=_message("assistant", record, blocks_from_data(body["content"])),
        stop_reason=body["stop_reason"],
        model=body["model"],
        usage=convert(body["usage"], Usage),
        invalid_calls=body.get("invalid_calls", {}),
    )


def _intent(record: Record) -> ToolIntent:
    body = record.body
    effect = _EFFECT[body["class"]]
    return ToolIntent(body["call"], body["tool"], body["input"], effect, body.get("mark"), body.get("key"))


def _injected(record: Record) -> Injected:
    body = record.body
    message = _message("user", record, blocks_from_data(body["content"]))
    return Injected(body["source"], message, tuple(body.get("ids", ())))


def _compaction(body: Mapping[str, Any], places: MessageSeqs) -> Compaction:
    first, last = places.id_of(body["from_seq"]), places.id_of(body["to_seq"])
    return Compaction(first, last, body["summary"], body["reason"], body.get("focus"), body.get("transcript"))


def _request(record: Record) -> ApprovalRequest:
    body = record.body
    calls, tools = tuple(body["calls"]), tuple(body.get("tools", ()))
    until = body.get("expires_at")
    return ApprovalRequest(body["id"], body["kind"], calls, tools, body.get("text", ""), until)


def _answer(record: Record) -> ApprovalAnswer:
    body = record.body
    calls = convert(body.get("calls") or {}, dict[str, CallAnswer])
    return ApprovalAnswer(body["id"], body["decision"], body.get("by") or "", body.get("feedback"), calls)


def _switch(record: Record) -> ModelSwitch:
    return ModelSwitch(record.body["tier"], record.body["by"])


def _settings(record: Record) -> ModeChange:
    changes = {key: value for key, value in record.body.items() if key != "by"}
    return ModeChange(changes, record.body.get("by", "user"))


_READERS: dict[str, Callable[[Record], StepEvent]] = {
    "user": _user,
    "tool_intent": _intent,
    "injected": _injected,
    "request": _request,
    "answer": _answer,
    "model_switch": _switch,
    "settings": _settings,
}


def _outcome(body: Mapping[str, Any], tools: Mapping[str, str]) -> ToolOutcome:
    blocks = list(blocks_from_data(body["content"]))
    # One text block and its bare text are the same thing; the loop made the bare text.
    content = blocks[0].text if len(blocks) == 1 and isinstance(blocks[0], TextBlock) else blocks
    return ToolOutcome(
        call=body["call"],
        tool=tools.get(body["call"], ""),
        status=body["status"],
        content=content if blocks else "",
        data=cast("dict[str, Any] | None", body.get("data")),
        truncated=bool(body.get("truncated")),
        tainted=bool(body.get("tainted")),
        ms=int(body.get("ms") or 0),
        blob=body.get("blob"),
    )
