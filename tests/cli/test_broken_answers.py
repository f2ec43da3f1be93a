"""What a terminal says when an answer breaks off: the provider's fault, or a machine that slept (UI-63, UI-84)."""

import os
import signal
import time

import pytest
from support.patience import patience

pytestmark = pytest.mark.timeout(patience(60))

HALF = {"text": "one two three four", "deltas": 4, "cut_after": 2}


def test_a_broken_stream_is_told_in_one_line_without_a_code(here, models):
    """It was two lines, the first with `stream_cut`."""
    models.script(HALF, {"text": "one two three four"})
    code, out, err = here.run("count")
    assert code == 0 and out.endswith("one two three four\n")
    told = [line.strip() for line in err.splitlines() if "broke off" in line]
    assert len(told) == 1 and told[0].startswith("the answer broke off; trying again in "), err
    assert "stream_cut" not in err


def test_a_machine_that_slept_goes_on_with_its_turn_and_speaks_of_no_lease(here, models):
    """A closed laptop: a warning named an epoch and said that another process may continue."""
    settings = here.home / ".bowerbird/config.yaml"
    settings.parent.mkdir()
    settings.write_text("dispatch: {lease_s: 1, heartbeat_s: 0.3}\n")
    models.script({"text": "one two three four", "deltas": 4, "hang_after": 2}, {"text": "five six seven"})
    with here.terminal() as terminal:
        terminal.wait_for("lists commands")
        terminal.send("count\r")
        models.wait_requests(1)
        terminal.wait_for("one")
        os.kill(terminal.process.pid, signal.SIGSTOP)
        time.sleep(2.5)  # what is tested: longer than its lease
        os.kill(terminal.process.pid, signal.SIGCONT)
        terminal.wait_for("five six seven")
        terminal.wait_for("ctx ·")
        assert "it begins again" in terminal.text
        for word in ("lease", "epoch", "warning"):
            assert word not in terminal.text
