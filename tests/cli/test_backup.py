"""`bowerbird backup` and `bowerbird restore` as people use them (D-21)."""

import json
import resource

from support.patience import HANG_S


def test_everything_of_a_directory_comes_back(here, written):
    """Reliability 8: unlanded files, landings with their undo, sessions."""
    here.fake.script({"tools": [written("landed.txt", "landed\n")]}, {"text": "ok"})
    here.ok("run", "one")
    here.ok("land")
    here.fake.script({"tools": [written("waiting.txt", "waiting\n")]}, {"text": "ok"})
    here.ok("run", "two")
    backup = here.home / "backup"
    assert "2 sessions" in here.ok("backup", str(backup))
    code, _, err = here.run("backup", str(backup))
    assert code == 1 and "--force" in err
    here.ok("backup", str(backup), "--force")

    elsewhere = ("--data-dir", str(here.home / "elsewhere"))
    assert json.loads(here.ok("restore", str(backup), "--json", *elsewhere))["sessions"] == 2
    assert "+waiting" in here.ok("diff", *elsewhere)
    here.ok("undo", *elsewhere)
    assert not (here.project / "landed.txt").exists()
    here.ok("land", *elsewhere)
    assert (here.project / "waiting.txt").read_text() == "waiting\n"
    code, _, err = here.run("restore", str(backup), *elsewhere)
    assert code == 1 and "not empty" in err


def test_a_backup_of_nothing_is_an_error_and_makes_nothing(here):
    """D-30: a nightly backup of the wrong directory is not green."""
    code, _, err = here.run("backup", str(here.home / "backup"), "--data-dir", str(here.home / "nowhere"))
    assert code != 0 and "nothing to read" in err
    assert not (here.home / "nowhere").exists() and not (here.home / "backup").exists()
    here.ok("sessions")  # makes an empty database
    code, _, err = here.run("backup", str(here.home / "backup"))
    assert code != 0 and "no session" in err
    assert not (here.home / "backup").exists()


def test_a_backup_beside_a_server_s_settings_reads_the_server_s_database(here, written):
    """Team 2: a nightly copy of the wrong database stayed green."""
    served = here.project / "served"
    served.mkdir()
    here.ok("config", "init", cwd=served)
    (served / "config.yaml").write_text(f"agent: {{data_dir: {here.home}/served-data}}\n")
    here.fake.script({"text": "ok"})
    here.ok("run", "hi", "--data-dir", str(here.home / "served-data"))
    said = here.ok("backup", str(here.home / "backup"), cwd=served)
    assert "1 session" in said and "served-data" in said


def test_a_landing_of_back_then_is_not_finished_by_a_restore(here, written):
    """The user's directory has gone on since the backup: nothing writes into it unasked."""
    here.fake.script({"tools": [written("landed.txt", "landed\n")]}, {"text": "ok"})
    here.ok("run", "one")
    here.ok("land")
    (record,) = (here.home / ".bowerbird/data").glob("branches/*/landings/*/record.json")
    record.write_text(record.read_text().replace('"done"', '"applying"'))
    here.ok("backup", str(here.home / "backup"))
    (here.project / "landed.txt").unlink()
    elsewhere = ("--data-dir", str(here.home / "elsewhere"))
    here.ok("restore", str(here.home / "backup"), *elsewhere)
    assert "needs_attention" in here.ok("landings", "--json", *elsewhere)
    assert not (here.project / "landed.txt").exists()


def test_thousands_of_files_that_cannot_be_read_are_counted_not_listed(here, written):
    """D-21: one cause fills no screen, and the 51st file is not passed over in silence."""
    here.fake.script({"tools": [written("kept.txt", "kept\n")]}, {"text": "ok"})
    here.ok("run", "one")
    large = here.home / ".bowerbird/data/blobs/large"
    large.mkdir(parents=True)
    for number in range(60):
        with (large / f"{number:02}").open("wb") as file:
            file.truncate(9 << 20)  # a hole: over the limit of the process below
    small = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))}
    with here.start("backup", str(here.home / "backup"), **small) as process:
        out, err = process.communicate(timeout=HANG_S)
    told = [line for line in err.decode().splitlines() if line.startswith("not in the backup")]
    assert (process.returncode, len(told)) == (3, 11), (out, err)
    assert "50 more files" in told[-1]
    record = json.loads((here.home / "backup" / "backup.json").read_bytes())
    assert (record["unread"], len(record["refused"])) == (60, 50)


def test_a_limit_of_file_sizes_is_named_where_the_disk_has_room(here):
    """UI-63: "the disk is full (52 GiB free)" sent people to look for space that was there."""
    small = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100 << 10, 100 << 10))}
    with here.start("sessions", **small) as process:
        _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 1, err
    assert "may not grow above 100 KiB" in err.decode() and "ulimit -f" in err.decode()
    here.ok("sessions")
