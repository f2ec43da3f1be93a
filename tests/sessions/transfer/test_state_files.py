"""Export and import: documented files, everything once, nothing lost (SE-45 … SE-47, SE-60)."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.fake_models import FakeModels
from support.langgraph import KEYWORDS, POSITIONAL, Saver, ext, message, plain_message
from support.sessions import place, writes

from bowerbird.channels.claude.states import ClaudeStates
from bowerbird.core.errors import Exists, InvalidArgument
from bowerbird.sessions.transfer.exporting import export_state
from bowerbird.sessions.transfer.importing import import_state
from bowerbird.sessions.transfer.langgraph_checkpoints import decode, fields_of
from bowerbird.store.rows.sessions import counter_of
from bowerbird.store.sql.tables import quarantine

TASK = {
    "id": "a1b2c3d4", "prompt": "Say hello", "type": "cron", "value": "0 8 * * *", "channel": "telegram",
    "chat_id": "123456", "created_at": "2026-02-24T10:00:00+00:00", "last_run": None, "active": True,
}  # fmt: skip
STATE = {"mode": "claude_code", "active_project": "x", "active_project_path": "/x", "active_session_id": None,
         "active_model": "sonnet", "active_effort": "high"}  # fmt: skip


def put(directory: Path, name: str, value: Any) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(value if isinstance(value, str) else json.dumps(value))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_what_was_exported_comes_back_whole_and_a_second_import_brings_nothing(
    tmp_path: Path, fake: FakeModels, database_url: str
) -> None:
    """SE-45, SE-46: records are lossless; the next message continues the dialogue."""
    fake.script(writes("a.txt", "x" * 2000), {"text": "Written."}, {"text": "Again."}, {"text": "Here."})
    out = tmp_path / "out"
    async with place(tmp_path / "one", fake, store_options={"inline_max_kb": 1}) as home:
        thread = await home.session(title="Mine")
        await home.ask(thread, "write it")
        chat = await home.session(kind="chat", channel="telegram", chat_id="5", thread_id="telegram_5")
        await home.ask(chat, "hello")
        await home.service.reset("telegram", "5")
        before = await home.service.history(thread)
        done = await export_state(home.store, out)
        assert done.sessions == 3
    assert json.loads((out / "session_counters.json").read_text()) == {"telegram_5": 1}
    keys = list(lines(out / "journal" / f"{thread}.jsonl")[0])
    assert keys == ["v", "seq", "turn", "type", "at", "epoch", "body"]
    assert lines(out / "sessions" / "telegram_5.jsonl")[0]["content"] == "hello"
    async with place(tmp_path / "two", fake, url=database_url) as home:
        dry = await import_state(home.store, out, dry_run=True)
        assert await home.service.list() == []
        report = await import_state(home.store, out, workspace=str(home.project))
        assert [file.imported for file in report.files] == [file.imported for file in dry.files]
        assert report.exit_code == 0
        assert await home.service.history(thread) == before
        found = await home.service.get(thread)
        assert (found.title, found.messages, found.turns) == ("Mine", 2, 1)
        again = await import_state(home.store, out)
        assert sum(file.imported for file in again.files) == 0
        assert again.exit_code == 0
        await home.ask(chat, "still there?")
        sent = json.dumps(fake.requests[-1]["messages"])
        assert "hello" in sent
        assert "Again." in sent
        assert await home.service.thread_of("telegram", "5") == "telegram_5_s1"
        logged = lines(home.data / "sessions" / "telegram_5.jsonl")
        assert [line["content"] for line in logged] == ["hello", "Again.", "still there?", "Here."]


async def test_an_import_into_the_same_data_directory_finds_its_branch_again(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SE-60: the way back after a damaged database."""
    fake.script(writes("a.txt", "kept"), {"text": "Written."}, {"text": "ok"})
    out = tmp_path / "out"
    async with place(tmp_path, fake) as home:
        thread = await home.session()
        await home.ask(thread)
        await export_state(home.store, out)
    (tmp_path / "data" / "agent.db").unlink()
    async with place(tmp_path, fake) as home:
        await import_state(home.store, out)
        await home.ask(thread)
        branch = await home.service.branch(thread)
        assert branch.changes().written == ("/a.txt",)


