"""`land --check`: what the command of `landing.check` says decides whether anything lands (UI-27)."""

import json

import pytest

COUNTS = "test -f new.txt && echo there it is && grep -q right new.txt"


@pytest.fixture
def judged(desk, written):
    """A session whose branch holds a file that the check does not like."""
    settings = desk.home / ".bowerbird"
    settings.mkdir(exist_ok=True)
    (settings / "config.yaml").write_text(f"landing:\n  check: {json.dumps(COUNTS)}\n")
    desk.edit(written("new.txt", "wrong\n"))
    desk.ok("write it", "-q")
    return desk


def test_what_fails_the_check_does_not_land_and_the_output_says_why(judged, written):
    code, out, err = judged.run("land", "--yes", "--check")
    if "could not run" in err:
        pytest.skip("no check can run here")
    assert code == 1 and "nothing landed: the check ended with code 1" in err and "there it is" in err
    assert not (judged.project / "new.txt").exists()
    code, out, err = judged.run("land", "--yes", "--check", "--json")
    told = json.loads(out)
    assert code == 1 and told["state"] == "failed" and told["exit_code"] == 1
    judged.edit(written("new.txt", "right\n"))
    judged.ok("write it anew", "-q")
    code, out, err = judged.run("land", "--yes", "--check")
    assert code == 0 and "check passed" in err and "landed 1 change" in out
    assert (judged.project / "new.txt").read_text() == "right\n"


def test_without_a_command_the_flag_is_refused(desk, written):
    desk.edit(written("new.txt", "new\n"))
    desk.ok("write it", "-q")
    code, _, err = desk.run("land", "--yes", "--check")
    assert code == 2 and "landing.check" in err
    assert not (desk.project / "new.txt").exists()
