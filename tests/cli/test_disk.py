"""`bowerbird disk`, `bowerbird trash …` and what `doctor` says of the data (D-22)."""

import json
import sqlite3


def _session(desk, written, name="new.txt"):
    desk.fake.script({"tools": [written(name, "new\n")]}, {"text": "ok"})
    return json.loads(desk.ok("run", "go", "--json"))["conversation_id"]


def _trash(desk):
    return json.loads(desk.ok("trash", "list", "--json"))


def test_discarded_changes_come_back_into_their_session(desk, written):
    session = _session(desk, written)
    desk.ok("discard", session, "--yes")
    (entry,) = _trash(desk)
    assert (entry["kind"], entry["session"]) == ("changes", session)
    assert "back:" in desk.ok("trash", "restore", entry["id"])
    assert "+new" in desk.ok("diff", session)
    assert _trash(desk) == []
    desk.ok("land", session)
    assert (desk.project / "new.txt").read_text() == "new\n"


def test_changes_do_not_come_back_over_others(desk, written):
    session = _session(desk, written)
    desk.ok("discard", session, "--yes")
    (entry,) = _trash(desk)
    desk.fake.script({"tools": [written("other.txt", "other\n")]}, {"text": "ok"})
    desk.ok("run", "more", f"--resume={session}")
    code, _, err = desk.run("trash", "restore", entry["id"])
    assert code != 0 and "other changes" in err
    assert "+other" in desk.ok("diff", session) and _trash(desk) == [entry]


def test_a_deleted_session_comes_back_and_the_trash_is_emptied_only_on_a_yes(desk, written):
    session = _session(desk, written)
    desk.ok("delete", session, "--yes")
    assert [(entry["id"], entry["kind"]) for entry in _trash(desk)] == [(session, "session")]
    desk.ok("trash", "restore", session[:6])
    assert "+new" in desk.ok("diff", session)
    desk.ok("delete", session, "--yes")
    assert desk.run("trash", "empty")[0] == 2 and len(_trash(desk)) == 1
    assert json.loads(desk.ok("trash", "empty", "--yes", "--json")) == {"sessions": 1, "branches": 1}
    assert _trash(desk) == []
    assert desk.run("trash", "restore", session)[0] != 0
    assert list((desk.home / ".bowerbird/data/branches").iterdir()) == []


def test_disk_names_what_takes_room_and_free_gives_it_back(desk, written):
    small, large = _session(desk, written), None
    desk.fake.script({"tools": [written("large.txt", "x" * 1_000_000)]}, {"text": "ok"})
    large = json.loads(desk.ok("run", "go", "--json"))["conversation_id"]
    use = json.loads(desk.ok("disk", "--json"))
    assert [room["session"] for room in use["largest"]] == [large, small]
    assert use["largest"][0]["bytes"] > 1_000_000
    assert use["total"] == sum(use["parts"].values())
    desk.ok("delete", large, "--yes")
    assert json.loads(desk.ok("disk", "--json"))["parts"]["trash"] > 1_000_000
    desk.ok("trash", "empty", "--yes")
    freed = json.loads(desk.ok("disk", "--free", "--json"))
    assert freed["parts"]["trash"] == 0 and freed["freed"] > 0 and freed["reusable"] == 0
    assert "largest sessions" in desk.ok("disk")


def test_doctor_says_that_the_database_is_gone_beside_its_branches(desk, written):
    """Reliability 8: a server started empty beside twelve branches of unlanded work, without a word."""
    _session(desk, written)
    data = desk.home / ".bowerbird/data"
    for file in data.glob("agent.db*"):
        file.unlink()
    checks = {c["name"]: c for c in json.loads(desk.run("doctor", "--json")[1])["checks"]}
    assert checks["branches"]["state"] == "degraded" and "restore a backup" in checks["branches"]["remedy"]


def test_doctor_finds_a_damaged_page_and_an_unfinished_landing(desk, written):
    session = _session(desk, written)
    desk.ok("land", session)
    data = desk.home / ".bowerbird/data"
    checks = {c["name"]: c for c in json.loads(desk.run("doctor", "--json")[1])["checks"]}
    assert {checks[name]["state"] for name in ("database", "landings", "branches", "room")} == {"ok"}
    (record,) = data.glob("branches/*/landings/*/record.json")
    record.write_text(record.read_text().replace('"done"', '"needs_attention"'))
    checks = {c["name"]: c for c in json.loads(desk.run("doctor", "--json")[1])["checks"]}
    assert checks["landings"]["state"] == "degraded"
    with sqlite3.connect(data / "agent.db") as rows:
        rows.execute("PRAGMA journal_mode=DELETE")
        page = rows.execute("SELECT rootpage FROM sqlite_master WHERE name = 'journal'").fetchone()[0]
        size = rows.execute("PRAGMA page_size").fetchone()[0]
    rows.close()
    with (data / "agent.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    checks = {c["name"]: c for c in json.loads(desk.run("doctor", "--json")[1])["checks"]}
    assert checks["database"]["state"] == "broken" and "restore" in checks["database"]["remedy"]
