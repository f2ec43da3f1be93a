"""Hooks: commands of the user that are told what agents do, and may forbid it (UI-77)."""

import asyncio
import json
import selectors
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.patience import HANG_S

from bowerbird.sessions.hooks import OUTPUT_BYTES, Ended, Hook, Hooks, denial, run_hook
from bowerbird.sessions.live.hub import Live

KEEP = "cat >> {0}/events.jsonl"


def settings(desk, hooks):
    place = desk.home / ".bowerbird"
    place.mkdir(exist_ok=True)
    (place / "config.yaml").write_text(json.dumps({"hooks": hooks}))


def events(desk, number):
    """Wait for so many events and return them."""
    file = desk.home / "events.jsonl"
    until = time.monotonic() + HANG_S
    while True:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) >= number or time.monotonic() > until:
            return [json.loads(line) for line in lines]
        time.sleep(0.05)


def test_hooks_hear_of_tools_ends_and_landings(desk, written):
    """UI-77: by each client; they run as the user, in the directory, outside the sandbox."""
    keep = KEEP.format(shlex.quote(str(desk.home)))
    settings(desk, {
        "before_tool": [{"command": keep, "tools": ["write_*"]}], "after_tool": [keep],
        "turn_end": [keep], "before_land": [keep],
    })  # fmt: skip
    desk.edit(written("b.txt", "hi\n"), answer="Made b.")
    desk.ok("make b", "-q")
    found = events(desk, 3)
    assert [event["event"] for event in found] == ["before_tool", "after_tool", "turn_end"]
    assert found[0]["tool"] == "write_file" and found[0]["input"]["content"] == "hi\n"
    assert found[1]["is_error"] is False and found[2]["text"] == "Made b."
    assert {event["workspace"] for event in found} == {str(desk.project)}
    desk.ok("land", "--yes")
    landing = events(desk, 4)[-1]
    assert landing["event"] == "before_land" and landing["paths"] == ["/b.txt"]
    assert (desk.project / "b.txt").read_text() == "hi\n"
    desk.edit(written("d/c.txt", "hi\n"))
    desk.ok("make c", "-q")
    desk.ok("land", "d", "--yes")
    told = [event["paths"] for event in events(desk, 8) if event["event"] == "before_land"]
    assert told[-1] == ["/d/c.txt"], "files, not the directory that was named"


def test_a_hook_forbids_a_tool_and_the_model_is_told_why(desk, written):
    """UI-77: exit 2 with the reason on standard error; nothing is written."""
    settings(desk, {"before_tool": ["printf 'not on \\033[31mFridays' >&2; exit 2"]})
    desk.edit(written("b.txt", "hi\n"), answer="Then not.")
    code, out, err = desk.run("make b")
    assert code == 0 and out == "Then not.\n" and "\x1b" not in err
    assert "not on" in str(desk.fake.requests[-1]["messages"])
    assert desk.ok("diff") == ""


def test_a_hook_forbids_a_landing_of_a_person_and_of_a_policy(desk, written):
    """UI-77: {"decision": "deny"}; nothing changes in the directory."""
    answer = json.dumps({"decision": "deny", "reason": "frozen until Monday"})
    settings(desk, {"before_land": [f"printf %s {shlex.quote(answer)}"]})
    desk.edit(written("b.txt", "hi\n"))
    desk.ok("make b", "-q")
    code, _, err = desk.run("land", "--yes")
    assert code != 0 and "frozen until Monday" in err
    desk.edit(written("c.txt", "hi\n"))
    desk.run("make c", "--land", "turn")
    assert sorted(path.name for path in desk.project.iterdir()) == ["a.txt"]


def test_the_question_of_an_agent_is_a_notification(here, written):
    """UI-77."""
    settings(here, {"notification": [KEEP.format(shlex.quote(str(here.home)))]})
    here.edit(written("b.txt", "hi\n"))
    with here.terminal("--approval", columns=80) as chat:
        chat.wait_for("lists commands")
        chat.send("make b\r")
        chat.wait_for("The agent asks to run:")
        found = events(here, 1)
        assert found[0]["event"] == "notification" and found[0]["tools"] == ["write_file"]
        chat.send("y\r")
        chat.wait_for("file changed: /diff")
        chat.send("\x04")
        chat.wait()


def test_hooks_of_a_workspace_are_refused(here):
    """UI-77: whoever may change files there would run commands as the user."""
    (here.project / "config.yaml").write_text("hooks: {turn_end: [touch owned]}\n")
    code, _, err = here.run("hi", "--config", "config.yaml")
    assert code == 78 and "lies in a workspace" in err
    assert here.fake.request_count == 0 and not (here.project / "owned").exists()


