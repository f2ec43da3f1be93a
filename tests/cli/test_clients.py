"""Every command is the same program over a server: same JSON, same codes, same options (F3, R1, UI-85).

Two desks with one script: the commands of the one work with this machine's sessions, those of the other over
a server. Beside it, each test of this folder that asks for `desk` runs with both clients.
"""

import json
import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from support.children import play
from support.desk import Desk
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.quick_servers import QuickServers

Written = Callable[[str, str], dict[str, Any]]
_ID = re.compile(r"\b(?:[a-z]{1,3}_[0-9A-Za-z]{10,}|call_fake_[0-9a-f]+_[0-9]+_[0-9]+|[0-9a-f]{12,})\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)?")
_OWN = {"door", "kind", "actor", "seconds", "ms", "started_at", "ended_at", "at", "elapsed"}
"""Through which door, by whom and when: what the two may differ in."""


class Twins:
    """Two desks that are told the same; what they answer is kept in words that name no id and no time."""

    def __init__(self, place: Path, models: FakeModels, servers: QuickServers) -> None:
        self.place, self.models = place, models
        self.desks = [
            Desk(self._made(place / name), models, given)
            for name, given in (("local_", None), ("server", servers))
        ]
        self._ids: list[dict[str, str]] = [{}, {}]

    @staticmethod
    def _made(place: Path) -> Path:
        place.mkdir()
        return place

    def script(self, *steps: dict[str, Any]) -> Callable[[], None]:
        return lambda: self.models.script(*steps)

    def do(self, *arguments: str, before: Callable[[], None] | None = None, code: int = 0) -> list[Any]:
        """Run a command at both; it must end alike, and write the same JSON."""
        answers: list[Any] = []
        same: list[Any] = []
        for desk, ids in zip(self.desks, self._ids, strict=True):
            if before is not None:
                before()
            whole = {short: known for known, short in ids.items()}
            given = [re.sub(r"ID\d+", lambda found: whole[found[0]], word) for word in arguments]  # noqa: B023
            got, out, err = desk.run(*given)
            assert got == code, (arguments, desk.is_server, err)
            assert "Traceback" not in err and "internal error" not in err, err
            answers.append(json.loads(out) if "--json" in arguments else out)
            same.append(self._plain(answers[-1], ids, str(desk.project)))
        assert same[0] == same[1], arguments
        return answers

    def _plain(self, value: Any, ids: dict[str, str], project: str) -> Any:
        rows: Any = value  # of no known type, whatever it is found to be
        if isinstance(value, dict):
            return {
                name: type(each).__name__ if name in _OWN else self._plain(each, ids, project)
                for name, each in rows.items()
            }
        if isinstance(value, list):
            return [self._plain(each, ids, project) for each in rows]
        if not isinstance(value, str):
            return value
        text = _TIME.sub("TIME", value.replace(project, "PROJECT"))
        return _ID.sub(lambda found: ids.setdefault(found[0], f"ID{len(ids)}"), text)


@pytest.fixture
def twins(tmp_path: Path, models: FakeModels, servers: QuickServers) -> Generator[Twins]:
    models.reset()
    made = Twins(tmp_path, models, servers)
    for desk in made.desks:
        (desk.home / ".bowerbird").mkdir()
        (desk.home / ".bowerbird/config.yaml").write_text("landing: {check: 'test -f c.txt'}\n")
    with made.desks[0], made.desks[1]:
        yield made


def session_of(twins: Twins, answers: list[Any]) -> str:
    """Return the name that both desks' sessions have in commands."""
    return twins._ids[0][answers[0]["conversation_id"]]  # pyright: ignore[reportPrivateUsage] - its own helper


def test_a_job_from_the_prompt_to_undo_writes_the_same_json(twins: Twins, written: Written) -> None:
    """F3, must-show 4: `sessions --json` had 22 keys here and 13 there, `show --json` another shape."""
    do, edit = twins.do, {"name": "edit_file", "input": {"path": "a.txt", "old": "two", "new": "TWO"}}
    for empty in (["sessions"], ["landings"], ["usage"], ["memory", "log"], ["tools"]):
        do(*empty, "--json")
    made = twins.script({"tools": [written("b.txt", "hi\n"), edit]}, {"text": "# Done\n\nIt is *done*."})
    session = session_of(twins, do("make b", "--json", before=made))
    for reading in (
        ["sessions"], ["sessions", "--all"], ["show"], ["show", session], ["diff"], ["diff", "b.txt"],
        ["diff", session, "b.txt"], ["diff", "."], ["diff", "./b.txt"],
        ["subagents", "list", session], ["usage", "--by", "model"], ["usage", "--by", "user"],
        ["usage", "--by", "conversation"], ["usage", "--from", "2020-01-01", "--to", "2020-01-02"],
    ):  # fmt: skip
        do(*reading, "--json")
    do("land", "nope.txt", "--yes", "--json")
    do("land", "b.txt", "--yes", "--json")
    do("landings", "--json")
    do("undo", "--json")
    do("land", "--yes", "--check", "--json", code=1)  # what the check found
    do("land", "--yes", "--json")
    for desk in twins.desks:
        (desk.project / "b.txt").write_text("mine\n")
    do("undo", "--json", code=3)
    do("undo", "--force", "--json")
    for desk in twins.desks:
        (desk.project / "b.txt").write_text("mine again\n")
    do("land", "--yes", "--json", code=3)
    do("land", "b.txt", "--yes", "--partial", "--json", code=3)  # all of it is refused: no landing is made
    do("land", "--yes", "--partial", "--json", code=3)
    do("land", "--yes", "--force", "--json")
    do("fork", session, "--turn", "1", "--json")
    do("rename", session, "Better")
    do("discard", session, "--yes", "--json")
    more = twins.script({"tools": [written("c.txt", "hi\n")]}, {"text": "ok"})
    do("more", f"--resume={session}", "--json", before=more)
    do("discard", session, "--yes", "--json")
    do("sessions", "--json")
    do("delete", session, "--yes")
    do("landings", "--json")
    do("sessions", "--all", "--json")


