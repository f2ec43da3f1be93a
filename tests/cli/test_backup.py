"""`bowerbird backup` and `bowerbird restore` as people use them (D-21)."""

import json


def test_everything_of_a_directory_comes_back(desk, written):
    """Reliability 8: unlanded files, landings with their undo, sessions."""
    desk.fake.script({"tools": [written("landed.txt", "landed\n")]}, {"text": "ok"})
    desk.ok("run", "one")
    desk.ok("land")
    desk.fake.script({"tools": [written("waiting.txt", "waiting\n")]}, {"text": "ok"})
    desk.ok("run", "two")
    backup = desk.home / "backup"
    assert "2 sessions" in desk.ok("backup", str(backup))
    code, _, err = desk.run("backup", str(backup))
    assert code == 1 and "--force" in err
    desk.ok("backup", str(backup), "--force")

    elsewhere = ("--data-dir", str(desk.home / "elsewhere"))
    assert json.loads(desk.ok("restore", str(backup), "--json", *elsewhere))["sessions"] == 2
    assert "+waiting" in desk.ok("diff", *elsewhere)
    desk.ok("undo", *elsewhere)
    assert not (desk.project / "landed.txt").exists()
    desk.ok("land", *elsewhere)
    assert (desk.project / "waiting.txt").read_text() == "waiting\n"
    code, _, err = desk.run("restore", str(backup), *elsewhere)
    assert code == 1 and "not empty" in err


def test_a_backup_of_nothing_is_an_error_and_makes_nothing(desk):
    """D-30: a nightly backup of the wrong directory is not green."""
    code, _, err = desk.run("backup", str(desk.home / "backup"), "--data-dir", str(desk.home / "nowhere"))
    assert code != 0 and "nothing to read" in err
    assert not (desk.home / "nowhere").exists() and not (desk.home / "backup").exists()
    desk.ok("sessions")  # makes an empty database
    code, _, err = desk.run("backup", str(desk.home / "backup"))
    assert code != 0 and "no session" in err
    assert not (desk.home / "backup").exists()


def test_a_backup_beside_a_server_s_settings_reads_the_server_s_database(desk, written):
    """Team 2: a nightly copy of the wrong database stayed green."""
    served = desk.project / "served"
    served.mkdir()
    desk.ok("config", "init", cwd=served)
    (served / "config.yaml").write_text(f"agent: {{data_dir: {desk.home}/served-data}}\n")
    desk.fake.script({"text": "ok"})
    desk.ok("run", "hi", "--data-dir", str(desk.home / "served-data"))
    said = desk.ok("backup", str(desk.home / "backup"), cwd=served)
    assert "1 session" in said and "served-data" in said


def test_a_landing_of_back_then_is_not_finished_by_a_restore(desk, written):
    """The user's directory has gone on since the backup: nothing writes into it unasked."""
    desk.fake.script({"tools": [written("landed.txt", "landed\n")]}, {"text": "ok"})
    desk.ok("run", "one")
    desk.ok("land")
    (record,) = (desk.home / ".bowerbird/data").glob("branches/*/landings/*/record.json")
    record.write_text(record.read_text().replace('"done"', '"applying"'))
    desk.ok("backup", str(desk.home / "backup"))
    (desk.project / "landed.txt").unlink()
    elsewhere = ("--data-dir", str(desk.home / "elsewhere"))
    desk.ok("restore", str(desk.home / "backup"), *elsewhere)
    assert "needs_attention" in desk.ok("landings", "--json", *elsewhere)
    assert not (desk.project / "landed.txt").exists()
