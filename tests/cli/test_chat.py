"""The interactive session under a pseudo-terminal, by each client (UI-52 … UI-57, UI-85)."""

import threading
import time

import pytest
from support.desk import Desk
from support.patience import HANG_S, patience


@pytest.fixture(scope="module")
def table(tmp_path_factory, models, servers, client):
    """The desk of the tests that share one session."""
    with Desk(tmp_path_factory.mktemp("chat"), models, servers if client == "server" else None) as made:
        yield made


@pytest.fixture(scope="module")
def shared(table):
    """One interactive session at 80 columns; a process per test would cost two seconds each."""
    with table.terminal(columns=80) as terminal:
        terminal.wait_for("/help lists commands.")
        terminal.wait_for(">")
        yield terminal


@pytest.fixture
def chat(shared, models):
    """The shared session at its prompt, with a model that has forgotten its script."""
    models.reset()
    return shared


@pytest.fixture
def desk(request, tmp_path, models, servers, client):
    """The shared session's desk for tests that use it, else one of the test's own."""
    if "chat" in request.fixturenames:
        yield request.getfixturevalue("table")
        return
    models.reset()
    with Desk(tmp_path, models, servers if client == "server" else None) as made:
        yield made


def ready(desk, *arguments, **options):
    terminal = desk.terminal(*arguments, **options)
    terminal.wait_for("lists commands")
    terminal.wait_for(">")
    return terminal


def test_slash_commands_answer_and_typos_are_not_sent(desk, chat):
    """UI-52."""
    for line, part in (
        ("/dif", "did you mean /diff?"), ("/cost", "here: 0 in"), ("/context", "of 200k tokens"),
        ("/thinking", "thinking is as the model does by itself"), ("/thinking max", "thinking is on, max"),
        ("/thinking off", "thinking is off"), ("/model", "anthropic:claude"),
        ("/model nonsense:x", "no provider is called"), ("/approval on", "every unsafe tool now asks first"),
        ("/approval off", "only effects outside"), ("/history", "/history"),
        ("/show 1", "there is no result"), ("/sessions", "idle"), ("/help", "/compact"),
    ):  # fmt: skip
        chat.send(line + "\r")
        chat.wait_for(part)
    assert desk.fake.request_count == 0
    desk.fake.script({"text": "as text"})
    chat.send("//help\r")
    chat.wait_for("as text")
    chat.wait_for("ctx ·")
    assert "/help" in str(desk.fake.requests[-1]["messages"])


def test_a_whole_job_review_land_and_undo(desk, chat, written):
    """UI-52, 54, 57: the answer as Markdown, the cost line, /diff /land /undo."""
    desk.edit(written("b.txt", "hi\n"), answer="# Title\n\nIt is **done**.")
    chat.send("make b\r")
    chat.wait_for("1 ✓ write_file b.txt")
    chat.wait_for("It is done.")
    chat.wait_for("ctx · 1 file changed")
    chat.wait_for("1 file changed: /diff · /land · /discard")
    chat.send("/diff\r")
    chat.wait_for("+hi")
    chat.send("/land\r")
    chat.wait_for("Land 1 change? [y/N]")
    chat.send("y\r")
    chat.wait_for("landed 1 change as l_")
    assert (desk.project / "b.txt").read_text() == "hi\n"
    chat.send("/undo\r")
    chat.wait_for("back (1 change)")
    assert not (desk.project / "b.txt").exists()
    chat.send("/discard\r")
    chat.wait_for("Discard 1 change of session")
    chat.send("y\r")
    chat.wait_for("kept for 7 days")