def test_a_turn_that_does_not_simply_end_writes_the_same_json(twins: Twins, written: Written) -> None:
    """UI-59, UI-60: failed, at a limit, out of time, resumed, planned; over a server a plan was revised for money."""
    do, edit = twins.do, {"tools": [written("b.txt", "hi\n")]}
    refused = {"status": 400, "body": {"type": "error", "error": {"type": "x", "message": "no"}}}
    do("try", "--json", before=twins.script(refused), code=1)
    do("resume", "--json", before=twins.script({"text": "Now."}))
    do("loop", "--max-turns", "2", "--json", before=twins.script(edit), code=5)
    do("write", "--land", "turn", "--json", before=twins.script(edit, {"text": "ok"}))
    do("write", "--approval", "--yes", "--json", before=twins.script(edit, {"text": "ok"}))
    plan = {"tools": [{"name": "exit_plan_mode", "input": {"plan": "1. write b.txt"}}]}
    do("plan", "--plan", "--json", before=twins.script(plan, edit, {"text": "ok"}), code=4)
    carried = do("plan", "--plan", "--yes", "--json", before=twins.script(plan, edit, {"text": "ok"}))
    assert [row["answer"] for row in carried] == ["ok", "ok"]
    do("sessions", "--json")


def test_subagents_are_shown_merged_and_discarded_alike(twins: Twins, written: Written) -> None:
    def paint() -> None:
        spawn = {"tools": [{"name": "spawn_subagents", "input": {"tasks": ["paint it"]}}]}
        steps = {
            "make": [spawn, {"text": "made"}],
            "paint": [{"tools": [written("b.txt", "x\n")]}, {"text": "ok"}],
        }
        play(twins.models, steps)

    session = session_of(twins, twins.do("make it", "--json", before=paint))
    twins.do("subagents", "list", session, "--json")
    twins.do("subagents", "show", session, "subagent_0", "--json")
    twins.do("subagents", "show", session, "subagent_0", "b.txt", "--json")
    twins.do("subagents", "merge", session, "subagent_0", "--json")
    twins.do("subagents", "discard", session, "subagent_0")
    for words in (["show"], ["merge"], ["discard"]):
        twins.do("subagents", *words, session, "nobody", code=2)


MISTAKES = [
    (["run", ""], "the message is empty"),
    (["send", "SESSION", " "], "the message is empty"),
    (["rename", "SESSION", " "], "the title is empty"),
    (["rename", "SESSION", "x" * 501], "500 is the most"),
    (["diff", "SESSION", "../x"], "../x"),
    (["x", "--max-turns", "99999999"], "at most 1,000,000"),
    (["show", "nope1"], "no session 'nope1'"),
    (["attempt", "x", "--n", "9", "--check", "true"], "use 2 to 8"),
    (["memory", "restore", "7"], "no version 7"),
    (["undo", "l_nope"], "is not a landing"),
    (["cancel", "SESSION"], "nothing runs in"),
    (["subagents", "show", "SESSION", "nobody"], "unknown subagent handle"),
]


def test_each_mistake_is_wrong_usage_with_both(desk: Desk) -> None:
    """UI-63: over a server it was a validator's pattern, or another code; here a blank title was taken."""
    desk.fake.script({"text": "ok"})
    session = json.loads(desk.ok("hi", "--json"))["conversation_id"]
    for arguments, said in MISTAKES:
        code, out, err = desk.run(*[session if word == "SESSION" else word for word in arguments])
        assert code == 2 and said in err and not out, (arguments, err)
        assert "String should" not in err and "Input should" not in err
    code, _, err = desk.run("x", "-m", "nonsense:x")
    assert code == 78 and "no provider is called" in err


def test_a_turn_takes_its_limits_and_lands_by_its_policy(desk: Desk, written: Written) -> None:
    """UI-85: `--max-turns --max-cost --no-memory --land` were refused over a server."""
    desk.edit(written("d.txt", "hi\n"))
    limits = ("--max-turns", "5", "--max-cost", "2", "--no-memory", "--land", "turn")
    result = json.loads(desk.ok("write d", *limits, "--json"))
    assert result["state"] == "done" and result["landing_id"].startswith("l_"), result
    assert (desk.project / "d.txt").read_text() == "hi\n"


