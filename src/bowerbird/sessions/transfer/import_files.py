"""The files that `state import` reads, entry by entry (SE-46). Reads, writes nothing.

Here: each file's shape, and naming what cannot be read. Not here: what is written (`importing.py`),
values inside of `checkpoints.db` (`langgraph_checkpoints.py`).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from bowerbird.core.errors import InvalidThreadId
from bowerbird.core.forms import decode
from bowerbird.core.ids import check_stored_thread_id
from bowerbird.core.timestamps import from_iso, to_iso
from bowerbird.sessions.journal.audit_log import AuditLine
from bowerbird.sessions.thread_ids import chat_of_thread
from bowerbird.sessions.transfer.exporting import CONVERSATIONS, COUNTERS, JOURNAL, SESSIONS, STATES, TASKS
from bowerbird.sessions.transfer.foreign_dialogues import from_audit, from_langgraph
from bowerbird.sessions.transfer.langgraph_checkpoints import Unreadable, read_threads
from bowerbird.store.journal.journal import Record

CHECKPOINTS = "checkpoints.db"
MAX_RAW = 10_000
_TOO_LARGE = 1 << 31  # for a whole number of every database
_TASK_WORDS = ("model_tier", "owner", "tz", "catch_up", "notify", "workspace", "last_status")
_TASK_ID = re.compile(r"[0-9a-f]{8}")


class Entry(msgspec.Struct, frozen=True):
    """One readable entry of a file."""

    file: str
    key: str
    value: Any


class Bad(msgspec.Struct, frozen=True):
    """One entry that cannot be read."""

    file: str
    key: str
    reason: str
    raw: str


class Dialogue(msgspec.Struct, frozen=True):
    """One session's records, and what else is known of it."""

    file: str
    thread_id: str
    records: list[Record]
    about: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


def read_counters(directory: Path, bad: list[Bad], names: list[str]) -> list[Entry]:
    """Return reset counters by chat."""
    found: list[Entry] = []
    for key, value in _mapping(directory, COUNTERS, bad, names).items():
        is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOO_LARGE
        if is_number and _is_safe(key):
            found.append(Entry(COUNTERS, key, value))
        else:
            bad.append(_bad(COUNTERS, key, "a chat's key and a number from 0 up are expected", value))
    return found


def read_tasks(directory: Path, bad: list[Bad], names: list[str]) -> list[Entry]:
    """Return scheduled tasks in the form they are stored."""
    if (directory / TASKS).exists():
        names.append(TASKS)
    return tasks_in(directory / TASKS, bad)


def tasks_in(path: Path, bad: list[Bad]) -> list[Entry]:
    """Return the scheduled tasks of a file."""
    value = _json(path, TASKS, bad, [])
    if value is None:
        return []
    if not isinstance(value, list):
        bad.append(_bad(TASKS, TASKS, "an array is expected", value))
        return []
    found: list[Entry] = []
    for index, task in enumerate(cast("list[Any]", value)):
        try:
            found.append(Entry(TASKS, str(task["id"]), _task(task)))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            key = str(cast("dict[str, Any]", task).get("id", index)) if isinstance(task, dict) else str(index)
            bad.append(_bad(TASKS, key, f"no task: {type(error).__name__} {error}", task))
    return found