def test_ctrl_c_stops_the_turn_and_asks_for_feedback(desk, chat):
    """UI-55, acceptance 11."""
    desk.fake.script({"text": "word " * 200, "deltas": 200, "gap_s": 0.1})
    chat.send("talk\r")
    chat.wait_for("word")
    started = time.monotonic()
    chat.send("\x03")
    chat.wait_for("feedback>")
    assert time.monotonic() - started < patience(2)  # the whole answer takes twenty
    desk.fake.wait_closed(1)
    desk.fake.script({"text": "Understood, shorter."})
    chat.send("be brief\r")
    chat.wait_for("Understood, shorter.")
    chat.wait_for("ctx ·")
    said = str(desk.fake.requests[-1]["messages"])
    assert "talk" in said and "be brief" in said


def test_enter_alone_leaves_feedback(desk, chat):
    """UI-55."""
    desk.fake.script({"hang": True})
    chat.send("wait\r")
    desk.fake.wait_requests(1)
    chat.send("\x03")
    chat.wait_for("feedback>")
    chat.send("\x03")  # stopping a turn is no half of leaving
    chat.wait_for("Ctrl+C again leaves")
    chat.send("\r")
    chat.wait_for(">")
    assert desk.fake.request_count == 1


def test_typing_during_a_turn_is_queued_and_answered_next(desk, chat):
    """UI-55."""
    slow = {"gap_s": 0.5, "deltas": 3}
    desk.fake.answer(lambda body, n: {"text": f"answer {n}"} | (slow if n == 0 else {}))
    chat.send("first\r")
    desk.fake.wait_requests(1)
    chat.send("second\r")
    chat.wait_for("queued: second")
    chat.wait_for("answer 0")
    chat.wait_for("ctx ·")
    chat.wait_for("> second")  # what was typed stands above its own answer
    chat.wait_for("answer 1")
    chat.wait_for("ctx ·")


def test_pasted_lines_are_one_message_and_alt_enter_makes_a_line(desk, chat):
    """UI-55: bracketed paste."""
    desk.fake.script({"text": "got it"})
    chat.send("\x1b[200~one\ntwo\nthree\x1b[201~")
    chat.send("\x1b\rfour\r")
    chat.wait_for("got it")
    chat.wait_for("ctx ·")
    assert desk.fake.request_count == 1
    assert "one\\ntwo\\nthree\\nfour" in repr(desk.fake.requests[-1]["messages"])


def test_printing_never_hands_the_keys_to_the_terminals_line_editor(desk, chat):
    """UI-55: not even for the moment of a write, in which Enter would become another character
    (Alt+Enter would send) and Ctrl+D be lost.
    """
    text = "".join(f"paragraph {n}\n\n" for n in range(100))
    desk.fake.script({"text": text, "deltas": 100, "gap_s": 0.01})
    chat.send("write a lot\r")
    desk.fake.wait_requests(1)
    lent = 0
    while "paragraph 99" not in chat.text:
        lent += sum(chat.is_restored() for _ in range(2_000))
    chat.wait_for("ctx ·")
    assert lent == 0


def test_no_control_character_of_model_or_tool_reaches_the_terminal(desk, chat, written):
    """UI-53, acceptance 7."""
    desk.fake.script(
        {"tools": [{"name": "read_file", "input": {"path": "nope\x1b[31m\x07"}}]},
        {"text": "bad \x1b]0;owned\x07 \x9b31m <img onerror=x> [l](javascript:alert(1))\n"},
    )
    chat.send("look\r")
    chat.wait_for("read_file nope\\x1b[31m\\x07")
    chat.wait_for("bad \\x1b]0;owned\\x07 \\x9b31m <img onerror=x>")
    chat.wait_for("ctx ·")
    assert b"\x1b]0;owned" not in chat.raw and b"\xc2\x9b" not in chat.raw
    assert b"\x1b]8;" not in chat.raw  # no hyperlink escapes


def test_a_plan_is_approved_and_carried_out(desk, chat, written):
    """UI-52 /plan, UI-56."""
    chat.send("/plan\r")
    chat.wait_for("plan mode is on")
    desk.fake.script(
        {"tools": [{"name": "exit_plan_mode", "input": {"plan": "1. write b.txt"}}]},
        {"tools": [written("b.txt", "hi\n")]},
        {"text": "Carried out."},
    )
    chat.send("make b\r")
    chat.wait_for("1. write b.txt")
    chat.wait_for("y approve")
    chat.send("y\r")
    chat.wait_for("Carried out.")
    chat.wait_for("1 file changed: /diff")
    assert "exit_plan_mode" not in chat.text


