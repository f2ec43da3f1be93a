"""Must show 5 of the issue, SE-26, sessions' acceptance 4: kill -9 in the middle of a command of a session.

The real command is killed while its sandbox runs; the next process rolls the branch back and runs the call again.
"""

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.abuse import TIERS, mounts_of, patience, pids_with
from support.desk import Desk
from support.fake_models import FakeModels

HALVES = {
    "between-the-halves": "touch counter; {hold}; echo x >> log; rm gone",
    "after-both": "touch counter; echo x >> log; rm gone; mkdir -p made/deep; {hold}",
}


@pytest.fixture(scope="module")
def models() -> Iterator[FakeModels]:
    with FakeModels() as fake:
        yield fake


def written_by_the_command(data: Path) -> list[Path]:
    """Where a command's `counter` stands on disk, whichever way the branch is projected."""
    return list(data.glob("branches/*/*/**/counter"))


def until(true: Callable[[], object], what: str, within_s: float = 60) -> float:
    begun = time.monotonic()
    while not true():
        assert time.monotonic() - begun < within_s, what
        time.sleep(0.01)
    return time.monotonic() - begun


def records(data: Path) -> list[tuple[str, dict]]:
    database = sqlite3.connect(f"file:{data}/agent.db?mode=ro", uri=True)
    try:
        rows = database.execute("SELECT type, body FROM journal ORDER BY seq").fetchall()
    finally:
        database.close()
    return [(kind, json.loads(body)) for kind, body in rows]


@pytest.mark.parametrize("when", HALVES)
@pytest.mark.parametrize("tier", TIERS)
def test_a_command_killed_half_way_is_rolled_back_and_run_again(tmp_path, models, tier: str, when: str):
    desk = Desk(tmp_path, models)
    desk.environment["BOWERBIRD_SANDBOX__TIER"] = tier
    data = desk.home / ".bowerbird/data"
    for name, text in {"log": "before\n", "gone": "x"}.items():
        (desk.project / name).write_text(text)
    word = f"{300_000 + time.monotonic_ns() % 10**9}"
    # Holds until the file `go` stands in the workspace, so the second run goes through.
    hold = f"(setsid sleep {word} &); for n in $(seq 1200); do [ -e go ] && break; sleep 0.05; done"
    line = HALVES[when].format(hold=hold)
    models.reset()
    models.script(
        {"tools": [{"name": "bash", "input": {"command": line, "timeout": 70}}]}, {"text": "Counted."}
    )
    process = desk.start("count", start_new_session=True)
    try:
        until(
            lambda: pids_with(f"sleep {word}") and written_by_the_command(data), "the command did not begin"
        )
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    took = until(lambda: not pids_with(word) and not mounts_of(tmp_path), "something was left behind", 20)
    assert took < patience(2)
    assert [kind for kind, _ in records(data)][-1] == "tool_intent"

    (desk.project / "go").write_text("")
    code, out, err = desk.run("resume")
    assert (code, out) == (0, "Counted.\n"), err
    outcomes = [body for kind, body in records(data) if kind == "tool_outcome"]
    assert [(body["status"], body["data"]["exit_code"]) for body in outcomes] == [("ok", 0)], outcomes
    assert models.request_count == 2, "one for the call, one for the answer"
    changed = json.loads(desk.ok("diff", "--json"))
    made = {
        row["path"].lstrip("/") for row in changed["written"] if not row["path"].endswith(("made", "deep"))
    }
    assert (made, changed["deleted"]) == ({"counter", "log"}, ["/gone"]), changed
    desk.ok("land", "--yes")
    assert (desk.project / "log").read_text() == "before\nx\n", "exactly one more line than before"
    assert (desk.project / "counter").exists() and not (desk.project / "gone").exists()