async def test_a_directory_that_holds_something_is_not_replaced(tmp_path: Path, fake: FakeModels) -> None:
    out = tmp_path / "out"
    put(out, "mine.txt", "x")
    async with place(tmp_path, fake) as home:
        with pytest.raises(Exists, match="--force"):
            await export_state(home.store, out)
        assert [path.name for path in out.iterdir()] == ["mine.txt"]
        with pytest.raises(Exists, match=r"mine\.txt"):
            await export_state(home.store, out, force=True)
        assert [path.name for path in out.iterdir()] == ["mine.txt"]
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".out")] == []
        with pytest.raises(InvalidArgument):
            await import_state(home.store, tmp_path / "nothing")


async def test_each_file_of_the_chapter_is_read_and_bad_entries_are_set_aside(
    tmp_path: Path, fake: FakeModels, database_url: str
) -> None:
    """SE-46."""
    source = tmp_path / "in"
    put(source, "session_counters.json", {"telegram_1": 3, "telegram_2": 1, "telegram_3": "many"})
    put(source, "scheduled_tasks.json", [
        TASK, {**TASK, "id": "b1b2c3d4", "type": "interval", "value": 3600, "created_at": "2026-02-24T10:00:00"},
        {**TASK, "id": "short"}, "no task", {**TASK, "id": "c1b2c3d4", "type": "never"},
    ])  # fmt: skip
    put(source, "cc_user_states.json", {"1": STATE, "2": {"mode": "chat"}, "3": 5})
    put(source / "sessions", "telegram_9.jsonl",
        '{"role":"user","content":"Hi","ts":"2026-02-24T14:30:00.123456+00:00","channel":"telegram","user_id":"9"}\n'
        "not json\n"
        '{"role":"assistant","content":"Hello!","ts":"2026-02-24T14:30:05.789012+00:00","channel":"telegram","user_id":null}\n')  # fmt: skip
    put(source / "journal", "x.jsonl", "{}\n")
    async with place(tmp_path, fake, url=database_url) as home:
        await home.store.write(lambda c: None)
        report = await import_state(home.store, source)
        assert report.exit_code == 3
        counts = {file.file: (file.imported, file.present, file.set_aside) for file in report.files}
        assert counts == {
            "journal/x.jsonl": (0, 0, 1), "sessions/telegram_9.jsonl": (1, 0, 1),
            "session_counters.json": (2, 0, 1), "scheduled_tasks.json": (2, 0, 3),
            "cc_user_states.json": (1, 0, 1),
        }  # fmt: skip
        assert await home.store.read(lambda c: counter_of(c, "telegram_1")) == 3
        mode = ClaudeStates(home.store, "telegram")
        await mode.start()
        entered = mode.of("1")
        assert entered is not None and (entered.active_project_path, entered.active_model) == ("/x", "sonnet")
        assert mode.of("2") is None
        await mode.change("1", lambda state: msgspec.structs.replace(state, active_effort="low"))
        aside = await home.store.read(lambda c: c.execute(quarantine.select()).all())
        assert len(aside) == 7
        out = tmp_path / "out"
        await export_state(home.store, out)
        states = json.loads((out / "cc_user_states.json").read_text())
        assert list(states) == ["1"] and states["1"].items() >= {**STATE, "active_effort": "low"}.items()
        tasks = json.loads((out / "scheduled_tasks.json").read_text())
        assert {name: tasks[0][name] for name in TASK} | {"created_at": TASK["created_at"]} == TASK
        assert (tasks[1]["value"], tasks[1]["created_at"][-6:]) == ("3600", "+00:00")
        shown = await home.service.messages("telegram_9")
        assert [message.content for message in shown] == ["Hi", "Hello!"]
        again = await import_state(home.store, source)
        assert sum(file.imported for file in again.files) == 0
        assert len(await home.store.read(lambda c: c.execute(quarantine.select()).all())) == 7


async def test_nothing_readable_ends_with_1(tmp_path: Path, fake: FakeModels) -> None:
    source = tmp_path / "in"
    put(source, "session_counters.json", "{broken")
    async with place(tmp_path, fake) as home:
        assert (await import_state(home.store, source)).exit_code == 1
        (source / "session_counters.json").unlink()
        assert (await import_state(home.store, source)).exit_code == 1