def test_ctrl_c_at_a_plan_calls_no_model_and_the_feedback_is_one_message(desk, chat):
    """server 1, D-12: it was three paid revisions, with the user's words still in the queue."""
    desk.fake.reset()
    chat.send("/plan\r")
    desk.fake.script({"text": "First plan."}, {"text": "Second plan."}, {"text": "Carried on."})
    before = desk.fake.request_count
    chat.send("think\r")
    chat.wait_for("First plan.")
    chat.wait_for("y approve")
    chat.send("\x03")
    chat.wait_for("feedback>")
    time.sleep(0.5)
    assert desk.fake.request_count == before + 1
    chat.send("with sqlite\r")
    chat.wait_for("Second plan.")
    assert desk.fake.request_count == before + 2
    assert "with sqlite" in str(desk.fake.requests[-1]["messages"][-1])
    chat.wait_for("y approve")  # before the question stands there, no y is an answer
    chat.send("y\r")
    chat.wait_for("Carried on.")
    chat.wait_for("ctx ·")
    assert desk.fake.request_count == before + 3


def test_an_answer_typed_before_the_plan_is_there_is_neither_feedback_nor_approval(desk, chat):
    """UI-56: it became the message "y", and paid for another plan."""
    chat.send("/plan\r")
    chat.wait_for("plan mode is on")
    seen = threading.Event()
    steps = [{"text": "The plan."}, {"text": "As approved."}]
    before = desk.fake.request_count
    desk.fake.answer(lambda _body, n: seen.wait(HANG_S) and steps[n])
    chat.send("think\r")
    desk.fake.wait_requests(before + 1)
    chat.send("y\r")
    chat.wait_for("'y' was not sent")
    seen.set()
    chat.wait_for("y approve")
    time.sleep(0.5)
    assert desk.fake.request_count == before + 1
    chat.send("y\r")
    chat.wait_for("As approved.")
    chat.wait_for("ctx ·")


def test_typed_lines_are_kept_privately(desk, chat):
    """UI-52: history in the data directory, 0600."""
    history = desk.home / ".bowerbird/data/cli_history"
    assert "be brief" in history.read_text() and history.stat().st_mode & 0o777 == 0o600


def test_leaving_restores_the_terminal_and_says_how_to_come_back(desk, chat):
    """UI-55, UI-57: Ctrl+C clears the line, twice within a second leaves."""
    chat.send("half a line")
    chat.wait_for("half a line")
    chat.send("\x03")
    time.sleep(1.1)  # twice within a second would leave
    chat.send("\x03")
    chat.wait_for("Ctrl+C again leaves")
    chat.send("\x03")
    assert chat.wait() == 0 and chat.is_restored()
    assert "bowerbird --resume=" in chat.text
    assert desk.fake.request_count == 0


def test_approval_is_asked_and_answered(desk, written):
    """UI-56: details, once, denial with a reason."""
    with ready(desk, "--approval", columns=80) as chat:
        desk.edit(written("b.txt", "hi\n"))
        chat.send("make b\r")
        chat.wait_for("The agent asks to run:")
        chat.send("d\r")
        chat.wait_for("content: hi")
        chat.send("y\r")
        chat.wait_for("✓ write_file")
        chat.wait_for("1 file changed: /diff")
        desk.edit(written("c.txt", "hi\n"))
        chat.send("make c\r")
        chat.wait_for("The agent asks to run:")
        chat.send("n not that name\r")
        chat.wait_for("⊘ write_file")
        chat.wait_for("1 file changed: /diff")
        assert "not that name" in str(desk.fake.requests[-1]["messages"])
        desk.edit(written("d.txt", "hi\n"))
        chat.send("make d\r")
        chat.wait_for("The agent asks to run:")
        chat.send("all\r")
        chat.wait_for("2 files changed: /diff")
        chat.send("/approval on\r")  # takes "the rest of the session" back
        chat.wait_for("every unsafe tool now asks first")
        desk.edit(written("e.txt", "hi\n"))
        chat.send("make e\r")
        chat.wait_for("The agent asks to run:")
        chat.send("y\r")
        chat.wait_for("3 files changed: /diff")
        chat.send("\x04")
        chat.wait()