def test_what_a_person_prefers_holds_with_both(desk: Desk, written: Written) -> None:
    """UI-62: over a server `cli.approval`, `cli.thinking_enabled` and `cli.timeout` were not read."""
    (desk.home / ".bowerbird").mkdir()
    settings = desk.home / ".bowerbird/config.yaml"
    settings.write_text("cli: {approval: true, thinking_enabled: true}\n")
    desk.edit(written("b.txt", "hi\n"))
    assert desk.run("write b", "-q")[0] == 4
    assert desk.fake.requests[-1]["thinking"]["type"] == "enabled"
    settings.write_text("cli: {timeout: 1.5}\n")
    desk.fake.reset()
    desk.fake.script({"hang": True})
    assert desk.run("wait")[0] == 124


def test_a_question_that_nobody_answers_here_waits_for_whoever_does(desk: Desk) -> None:
    """UI-56: over a server the plan was rejected, and each revision was paid."""
    desk.fake.script({"text": "The plan."})
    result = desk.run("think", "--plan", "--json")
    assert result[0] == 4 and json.loads(result[1])["state"] == "waiting"
    assert desk.fake.request_count == 1 and "bowerbird resume" in result[2]


def test_the_stream_is_the_same(twins: Twins, written: Written) -> None:
    """UI-59: other frames, in another order, and other files at the end."""
    kinds: list[list[Any]] = []
    for desk in twins.desks:
        desk.edit(written("b.txt", "hi\n"))
        lines = desk.ok("make b", "--output", "stream-json").splitlines()
        events = [json.loads(line) for line in lines]
        kinds.append([(event["type"], event["cursor"], sorted(event)) for event in events])
        assert [row["path"] for row in events[-1]["files"]] == ["b.txt", "a.txt"]
    assert kinds[0] == kinds[1]


ABOUT_THIS_MACHINE = [
    "config show", "config check", "doctor", "serve", "model fetch", "mcp list", "sandbox run -- true",
    "state export out", "state import out", "token list", "backup out", "restore out", "disk", "trash list",
    "skills", "completion bash",
]  # fmt: skip


@pytest.mark.parametrize("command", ABOUT_THIS_MACHINE)
def test_what_works_on_this_machine_only_says_so(here: Desk, command: str) -> None:
    """UI-85: in plain words, with exit code 2; nothing is done."""
    code, out, err = here.run("--server", "http://127.0.0.1:1", *command.split())
    assert code == 2 and not out and "about this machine, not about a server" in err
    assert not (here.project / "out").exists()


def test_a_run_that_is_out_of_time_is_resumed_with_both(desk: Desk) -> None:
    """UI-60: over a server it said `bowerbird resume`, and then that nothing was unfinished."""
    desk.fake.script({"hang": True})
    code, _, err = desk.run("think", "--timeout", "1.5")
    assert code == 124 and "bowerbird resume" in err
    desk.fake.wait_closed(1, timeout=HANG_S)
    desk.fake.script({"text": "Better late."})
    assert desk.ok("resume") == "Better late.\n"


def test_schedules_write_the_same_json(twins: Twins) -> None:
    """UI-47, UI-85, AS-39: a bad time is refused alike."""
    for desk in twins.desks:
        settings = "scheduler: {enabled: true}\nstore: {min_free_mb: 0}\n"
        (desk.home / ".bowerbird/config.yaml").write_text(settings)
    do = twins.do
    do("tasks", "list", "--json")
    made: list[dict[str, Any]] = []
    for desk in twins.desks:
        code, out, err = desk.run(
            "tasks", "add", "Look", "--cron", "0 8 * * *", "--tz", "Europe/Rome", "--json"
        )
        assert code == 0, err
        made.append(json.loads(out))
    same = ("prompt", "type", "value", "tz", "next_runs", "catch_up", "notify", "owner", "active", "paused")
    assert [made[0][name] for name in same] == [made[1][name] for name in same]
    assert [row["workspace"] for row in made] == [str(desk.project) for desk in twins.desks]
    ids = [row["id"] for row in made]
    for command in ("list", "pause", "resume", "run-now", "runs", "cancel"):
        for desk, task in zip(twins.desks, ids, strict=True):
            desk.fake.script({"text": "Done."})
            words = ["list"] if command == "list" else [command, task]
            code, out, err = desk.run("tasks", *words, "--json")
            assert code == 0, (command, desk.is_server, err)
            answer = json.loads(out)
            row = answer[0] if isinstance(answer, list) else answer
            assert set(row) == (set(made[0]) if "prompt" in row else RUN), (command, desk.is_server)
    do("tasks", "add", "Look", "--cron", "0 8 * *", code=2)
    do("tasks", "add", "Look", code=2)
    do("tasks", "runs", "ffffffff", code=2)
    do("tasks", "run-now", ids[0][:7] + "x", code=2)


RUN = {"task_id", "due", "turn_id", "started_at", "ended_at", "status", "cost", "tries", "retry_at", "error"}