def test_doctor_shows_the_hooks(here):
    """UI-77."""
    settings(here, {"turn_end": ["notify-send done"]})
    assert "turn_end: notify-send done" in here.run("doctor")[1]


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (Ended(0, "", "chatter"), None), (Ended(0, "no JSON"), None), (Ended(0, '{"decision":"allow"}'), None),
        (Ended(1, "", "broke"), None), (Ended(127, "", "sh: x: not found"), "the hook 'x' could not be run: sh: x: not found"),
        (Ended(-9), "the hook 'x' was killed by signal 9"), (Ended(126), "the hook 'x' could not be run"),
        (Ended(0, '{"decision":"deny","reason":"' + "x" * OUTPUT_BYTES), "the hook 'x' printed more than 64 KiB"),
        (Ended(2), "the hook 'x' forbids it"),
        (Ended(0, '{"decision":"deny"}'), "the hook 'x' forbids it"),
        (Ended(None), "the hook 'x' did not answer within 30 s"),
    ],
)  # fmt: skip
def test_only_a_clear_word_or_silence_forbids(ended, reason):
    """UI-77."""
    assert denial(Hook("before_tool", "x"), ended) == reason


def test_what_a_hook_says_at_its_very_end_is_heard(tmp_path, monkeypatch):
    """UI-77: it printed between the last look at its pipes and the look at whether it lives: a denial was lost."""
    real = subprocess.Popen.poll

    def late(process):
        # Seen to live no more only after it has said all, as on a loaded machine.
        return process.wait() if process.returncode is None else real(process)

    class Blind(selectors.DefaultSelector):
        def select(self, timeout=None):
            super().select(0)
            return []

    monkeypatch.setattr(subprocess.Popen, "poll", late)
    monkeypatch.setattr(selectors, "DefaultSelector", Blind)
    said = json.dumps({"decision": "deny", "reason": "r" * 1_000})
    hook = Hook("before_tool", f"sleep 0.1; printf '%s' {shlex.quote(said)}", timeout_s=HANG_S)
    ended = run_hook(hook, {})
    assert denial(hook, ended) == "r" * 1_000


def test_a_guard_that_is_not_there_or_no_program_forbids(desk, written):
    """UI-77: a guard that was renamed or lost its mode would have let everything pass."""
    desk.edit(written("b.txt", "hi\n"))
    settings(desk, {"before_land": ["/nonexistent/guard"]})
    desk.ok("make b", "-q")
    code, _, err = desk.run("land", "--yes")
    assert code != 0 and "could not be run" in err and not (desk.project / "b.txt").exists()
    ended = run_hook(Hook("before_land", str(desk.project)), {})
    assert "could not be run" in (denial(Hook("before_land", "x"), ended) or "")


async def test_a_hook_ends_with_whoever_waits_for_it(tmp_path):
    """UI-77: a cancelled turn left it to run until its time limit, and the end of the server waited for it."""
    mark = tmp_path / "began"
    hooks = Hooks(lambda: [Hook("before_land", f"touch {mark}; sleep 300", timeout_s=300)], Live())
    asking = asyncio.ensure_future(hooks._ask("before_land", {}, None))
    async with asyncio.timeout(HANG_S):
        while not mark.exists():
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        while _runs(mark):
            await asyncio.sleep(0.01)


def _runs(mark):
    """Whether the shell of the hook, whose command line names the mark, is there."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(mark).encode() in place.read_bytes():
                return True
        except OSError:
            continue  # it ended meanwhile
    return False


def test_a_silent_hook_is_killed_with_what_it_started(tmp_path):
    """UI-77: the time limit; a hook that does not read its input is no problem either."""
    mark = tmp_path / "late"
    started = shlex.quote(f"import time; time.sleep(3); open({str(mark)!r}, 'w')")
    hook = Hook("before_tool", f"{sys.executable} -c {started} & sleep 300", timeout_s=0.5)
    assert run_hook(hook, {"big": "x" * 1_000_000}) == Ended(None)
    assert run_hook(Hook("turn_end", "exit 0"), {"big": "x" * 1_000_000}).code == 0
    time.sleep(3.5)
    assert not mark.exists()


def test_what_a_hook_leaves_behind_or_prints_without_end_costs_nothing(tmp_path):
    """UI-77: it has answered when it has ended, and its words have a bound."""
    begun = time.monotonic()
    ended = run_hook(Hook("turn_end", "sleep 300 & echo done", timeout_s=HANG_S), {})
    assert ended == Ended(0, "done\n") and time.monotonic() - begun < HANG_S / 2
    flood = run_hook(
        Hook("turn_end", "head -c 200000000 /dev/zero | tr '\\0' x; exit 2", timeout_s=HANG_S), {}
    )
    assert flood.code == 2 and 0 < len(flood.out) <= 64 * 1024
