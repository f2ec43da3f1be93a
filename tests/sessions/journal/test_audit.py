"""The audit log (SE-39, SE-40)."""

import json
from pathlib import Path
from typing import Any

from bowerbird.sessions.journal.audit_log import AuditLine, AuditLog, audit_lines
from bowerbird.store.journal.journal import Record

USER = AuditLine("user", "What's the weather?", "2026-02-24T14:30:00.123456+00:00", "telegram", "123456")
ANSWER = AuditLine("assistant", "Mostly sunny. ☀", "2026-02-24T14:30:05.789012+00:00", "telegram", None)


def record(seq: int, kind: str, body: dict[str, Any]) -> Record:
    return Record(1, seq, "t_1", kind, f"2026-02-24T14:30:{seq:02}.000000+00:00", 1, body)


def said(text: str, stop: str = "end_turn", **extra: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "stop_reason": stop, **extra}


def test_a_line_has_these_keys_in_this_order_and_nothing_else(tmp_path: Path) -> None:
    """SE-39."""
    log = AuditLog(tmp_path / "sessions")
    assert log.append("telegram_5", [USER, ANSWER])
    path = tmp_path / "sessions" / "telegram_5.jsonl"
    lines = path.read_text("utf-8").splitlines()
    assert lines[0] == (
        '{"role":"user","content":"What\'s the weather?","ts":"2026-02-24T14:30:00.123456+00:00",'
        '"channel":"telegram","user_id":"123456"}'
    )
    assert "☀" in lines[1]
    assert json.loads(lines[1])["user_id"] is None
    assert path.stat().st_mode & 0o777 == 0o600


def test_lines_are_what_was_typed_and_the_final_answers() -> None:
    """SE-39: no tool calls, no injected data, attachments by name."""
    image = {"type": "image", "media_type": "image/png", "name": "cat.png", "source": {"blob": "sha256:ab"}}
    call = {"type": "tool_use", "id": "c", "name": "t", "input": {}}
    records = [
        record(1, "turn_started", {}),
        record(2, "user", {"content": [{"type": "text", "text": "look"}, image], "sender": {"id": "7"}}),
        record(
            3, "assistant", {"content": [{"type": "text", "text": "I look"}, call], "stop_reason": "tool_use"}
        ),
        record(4, "injected", said("data")),
        record(5, "assistant", said("A c", "max_tokens")),
        record(6, "injected", said("continue")),
        record(7, "assistant", said("at.")),
        record(8, "turn_ended", {"state": "done"}),
    ]
    assert audit_lines(records, "cli") == [
        AuditLine("user", "look\n[image: cat.png]", records[1].at, "cli", "7"),
        AuditLine("assistant", "A cat.", records[7].at, "cli", None),
    ]
    assert audit_lines([*records[:-1], record(8, "turn_ended", {"state": "failed"})], "cli")[1:] == []


def test_a_torn_last_line_moves_aside_and_missing_lines_come_from_the_journal(tmp_path: Path) -> None:
    """SE-40."""
    log = AuditLog(tmp_path)
    log.append("x", [USER])
    with log.path("x").open("a") as file:
        file.write('{"role":"assistant","con')
    assert log.repair("x", [USER, ANSWER]) == 1
    assert [json.loads(line)["role"] for line in log.path("x").read_text().splitlines()] == [
        "user",
        "assistant",
    ]
    assert (tmp_path / "x.jsonl.corrupt").read_text() == '{"role":"assistant","con\n'
    assert log.repair("x", [USER, ANSWER]) == 0


def test_a_whole_but_unreadable_last_line_is_torn_too(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.append("x", [USER])
    with log.path("x").open("a") as file:
        file.write('{"role":"assi\n')
    assert log.repair("x", [USER, ANSWER]) == 1
    assert len(log.path("x").read_text().splitlines()) == 2


def test_a_failing_append_is_a_warning_and_counted(tmp_path: Path, caplog: Any) -> None:
    """SE-40."""
    (tmp_path / "sessions").write_text("not a directory")
    log = AuditLog(tmp_path / "sessions")
    assert log.append("x", [USER]) is False
    assert log.failures == 1
    assert "audit log" in caplog.text