async def test_a_langgraph_thread_goes_on_with_its_calls_and_results_paired(
    tmp_path: Path, fake: FakeModels, database_url: str
) -> None:
    """SE-47, acceptance 8: history shows the pair, the next request is valid, os.system is text."""
    source = tmp_path / "in"
    source.mkdir()
    marker = tmp_path / "executed"
    saver = Saver(source / "checkpoints.db")
    call = {"name": "get_weather", "args": {"city": "Graz"}, "id": "call_1", "type": "tool_call"}
    evil = ext(POSITIONAL, "os", "system", [f"touch {marker}"])
    nested = ext(KEYWORDS, "subprocess", "Popen", {"args": evil})
    saver.put("telegram_7", "0001", [message("human", "old")])
    saver.put("telegram_7", "0002", [
        message("system", "You help."), message("human", "Weather?", id="h1"),
        message("ai", [{"type": "text", "text": "Looking."}], tool_calls=[call], id="a1"),
        message("tool", "Sunny", tool_call_id="call_1", id="t1"), evil, nested,
        message("ai", "It is sunny.", id="a2"),
    ])  # fmt: skip
    saver.put("telegram_7", "9999", [message("human", "of a subgraph")], ns="sub")
    saver.put("json_thread", "1", [plain_message("human", "Hi"), plain_message("ai", "Hello")], kind="json")
    saver.put("broken", "1", None, raw=b"\xc1\xff")
    saver.close()
    before = (source / "checkpoints.db").read_bytes()
    fake.script({"text": "Still sunny."})
    async with place(tmp_path, fake, url=database_url) as home:
        report = await import_state(home.store, source, workspace=str(home.project))
        (counted,) = report.files
        assert (counted.imported, counted.set_aside, report.exit_code) == (2, 1, 3)
        found = await home.service.call("telegram_7", "call_1")
        assert (found.tool, found.input, found.content[0]["text"]) == (
            "get_weather",
            {"city": "Graz"},
            "Sunny",
        )
        kinds = [record.type for record in await home.service.history("telegram_7")]
        assert kinds == ["note", *kinds[1:]] or kinds[0] == "turn_started"
        assert kinds.count("note") == 3
        turn = await home.ask("telegram_7", "And tomorrow?")
        assert turn.state == "done"
        sent = fake.requests[-1]["messages"]
        assert [part["role"] for part in sent] == ["user", "assistant", "user", "assistant", "user"]
        assert sent[1]["content"][-1]["id"] == sent[2]["content"][0]["tool_use_id"]
        assert "os.system" not in json.dumps(sent)
        notes = [r for r in await home.service.history("telegram_7") if r.type == "note"]
        assert "os.system" in json.dumps([note.body for note in notes])
        assert not marker.exists()
        again = await import_state(home.store, source)
        assert again.files[0].imported == 0
    assert (source / "checkpoints.db").read_bytes() == before


async def test_channels_stored_as_deltas_are_built_along_the_parents(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SE-47 (SHOULD)."""
    source = tmp_path / "in"
    source.mkdir()
    saver = Saver(source / "checkpoints.db")
    saver.put("t", "1", [message("human", "one", id="h1")])
    saver.write("t", "1", 0, [message("ai", "first", id="a1")])
    saver.put("t", "2", None, parent="1")
    saver.write("t", "2", 0, [message("ai", "better", id="a1"), message("human", "two", id="h2")])
    saver.put("t", "3", None, parent="2")
    saver.close()
    async with place(tmp_path, fake) as home:
        await import_state(home.store, source)
        shown = await home.service.messages("t")
    assert [(m.role, m.content) for m in shown] == [("user", "one"), ("assistant", "better"), ("user", "two")]


def test_no_value_is_ever_constructed() -> None:
    """SE-47: whatever a record names stays a name."""
    import msgspec

    raw = msgspec.msgpack.encode(ext(POSITIONAL, "os", "system", ["true"]))
    assert fields_of(decode("msgpack", raw)) == {"type": "unknown", "raw": 'os.system(["true"])'}


async def test_a_damaged_line_of_a_journal_is_a_gap_and_the_rest_is_imported(
    tmp_path: Path, fake: FakeModels
) -> None:
    fake.script({"text": "ok"}, {"text": "on"})
    out = tmp_path / "out"
    async with place(tmp_path / "one", fake) as home:
        thread = await home.session()
        await home.ask(thread)
        await export_state(home.store, out)
    path = out / "journal" / f"{thread}.jsonl"
    found = path.read_text().splitlines()
    path.write_text("\n".join([found[0], "{torn", *found[2:]]) + "\n")
    shutil.rmtree(out / "sessions")
    async with place(tmp_path / "two", fake) as home:
        report = await import_state(home.store, out)
        assert report.exit_code == 3
        assert [record.type for record in await home.service.history(thread)][1] == "corrupt"
        assert (await home.ask(thread)).state == "done"
