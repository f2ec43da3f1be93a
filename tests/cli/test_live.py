"""Commands about a session that another process drives (UI-46)."""

import json
import signal

from support.desk import Desk
from support.patience import HANG_S, patience


def only_session(desk: Desk) -> str:
    [session] = json.loads(desk.ok("sessions", "--json"))
    return session["id"]


def test_a_sent_message_is_queued_and_run_by_whoever_drives_next(desk):
    desk.fake.script({"text": "first"}, {"text": "second"})
    desk.ok("begin", "-q")
    session = only_session(desk)
    sent = json.loads(desk.ok("send", session, "go on", "--json"))
    assert sent["turn_id"].startswith("t_")
    if desk.is_server:  # which drives it by itself, perhaps before `send` has ended
        desk.fake.wait_requests(2)
    else:
        assert desk.fake.request_count == 1
        assert "second" in desk.ok("resume", session, "-q")
    assert "go on" in json.dumps(desk.fake.requests[-1]["messages"][-1])


def test_tail_shows_what_another_process_does_and_stops_nothing(desk):
    desk.fake.script({"text": "first"}, {"text": "second"})
    desk.ok("begin", "-q")
    session = only_session(desk)
    with desk.start("tail", session, "--after", "0", "--json", text=True) as follower:
        assert follower.stdout is not None and follower.stderr is not None
        seen: list[dict[str, object]] = []
        while not seen or seen[-1]["type"] != "done":
            seen.append(json.loads(follower.stdout.readline()))
        assert "first" in [event.get("content") for event in seen]
        desk.ok("again", "--resume", session, "-q")
        while seen[-1].get("content") != "second":
            seen.append(json.loads(follower.stdout.readline()))
        cursors = [event["cursor"] for event in seen]
        assert cursors == sorted(cursors)
        follower.send_signal(signal.SIGINT)
        assert follower.wait(patience(18)) == 130
        assert "Traceback" not in follower.stderr.read()


def test_tail_refuses_a_place_that_the_journal_does_not_have(desk):
    desk.fake.script({"text": "first"})
    desk.ok("begin", "-q")
    code, _, err = desk.run("tail", only_session(desk), "--after", "999")
    assert code == 2 and "999" in err


def test_cancel_stops_a_turn_of_another_process(desk):
    desk.fake.script({"hang": True})
    with desk.start("think long", "--json") as running:
        desk.fake.wait_requests(1, timeout=HANG_S)
        desk.ok("cancel", only_session(desk))
        out, _ = running.communicate(timeout=HANG_S)
        assert json.loads(out)["state"] == "cancelled"
    code, _, err = desk.run("cancel", only_session(desk))
    assert code == 2 and "nothing runs" in err


def test_a_question_is_answered_from_another_terminal(desk, written):
    desk.edit(written("b.txt", "hi\n"))
    with desk.terminal("make b", "--approval") as terminal:
        terminal.wait_for("The agent asks to run:")
        desk.ok("approve", only_session(desk))
        terminal.wait_for("✓ write_file")
    assert "b.txt" in desk.ok("diff")
    code, _, err = desk.run("deny", only_session(desk))
    assert code == 2 and "no pending request" in err


def test_a_question_of_the_agent_takes_words_and_is_left_open_by_deny(desk):
    """The model took the bare word for the answer: `approve` for "approve", `deny` for "deny"."""
    colour, shade = (
        {"tools": [{"name": "ask_user", "input": {"question": f"Which {what}?", "options": ["red", "blue"]}}]}
        for what in ("colour", "shade")
    )
    desk.fake.script(colour, shade, {"text": "As you like."})
    with desk.terminal("paint it") as turn:
        turn.wait_for("Which colour?")
        session = only_session(desk)
        code, _, err = desk.run("approve", session)
        assert code == 2 and '--feedback "your answer"' in err
        desk.ok("approve", session, "--feedback", "blue")
        turn.wait_for("Which shade?")
        desk.ok("deny", session)
        turn.wait_for("As you like.")
    told = [str(request["messages"][-1]["content"]) for request in desk.fake.requests[1:]]
    assert "blue" in told[0] and "approve" not in told[0]
    assert "does not want to answer" in told[1]


def test_an_unknown_request_changes_nothing(desk):
    code, _, err = desk.run("approve", "r_" + "0" * 26)
    assert code == 2 and "no pending request" in err
