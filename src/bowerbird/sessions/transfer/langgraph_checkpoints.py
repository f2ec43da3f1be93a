"""LangGraph's `checkpoints.db` as plain data (SE-47). No class is imported or constructed.

Here: opening the file read-only, decoding its values, the messages of each thread. Not here:
turning messages into records (`foreign_dialogues.py`).
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import msgspec

MAX_DEPTH = 40  # of values inside values; more is somebody's joke
_FIELDS = (2, 4, 5)  # extension codes whose third element is a mapping of fields
_ARRAYS = 6
_DELTAS = 7


class Unreadable(Exception):
    """A value or file is not what it should be; says why."""


class Thread(msgspec.Struct, frozen=True):
    """One thread's newest checkpoint: its messages as plain mappings, or why there are none."""

    thread_id: str
    at: str
    messages: tuple[dict[str, Any], ...] = ()
    problem: str = ""
    raw: str = ""


def read_threads(path: Path) -> list[Thread]:
    """Return every thread of the file.

    Raises:
        Unreadable: the file is no such database.
    """
    try:
        connection = sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise Unreadable(str(error)) from error
    try:
        connection.text_factory = _text
        names = connection.execute(
            "SELECT DISTINCT thread_id FROM checkpoints WHERE checkpoint_ns = '' ORDER BY thread_id"
        ).fetchall()
        return [_thread(connection, str(name)) for (name,) in names]
    except sqlite3.Error as error:
        raise Unreadable(str(error)) from error
    finally:
        connection.close()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _thread(connection: sqlite3.Connection, thread_id: str) -> Thread:
    row = connection.execute(
        "SELECT checkpoint_id, type, checkpoint FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' "
        "ORDER BY checkpoint_id DESC LIMIT 1",
        (thread_id,),
    ).fetchone()
    try:
        newest = decode(row[1], row[2])
        at = str(newest.get("ts") or "") if isinstance(newest, dict) else ""  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  any JSON
        found = _messages(connection, thread_id, str(row[0]))
    except Unreadable as error:
        return Thread(thread_id, "", problem=str(error), raw=repr(row[2])[:10_000])
    return Thread(thread_id, at, tuple(fields_of(message) for message in found))


def _messages(connection: sqlite3.Connection, thread_id: str, checkpoint_id: str) -> list[Any]:
    """The messages channel; where it is stored as deltas, built along the parents."""
    later: list[Any] = []
    for name, parent, kind, blob in _chain(connection, thread_id, checkpoint_id):
        value = decode(kind, blob)
        if not isinstance(value, dict):
            raise Unreadable("the checkpoint is not a mapping")
        channels = cast("dict[str, Any]", value).get("channel_values")
        channel = cast("dict[str, Any]", channels).get("messages") if isinstance(channels, dict) else None
        if isinstance(channel, list) or parent is None:
            whole: list[Any] = list(cast("list[Any]", channel)) if isinstance(channel, list) else []
            return _merged([whole, *reversed(later)])
        later.append(_written(connection, thread_id, parent))
        del name
    return _merged(list(reversed(later)))


def _chain(
    connection: sqlite3.Connection, thread_id: str, checkpoint_id: str
) -> Iterator[tuple[str, str | None, str, bytes]]:
    seen: set[str] = set()
    wanted: str | None = checkpoint_id
    while wanted is not None and wanted not in seen:
        seen.add(wanted)
        row = connection.execute(
            "SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint FROM checkpoints "
            "WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?",
            (thread_id, wanted),
        ).fetchone()
        if row is None:
            return
        wanted = row[1] or None
        yield str(row[0]), wanted, row[2], row[3]


def _written(connection: sqlite3.Connection, thread_id: str, checkpoint_id: str) -> list[Any]:
    rows = connection.execute(
        "SELECT type, value FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? "
        "AND channel = 'messages' ORDER BY task_id, idx",
        (thread_id, checkpoint_id),
    ).fetchall()
    found: list[Any] = []
    for kind, blob in rows:
        value = decode(kind, blob)
        found += cast("list[Any]", value) if isinstance(value, list) else [value]
    return found