def test_what_was_being_typed_is_no_answer_to_a_question(desk, written):
    """UI-56: it stands in the prompt again afterwards."""
    with ready(desk, "--approval", columns=80) as chat:
        typed = threading.Event()
        steps = [{"tools": [written("b.txt", "hi\n")]}, {"text": "Written."}, {"text": "Sent whole."}]
        desk.fake.answer(lambda _body, n: typed.wait(HANG_S) and steps[n])
        chat.send("make b\r")
        desk.fake.wait_requests(1)
        chat.send("yes, and then")
        chat.wait_for("yes, and then")
        typed.set()
        chat.wait_for("The agent asks to run:")
        chat.send("y\r")
        chat.wait_for("answer> y")
        chat.wait_for("✓ write_file")
        chat.wait_for("ctx ·")
        chat.send(" rest\r")
        chat.wait_for("Sent whole.")
        assert "yes, and then rest" in str(desk.fake.requests[-1]["messages"])
        chat.send("\x04")
        chat.wait()


def test_each_subagent_has_a_line_that_ends_with_it(desk, written):
    """UI-53."""

    def answer(body, _n):
        said = sum(m["role"] == "assistant" for m in body["messages"])
        if "main_sub" in str(body["system"]):
            return {"text": "Half of it is done.", "ttft_s": 0.3}
        tasks = [{"task": "the left half"}, {"task": "the right half"}]
        return (
            {"text": "All."} if said else {"tools": [{"name": "spawn_subagents", "input": {"tasks": tasks}}]}
        )

    with ready(desk, columns=100) as chat:
        desk.fake.answer(answer)
        chat.send("do both\r")
        chat.wait_for("subagent_1 general: the right half")
        chat.wait_for("finished (0 tool calls")
        chat.wait_for("finished (0 tool calls")
        chat.wait_for("All.")
        chat.send("\x04")
        assert chat.wait() == 0


def test_ctrl_c_takes_a_waiting_message_back_and_stops_no_turn_of_another_door(desk):
    """UI-55."""
    desk.fake.script({"text": "one"}, {"hang": True})
    desk.ok("begin", "-q")
    with desk.start("think long", "--resume=", "-q") as other:
        desk.fake.wait_requests(2, timeout=HANG_S)
        with ready(desk, "--resume=", columns=80) as chat:
            chat.wait_for("a turn runs ")
            chat.send("mine\r")
            chat.wait_for("starting")
            chat.send("\x03")
            chat.wait_for("taken back before it began")
            chat.wait_for("feedback>")
            chat.send("\x04")
            assert chat.wait() == 0
        assert other.poll() is None and desk.fake.request_count == 2
        other.kill()


def test_a_narrow_terminal_that_changes_its_width_stays_whole(desk):
    """UI-53: 40 columns, wide characters, a resize in the middle of a turn."""
    with ready(desk, columns=40) as chat:
        desk.fake.script({"text": "漢字" * 60 + "\n\n- point\n", "deltas": 20, "gap_s": 0.03})
        chat.send("write\r")
        desk.fake.wait_requests(1)
        chat.resize(60)
        chat.wait_for("point")
        chat.wait_for("ctx ·")
        assert "漢字" * 10 in chat.text.replace("\r", "").replace("\n", "")
        chat.send("\x04")
        assert chat.wait() == 0
