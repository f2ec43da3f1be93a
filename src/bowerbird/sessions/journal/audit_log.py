"""The audit log: one JSONL file per session, for people (SE-39, SE-40).

Here: which lines a session's records give, appending them, mending a file after a crash. Not
here: the journal (the truth these lines are a readable copy of), when a turn ends.
"""

import json
import logging
import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from bowerbird.core.ids import file_name_of_thread
from bowerbird.store.journal.journal import Record

_log = logging.getLogger(__name__)


class AuditLine(msgspec.Struct, frozen=True):
    """One line, its keys in the order of SE-39."""

    role: str
    content: str
    ts: str
    channel: str | None
    user_id: str | None

    def to_json(self) -> str:
        """Return the line without its newline; non-ASCII is kept."""
        return json.dumps(msgspec.structs.asdict(self), ensure_ascii=False, separators=(",", ":"))


def audit_lines(records: Iterable[Record], channel: str | None) -> list[AuditLine]:
    """Return the lines that `records` give: users' texts as typed, and final answers. Pure.

    An answer counts when its turn ended `done`; text that was continued after a cut is joined.

    Args:
        records: of one session, in order.
        channel: the session's channel or kind.
    """
    lines: list[AuditLine] = []
    answers: dict[str | None, AnswerText] = {}
    for record in records:
        if record.type == "user":
            text = content_text(record.body.get("content"))
            lines.append(
                AuditLine("user", text, record.at, channel, _mapping(record.body.get("sender")).get("id"))
            )
        elif record.type == "assistant":
            answers[record.turn] = answers.get(record.turn, AnswerText()).plus(record)
        elif record.type == "turn_ended" and record.body.get("state") == "done":
            answer = answers.pop(record.turn, None)
            if answer is not None and answer.text:
                lines.append(AuditLine("assistant", answer.text, record.at, channel, None))
    return lines


class AnswerText(msgspec.Struct, frozen=True):
    """What a turn answers, as its assistant records come: the text after the last tool call."""

    text: str = ""
    is_cut: bool = False  # the next record continues this text

    def plus(self, record: Record) -> "AnswerText":
        """Return the answer after one more assistant record."""
        blocks = _blocks(record.body.get("content"))
        if any(block.get("type") == "tool_use" for block in blocks):
            return AnswerText()
        text = content_text([block for block in blocks if block.get("type") == "text"])
        whole = self.text + text if self.is_cut else text
        return AnswerText(whole, record.body.get("stop_reason") == "max_tokens")


def content_text(content: Any) -> str:
    """Return the text of a record's content; images and files as `[image: name]`."""
    if isinstance(content, str):
        return content
    parts: list[str] = []
    for block in _blocks(content):
        if block.get("type") == "text":
            parts.append(str(block.get("text", "")))
        elif block.get("type") == "image":
            source = _mapping(block.get("source"))
            parts.append(f"[image: {block.get('name') or str(source.get('blob', ''))[:19]}]")
    return "\n".join(parts)


def _blocks(content: Any) -> list[dict[str, Any]]:
    """The blocks of a content as it was read; a damaged record may hold anything."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    found = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("dict[str, Any]", block) for block in found if isinstance(block, dict)]


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class AuditLog:
    """The files under one directory, mode 0600; appends happen in worker threads.

    Args:
        directory: `data/sessions`; made on first use.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.failures = 0  # for metrics: appends that did not reach the disk
        self._torn: set[str] = set()  # sessions whose log may end in half a line, until it is repaired
        self._guard = threading.Lock()

    def path(self, thread_id: str) -> Path:
        """Return the file of a session."""
        return self.directory / f"{file_name_of_thread(thread_id)}.jsonl"

    def append(self, thread_id: str, lines: Sequence[AuditLine]) -> bool:
        """Append lines; a failure is a warning and counted, never an error."""
        if not lines:
            return True
        try:
            with self._guard:
                if thread_id in self._torn:  # it is compared with the journal a little later
                    self._whole(self.path(thread_id))
                    self._torn.discard(thread_id)
                self._append(thread_id, lines)
        except OSError as error:
            self.failures += 1
            _log.warning("audit log %s: %s", self.path(thread_id), error.strerror)
            return False
        return True

    def suspect(self, thread_ids: Iterable[str]) -> None:
        """Say whose logs a killed process may have left in the middle of a line."""
        self._torn.update(thread_ids)

    def remove(self, thread_ids: Iterable[str]) -> None:
        """Remove the files of sessions that are gone for good."""
        for thread_id in thread_ids:
            for path in (self.path(thread_id), self.path(thread_id).with_suffix(".jsonl.corrupt")):
                path.unlink(missing_ok=True)

    def repair(self, thread_id: str, expected: Sequence[AuditLine]) -> int:
        """Set a torn last line aside and append what is missing; returns how many lines that were.

        Args:
            expected: all lines that the session's journal gives.
        """
        path = self.path(thread_id)
        try:
            with self._guard:
                present = _keys(self._whole(path))
                self._torn.discard(thread_id)
                missing = [line for line in expected if (line.role, line.ts) not in present]
                self._append(thread_id, missing)
                if path.exists():
                    os.utime(path)  # compared as of now: the next start need not do it again
        except OSError as error:
            self.failures += 1
            _log.warning("audit log %s: %s", path, error.strerror)
            return 0
        return len(missing)

    def _whole(self, path: Path) -> bytes:
        """Set a torn last line aside; return the rest."""
        whole, torn = _split_torn(path.read_bytes() if path.exists() else b"")
        if torn:
            _append_bytes(path.with_name(f"{path.name}.corrupt"), torn + b"\n")
            with path.open("r+b") as file:
                file.truncate(len(whole))
        return whole

    def _append(self, thread_id: str, lines: Sequence[AuditLine]) -> None:
        if not lines:
            return
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = "".join(line.to_json() + "\n" for line in lines)
        # One write of whole lines in append mode: two processes never mix within a line.
        _append_bytes(self.path(thread_id), text.encode("utf-8", "backslashreplace"))


def _append_bytes(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        written = 0
        while written < len(content):
            written += os.write(descriptor, content[written:])
    finally:
        os.close(descriptor)


def _split_torn(raw: bytes) -> tuple[bytes, bytes]:
    end = raw.rfind(b"\n") + 1
    whole, torn = raw[:end], raw[end:]
    if not torn and whole:
        start = whole.rfind(b"\n", 0, end - 1) + 1
        if not _is_json(whole[start:]):
            return whole[:start], whole[start:].rstrip(b"\n")
    return whole, torn


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _keys(raw: bytes) -> set[tuple[str, str]]:
    keys: set[tuple[str, str]] = set()
    for line in raw.splitlines():
        if _is_json(line):
            entry: dict[str, Any] = json.loads(line)
            keys.add((str(entry.get("role")), str(entry.get("ts"))))
    return keys
