"""`bowerbird disk`, `bowerbird trash …` and what `doctor` says of the data (D-22)."""

import json
import sqlite3


def _session(here, written, name="new.txt"):
    here.fake.script({"tools": [written(name, "new\n")]}, {"text": "ok"})
    return json.loads(here.ok("run", "go", "--json"))["conversation_id"]


def _trash(here):
    return json.loads(here.ok("trash", "list", "--json"))


def test_discarded_changes_come_back_into_their_session(here, written):
    session = _session(here, written)
    here.ok("discard", session, "--yes")
    (entry,) = _trash(here)
    assert (entry["kind"], entry["session"]) == ("changes", session)
    assert "back:" in here.ok("trash", "restore", entry["id"])
    assert "+new" in here.ok("diff", session)
    assert _trash(here) == []
    here.ok("land", session)
    assert (here.project / "new.txt").read_text() == "new\n"


def test_changes_do_not_come_back_over_others(here, written):
    session = _session(here, written)
    here.ok("discard", session, "--yes")
    (entry,) = _trash(here)
    here.fake.script({"tools": [written("other.txt", "other\n")]}, {"text": "ok"})
    here.ok("run", "more", f"--resume={session}")
    code, _, err = here.run("trash", "restore", entry["id"])
    assert code != 0 and "other changes" in err
    assert "+other" in here.ok("diff", session) and _trash(here) == [entry]


def test_a_deleted_session_comes_back_and_the_trash_is_emptied_only_on_a_yes(here, written):
    session = _session(here, written)
    here.ok("delete", session, "--yes")
    assert [(entry["id"], entry["kind"]) for entry in _trash(here)] == [(session, "session")]
    here.ok("trash", "restore", session[:6])
    assert "+new" in here.ok("diff", session)
    here.ok("delete", session, "--yes")
    assert here.run("trash", "empty")[0] == 2 and len(_trash(here)) == 1
    assert json.loads(here.ok("trash", "empty", "--yes", "--json")) == {"sessions": 1, "branches": 1}
    assert _trash(here) == []
    assert here.run("trash", "restore", session)[0] != 0
    assert list((here.home / ".bowerbird/data/branches").iterdir()) == []


def test_disk_names_what_takes_room_and_free_gives_it_back(here, written):
    small, large = _session(here, written), None
    here.fake.script({"tools": [written("large.txt", "x" * 1_000_000)]}, {"text": "ok"})
    large = json.loads(here.ok("run", "go", "--json"))["conversation_id"]
    use = json.loads(here.ok("disk", "--json"))
    assert [room["session"] for room in use["largest"]] == [large, small]
    assert use["largest"][0]["bytes"] > 1_000_000
    assert use["total"] == sum(use["parts"].values())
    here.ok("delete", large, "--yes")
    assert json.loads(here.ok("disk", "--json"))["parts"]["trash"] > 1_000_000
    here.ok("trash", "empty", "--yes")
    freed = json.loads(here.ok("disk", "--free", "--json"))
    assert freed["parts"]["trash"] == 0 and freed["freed"] > 0 and freed["reusable"] == 0
    assert "largest sessions" in here.ok("disk")


def test_doctor_names_the_backup_for_damage_only(here, written):
    """What cannot be opened is not damaged, so nothing is to be restored; the other checks are made all the same."""
    _session(here, written)
    database = here.home / ".bowerbird/data/agent.db"
    database.unlink()
    database.mkdir()  # cannot be opened by anybody, root included
    checks = {c["name"]: c for c in json.loads(here.run("doctor", "--json")[1])["checks"]}
    assert checks["database"]["state"] == "broken" and not checks["database"]["remedy"]
    assert "port" in checks
    database.rmdir()
    database.write_bytes(b"no database" * 100)
    checks = {c["name"]: c for c in json.loads(here.run("doctor", "--json")[1])["checks"]}
    assert checks["database"]["state"] == "broken" and "restore" in checks["database"]["remedy"]


def test_doctor_says_that_the_database_is_gone_beside_its_branches(here, written):
    """Reliability 8: a server started empty beside twelve branches of unlanded work, without a word."""
    _session(here, written)
    data = here.home / ".bowerbird/data"
    for file in data.glob("agent.db*"):
        file.unlink()
    checks = {c["name"]: c for c in json.loads(here.run("doctor", "--json")[1])["checks"]}
    assert checks["branches"]["state"] == "degraded" and "restore a backup" in checks["branches"]["remedy"]


def test_doctor_finds_a_damaged_page_and_an_unfinished_landing(here, written):
    session = _session(here, written)
    here.ok("land", session)
    data = here.home / ".bowerbird/data"
    checks = {c["name"]: c for c in json.loads(here.run("doctor", "--json")[1])["checks"]}
    assert {checks[name]["state"] for name in ("database", "landings", "branches", "room")} == {"ok"}
    (record,) = data.glob("branches/*/landings/*/record.json")
    record.write_text(record.read_text().replace('"done"', '"needs_attention"'))
    checks = {c["name"]: c for c in json.loads(here.run("doctor", "--json")[1])["checks"]}
    assert checks["landings"]["state"] == "degraded"
    with sqlite3.connect(data / "agent.db") as rows:
        rows.execute("PRAGMA journal_mode=DELETE")
        page = rows.execute("SELECT rootpage FROM sqlite_master WHERE name = 'journal'").fetchone()[0]
        size = rows.execute("PRAGMA page_size").fetchone()[0]
    rows.close()
    with (data / "agent.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    checks = {c["name"]: c for c in json.loads(here.run("doctor", "--json")[1])["checks"]}
    assert checks["database"]["state"] == "broken" and "restore" in checks["database"]["remedy"]