def _merged(batches: list[list[Any]]) -> list[Any]:
    """Later messages replace those with the same id, others are added, as LangGraph does it."""
    order: list[Any] = []
    places: dict[str, int] = {}
    for message in (message for batch in batches for message in batch):
        fields = fields_of(message)
        name = fields.get("id")
        if fields.get("type") == "remove":
            if isinstance(name, str) and name in places:
                order[places[name]] = None
            continue
        if isinstance(name, str) and name in places:
            order[places[name]] = message
            continue
        if isinstance(name, str):
            places[name] = len(order)
        order.append(message)
    return [message for message in order if message is not None]


# ---------------------------------------------------------------- values


class Foreign(msgspec.Struct, frozen=True):
    """A value that named a class; the class is only text here."""

    name: str
    value: Any


def decode(kind: str | None, blob: Any) -> Any:
    """Return a stored value as plain data and `Foreign` values.

    Raises:
        Unreadable: malformed, of an unknown kind, or nested without end.
    """
    raw = blob.encode() if isinstance(blob, str) else blob
    if not isinstance(raw, bytes):
        raise Unreadable("the value is neither text nor bytes")
    try:
        if kind == "json":
            return json.loads(raw)
        if kind == "msgpack":
            return _unpack(raw, 0)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise Unreadable(f"{kind}: {error}") from error
    raise Unreadable(f"values of kind {kind!r} are not known")


def _unpack(raw: bytes | memoryview, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise Unreadable(f"more than {MAX_DEPTH} values inside each other")

    def extension(code: int, data: memoryview) -> Any:
        return _foreign(code, _unpack(data, depth + 1))

    return msgspec.msgpack.decode(raw, ext_hook=extension)  # noqa: TID251 - no type


def _foreign(code: int, inner: Any) -> Any:
    if code in (_ARRAYS, _DELTAS):
        return inner
    if not isinstance(inner, list):
        return Foreign(f"extension {code}", inner)
    parts = cast("list[Any]", inner)
    name = ".".join(str(part) for part in parts[:2])
    value = parts[2] if len(parts) > 2 else None
    if code in _FIELDS and not isinstance(value, dict):
        return Foreign(name, parts[2:])
    return Foreign(name, value)


def fields_of(message: Any) -> dict[str, Any]:
    """Return a message's fields as plain data, its `type` among them; of anything else `{"raw": text}`.

    Example:
        >>> fields_of(Foreign("os.system", ["echo"]))
        {'type': 'unknown', 'raw': "os.system(['echo'])"}
    """
    if isinstance(message, Foreign):
        inner: Any = message.value
        if isinstance(inner, dict):
            return _typed(cast("dict[str, Any]", inner), message.name)
    if isinstance(message, dict):
        found = cast("dict[str, Any]", message)
        if found.get("type") == "constructor" and isinstance(found.get("kwargs"), dict):
            path = cast("list[Any]", found.get("id") or [])
            return _typed(cast("dict[str, Any]", found["kwargs"]), str(path[-1]) if path else "")
        if "content" in found and ("type" in found or "role" in found):
            return _typed(found, "")
    return {"type": "unknown", "raw": as_text(message)}


_TYPES = {"human": "human", "user": "human", "ai": "ai", "assistant": "ai", "tool": "tool",
          "system": "system", "remove": "remove"}  # fmt: skip


def _typed(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    said = str(fields.get("type") or fields.get("role") or "").lower()
    named = name.rpartition(".")[2].removesuffix("Chunk").removesuffix("Message").lower()
    kind = _TYPES.get(said.removesuffix("messagechunk")) or _TYPES.get(named)
    if kind is None:
        return {"type": "unknown", "raw": f"{name}({as_text(dict(fields))})"}
    return {**{key: plain(value) for key, value in fields.items()}, "type": kind}


def plain(value: Any) -> Any:
    """Return `value` with every foreign value as text or its plain content."""
    if isinstance(value, Foreign):
        return as_text(value)
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in cast("list[Any]", value)]
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "backslashreplace")
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def as_text(value: Any) -> str:
    """Return a readable form of any decoded value."""
    if isinstance(value, Foreign):
        return f"{value.name}({as_text(value.value)})"
    if isinstance(value, str):
        return value
    return json.dumps(plain(value), ensure_ascii=False, default=str)