def _task(raw: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(raw["id"], str) or not _TASK_ID.fullmatch(raw["id"]):
        raise ValueError(f"the id is {raw['id']!r}, not 8 hex digits")
    if raw["type"] not in ("cron", "interval", "once"):
        raise ValueError(f"the type is {raw['type']!r}; cron, interval or once")
    if not isinstance(raw["prompt"], str) or not raw["prompt"].strip():
        raise ValueError("the prompt is empty")
    value = raw["value"]
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise ValueError("the value is missing")
    task = {
        "id": raw["id"],
        "prompt": raw["prompt"],
        "type": raw["type"],
        "value": str(value),
        "channel": _text_or_none(raw.get("channel")),
        "chat_id": _text_or_none(raw.get("chat_id")),
        "created_at": to_iso(from_iso(str(raw["created_at"]))),
        "last_run": None if raw.get("last_run") is None else to_iso(from_iso(str(raw["last_run"]))),
        "active": bool(raw.get("active", True)),
    }
    words = {name: str(raw[name]) for name in _TASK_WORDS if raw.get(name)}
    failures = int(raw.get("fail_count") or 0)
    if not 0 <= failures < _TOO_LARGE:
        raise ValueError(f"it cannot have failed {failures} times")
    return task | words | {"paused": bool(raw.get("paused")), "fail_count": failures}


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def read_states(directory: Path, bad: list[Bad], names: list[str]) -> list[Entry]:
    """Return the states of coding-agent bridges by user; those of another mode are passed over."""
    found: list[Entry] = []
    for user, value in _mapping(directory, STATES, bad, names).items():
        if not isinstance(value, dict):
            bad.append(_bad(STATES, user, "an object is expected", value))
        elif cast("dict[str, Any]", value).get("mode") == "claude_code":
            found.append(Entry(STATES, user, value))
    return found


# ---------------------------------------------------------------- dialogues


def read_journals(directory: Path, bad: list[Bad], names: list[str]) -> Iterator[Dialogue]:
    """Yield exported sessions; a line that cannot be read leaves a gap with its number."""
    about = _about(directory, bad, names)
    for path, file in _lines_files(directory / JOURNAL, JOURNAL, bad, names):
        records: list[Record] = []
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            try:
                record = decode(line, Record)
                if records and record.seq <= records[-1].seq:
                    raise ValueError(f"record {record.seq} comes after {records[-1].seq}")
                if not (0 < record.seq < _TOO_LARGE and max(record.epoch, record.v) < _TOO_LARGE):
                    raise ValueError("its numbers cannot be")
            except (msgspec.MsgspecError, ValueError) as error:
                bad.append(
                    _bad(file, f"{path.stem}:{number}", f"no record: {error}", line.decode(errors="replace"))
                )
            else:
                records.append(record)
        if records:
            yield Dialogue(file, path.stem, records, about.get(path.stem, {}))


def _about(directory: Path, bad: list[Bad], names: list[str]) -> dict[str, dict[str, Any]]:
    value = _json(directory / CONVERSATIONS, CONVERSATIONS, bad, [])
    del names
    rows = cast("list[Any]", value) if isinstance(value, list) else []
    found = [cast("dict[str, Any]", row) for row in rows if isinstance(row, dict)]
    return {str(row.get("thread_id")): row for row in found}


def read_checkpoints(directory: Path, bad: list[Bad], names: list[str]) -> Iterator[Dialogue]:
    """Yield the threads of a LangGraph database."""
    path = directory / CHECKPOINTS
    if not path.exists():
        return
    names.append(CHECKPOINTS)
    try:
        threads = read_threads(path)
    except Unreadable as error:
        bad.append(Bad(CHECKPOINTS, CHECKPOINTS, str(error), ""))
        return
    for thread in threads:
        if thread.problem or not _is_safe(thread.thread_id):
            reason = thread.problem or "its id is not a safe name"
            bad.append(Bad(CHECKPOINTS, thread.thread_id, reason, thread.raw))
            continue
        records = from_langgraph(thread.messages, _door(thread.thread_id), thread.at)
        if records:
            yield Dialogue(CHECKPOINTS, thread.thread_id, records)


def read_logs(directory: Path, bad: list[Bad], names: list[str]) -> Iterator[Dialogue]:
    """Yield the sessions of audit logs; used where nothing better holds the thread."""
    for path, file in _lines_files(directory / SESSIONS, SESSIONS, bad, names):
        lines: list[AuditLine] = []
        for number, raw in enumerate(path.read_bytes().splitlines(), 1):
            try:
                line = decode(raw, AuditLine)
                if line.role not in ("user", "assistant"):
                    raise ValueError(f"the role is {line.role!r}")
            except (msgspec.MsgspecError, ValueError) as error:
                bad.append(
                    _bad(file, f"{path.stem}:{number}", f"no line: {error}", raw.decode(errors="replace"))
                )
            else:
                lines.append(line)
        if lines:
            yield Dialogue(file, path.stem, from_audit(lines, lines[0].channel or "import"))


def _lines_files(directory: Path, name: str, bad: list[Bad], names: list[str]) -> Iterator[tuple[Path, str]]:
    if not directory.is_dir():
        return
    for path in sorted(directory.glob("*.jsonl")):
        file = f"{name}/{path.name}"
        names.append(file)
        if path.is_symlink() or not path.is_file() or not _is_safe(path.stem):
            bad.append(Bad(file, path.stem, "not a file, or its name is not a thread id", ""))
            continue
        yield path, file


def _door(thread_id: str) -> str:
    chat = chat_of_thread(thread_id)
    return "import" if chat is None else chat.channel


def _is_safe(thread_id: str) -> bool:
    try:
        check_stored_thread_id(thread_id)
    except InvalidThreadId:
        return False
    return True


def _mapping(directory: Path, name: str, bad: list[Bad], names: list[str]) -> dict[str, Any]:
    value = _json(directory / name, name, bad, names)
    if value is None or isinstance(value, dict):
        return cast("dict[str, Any]", value or {})
    bad.append(_bad(name, name, "an object is expected", value))
    return {}


def _json(path: Path, name: str, bad: list[Bad], names: list[str]) -> Any:
    if not path.exists():
        return None
    names.append(name)
    if not path.is_file():  # the beginning of a pipe would be waited for
        bad.append(Bad(name, name, "not a file", ""))
        return None
    try:
        raw = path.read_bytes()
    except OSError as error:
        bad.append(Bad(name, name, f"cannot be read: {error.strerror}", ""))
        return None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        bad.append(_bad(name, name, f"no JSON: {error}", raw.decode(errors="replace")))
        return None


def _bad(file: str, key: str, reason: str, raw: Any) -> Bad:
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, default=str)
    return Bad(file, key, reason, text[:MAX_RAW])
