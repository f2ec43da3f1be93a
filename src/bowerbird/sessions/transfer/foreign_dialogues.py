"""Dialogues of other programs as journal records (SE-46, SE-47). Pure.

Here: LangGraph's messages and audit lines as turns of SE-7 records. Not here: reading their
files (`langgraph_checkpoints.py`, `importing.py`), writing rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from bowerbird.core.ids import new_call_id, new_id
from bowerbird.core.timestamps import from_iso, now_iso, to_iso
from bowerbird.core.usage import Usage
from bowerbird.sessions.journal.audit_log import AuditLine
from bowerbird.store.journal.journal import VERSION, Record

NOTE = "note"  # kept and shown, never sent to a model
_NOTHING: dict[str, Any] = {}


class Writer(msgspec.Struct):
    """Builds the records of one session, turn by turn."""

    door: str
    records: list[Record] = msgspec.field(default_factory=list[Record])
    _turn: str | None = None
    _n: int = 0
    _state: str = "done"

    def begin(self, at: str, model: str = "") -> None:
        """End the present turn and begin the next."""
        self.end(at)
        self._n += 1
        self._turn = new_id("t")
        body: dict[str, Any] = {
            "n": self._n,
            "inbox": [],
            "kind": "imported",
            "model": model,
            "mode": "normal",
        }
        self.add("turn_started", body, at)

    def add(self, kind: str, body: Mapping[str, Any], at: str) -> None:
        """Append a record to the present turn; one is begun when there is none."""
        if self._turn is None:
            self.begin(at)
        seq = len(self.records) + 1
        self.records.append(Record(VERSION, seq, self._turn, kind, at, 0, dict(body)))

    def end(self, at: str) -> None:
        """End the present turn, if there is one."""
        if self._turn is None:
            return
        body: dict[str, Any] = {
            "state": "done",
            "stop_reason": "end_turn",
            "usage": {},
            "snapshot": None,
            "error": None,
        }
        self.add("turn_ended", body, at)
        self._turn = None

    def say(self, text: str, sender: Mapping[str, Any], at: str) -> None:
        """Begin a turn with what a person said."""
        self.begin(at)
        known = {"id": sender.get("id"), "name": sender.get("name"), "door": self.door}
        self.add("user", {"content": text_blocks(text), "sender": known, "steer": False}, at)

    def answer(self, blocks: Sequence[Mapping[str, Any]], model: str, at: str) -> None:
        """Add what the model answered."""
        calls = any(block["type"] == "tool_use" for block in blocks)
        body = {
            "content": list(blocks),
            "stop_reason": "tool_use" if calls else "end_turn",
            "model": model,
            "usage": usage_of(_NOTHING),
        }
        self.add("assistant", body, at)


def text_blocks(text: str) -> list[dict[str, Any]]:
    """Return text as a record's content."""
    return [{"type": "text", "text": text}]


def from_audit(lines: Iterable[AuditLine], door: str) -> list[Record]:
    """Return the records of an audit log: a turn for each thing a person said."""
    writer = Writer(door)
    at = now_iso()
    for line in lines:
        at = iso_or(line.ts, at)
        if line.role == "user":
            writer.say(line.content, {"id": line.user_id}, at)
        else:
            writer.answer(text_blocks(line.content), "", at)
            writer.end(at)
    writer.end(at)
    return writer.records


def from_langgraph(messages: Sequence[Mapping[str, Any]], door: str, at: str) -> list[Record]:
    """Return the records of a LangGraph thread; calls and results stay paired by their ids.

    Args:
        messages: as `checkpoints.fields_of` gives them.
        at: time of the checkpoint: messages have none of their own.
    """
    writer = Writer(door)
    known: dict[str, str] = {}
    when = iso_or(at, now_iso())
    for message in messages:
        kind = message.get("type")
        if kind == "human":
            writer.say(content_text(message.get("content")), {"name": message.get("name")}, when)
        elif kind == "ai":
            _add_answer(writer, message, known, when)
        elif kind == "tool" and (call := known.pop(str(message.get("tool_call_id")), None)) is not None:
            writer.add("tool_outcome", _outcome(call, message), when)
        else:
            writer.add(NOTE, {"source": "langgraph", "raw": dict(message)}, when)
    writer.end(when)
    return writer.records


def _add_answer(writer: Writer, message: Mapping[str, Any], known: dict[str, str], at: str) -> None:
    text = content_text(message.get("content"))
    blocks: list[dict[str, Any]] = text_blocks(text) if text else []
    for call in cast("list[Any]", message.get("tool_calls") or []):
        if not isinstance(call, dict):
            continue
        made = cast("dict[str, Any]", call)
        name = str(made.get("id") or new_call_id())
        if name in known:  # one id, two calls: the second gets its own
            name = new_call_id()
        known[str(made.get("id") or name)] = name
        arguments = made.get("args")
        blocks.append(
            {
                "type": "tool_use",
                "id": name,
                "name": str(made.get("name") or "unknown"),
                "input": arguments if isinstance(arguments, dict) else {"value": arguments},
            }
        )
    metadata = cast("dict[str, Any]", message.get("response_metadata") or {})
    model = metadata.get("model_name") or metadata.get("model") or "" if isinstance(metadata, dict) else ""  # pyright: ignore[reportUnnecessaryIsInstance]  a cast promised too much
    if blocks:
        writer.answer(blocks, str(model), at)
    else:  # providers refuse an answer without content
        writer.add(NOTE, {"source": "langgraph", "raw": dict(message)}, at)


def _outcome(call: str, message: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "call": call,
        "status": "error" if message.get("status") == "error" else "ok",
        "content": text_blocks(content_text(message.get("content"))),
        "truncated": False,
        "ms": 0,
        "blob": None,
    }


def content_text(content: Any) -> str:
    """Return the text of a LangChain content: a string, or a list of strings and blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else str(content)
    parts: list[str] = []
    for block in cast("list[Any]", content):
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, dict):
            found = cast("dict[str, Any]", block)
            if found.get("type") == "text":
                parts.append(str(found.get("text") or ""))
            elif found.get("type") in ("image", "image_url"):
                parts.append("[image]")
    return "\n".join(part for part in parts if part)


def iso_or(text: str, otherwise: str) -> str:
    """Return a time in the record form; one that cannot be read is replaced."""
    try:
        return to_iso(from_iso(text))
    except ValueError:
        return otherwise


def usage_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a usage body without figures: nobody counted."""
    return cast("dict[str, Any]", msgspec.to_builtins(Usage(**body, cost=None)))
