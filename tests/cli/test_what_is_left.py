"""What a session that was left, by a signal or for another question, holds: counted, found, said."""

import json
import signal

import pytest
from support.patience import patience


@pytest.fixture
def write(written):
    return [written("new.txt", "1\n"), written("more.txt", "2\n")]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_turn_that_a_signal_stopped_has_its_files_and_its_cost_in_lists(here, write, stop):
    here.fake.script({"tools": write}, {"hang": True})
    with here.start("change it", "-q") as process:
        here.fake.wait_requests(2)
        process.send_signal(stop)
        process.communicate(timeout=patience(18))
    (listed,) = json.loads(here.ok("sessions", "--json"))
    shown = json.loads(here.ok("show", "--json"))
    assert (listed["changed_files"], shown["changed_files"]) == (2, 2)
    assert listed["cost"] > 0


def test_the_work_of_yesterday_is_what_is_shown_and_landed_after_one_more_question(desk, written):
    desk.edit(written("new.txt", "1\n"))
    desk.ok("change it", "-q")
    desk.edit(written("other.txt", "2\n"))
    desk.ok("and that", "-q")
    for answer in ("A word.", "Another."):
        desk.fake.script({"text": answer})
        desk.ok("what is it?", "-q")
    rows = json.loads(desk.ok("sessions", "--json"))
    with_changes = [row["id"] for row in rows if row["changed_files"]]
    code, out, err = desk.run("diff")
    assert code == 0 and "other.txt" in out
    assert with_changes[0] in err and f"{with_changes[1]} has unlanded changes, too" in err
    desk.ok("land", "--yes")
    assert (desk.project / "other.txt").exists() and not (desk.project / "new.txt").exists()
    desk.ok("discard", "--yes")
    assert "no" in desk.run("land", "--yes")[2] and not (desk.project / "new.txt").exists()


def test_resume_without_an_id_goes_on_with_what_is_unfinished_not_with_what_is_newest(here):
    here.fake.script({"text": "word " * 500, "deltas": 500, "gap_s": 0.05})
    with here.start("speak on", "-q") as process:
        here.fake.wait_requests(1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=patience(18))
    here.fake.script({"text": "A word."})
    here.ok("what is it?", "-q")
    here.fake.script({"text": "Again."})
    assert here.ok("resume") == "Again.\n"
