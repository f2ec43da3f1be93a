"""A `checkpoints.db` as LangGraph's SQLite saver writes it, made without LangGraph."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

SINGLE, POSITIONAL, KEYWORDS, METHOD, FIELDS_1, FIELDS, ARRAY = range(7)
_SCHEMA = """
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
  checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,
  PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
  checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL,
  type TEXT, value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
"""


def ext(code: int, *parts: Any) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, msgspec.msgpack.encode(list(parts)))


def message(kind: str, content: Any, **fields: Any) -> msgspec.msgpack.Ext:
    """A LangChain message: extension 5 with its class and fields."""
    name = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage", "system": "SystemMessage"}[
        kind
    ]
    body = {"content": content, "additional_kwargs": {}, "response_metadata": {}, "type": kind, **fields}
    return ext(FIELDS, f"langchain_core.messages.{kind}", name, body, "model_validate_json")


def plain_message(kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    """The same in the older JSON form."""
    name = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}[kind]
    kwargs = {"content": content, "type": kind, **fields}
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


class Saver:
    """Writes checkpoints."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        self._database.executescript(_SCHEMA)

    def put(self, thread: str, name: str, messages: list[Any] | None, *, parent: str | None = None,
            kind: str = "msgpack", ns: str = "", raw: bytes | None = None) -> None:  # fmt: skip
        values: dict[str, Any] = {} if messages is None else {"messages": messages}
        checkpoint = {"v": 3, "ts": "2026-02-24T10:00:00.123456+00:00", "id": name, "channel_values": values}
        encode = msgspec.msgpack.encode if kind == "msgpack" else lambda value: json.dumps(value).encode()
        self._database.execute(
            "INSERT INTO checkpoints VALUES (?,?,?,?,?,?,?)",
            (thread, ns, name, parent, kind, encode(checkpoint) if raw is None else raw, b"{}"),
        )
        self._database.commit()

    def write(self, thread: str, name: str, index: int, value: Any) -> None:
        self._database.execute(
            "INSERT INTO writes VALUES (?,'',?,?,?,?,?,?)",
            (thread, name, "task", index, "messages", "msgpack", msgspec.msgpack.encode(value)),
        )
        self._database.commit()

    def close(self) -> None:
        self._database.close()
