"""`!command` and `#text` at the prompt, by each client (UI-74, UI-85)."""

import json
import time

import pytest
from support.desk import Desk
from support.patience import HANG_S


@pytest.fixture(scope="module")
def table(tmp_path_factory, models, servers, client):
    models.reset()
    with Desk(tmp_path_factory.mktemp("commands"), models, servers if client == "server" else None) as made:
        yield made


@pytest.fixture(scope="module")
def chat(table):
    with table.terminal(columns=100) as terminal:
        terminal.wait_for("/help lists commands.")
        terminal.wait_for(">")
        yield terminal


def last_message(desk) -> str:
    return "\n".join(block["text"] for block in desk.fake.requests[-1]["messages"][-1]["content"])


def test_a_command_runs_on_the_branch_and_its_output_goes_along(table, chat):
    """UI-74: nothing of it is in the directory; what it prints is the terminal's in no way."""
    before = table.fake.request_count
    chat.send("!wc -l a.txt; echo made > by_me.txt; printf '\\033]0;owned\\007'; exit 3\r")
    chat.wait_for("3 a.txt")
    chat.wait_for("✗ exit code 3; the output goes along with your next message")
    chat.wait_for("1 file changed: /diff")
    assert table.fake.request_count == before and b"\x1b]0;owned" not in chat.raw
    assert not (table.project / "by_me.txt").exists()
    table.fake.script({"text": "Three lines."})
    chat.send("why?\r")
    chat.wait_for("Three lines.")
    chat.wait_for("ctx ·")
    said = last_message(table)
    assert said.startswith("why?") and '<attachment name="! wc -l a.txt;' in said
    assert "3 a.txt" in said and "exit code 3" in said
    table.fake.script({"text": "Nothing more."})
    chat.send("and now?\r")
    chat.wait_for("Nothing more.")
    chat.wait_for("ctx ·")
    assert "attachment" not in last_message(table)


def test_ctrl_c_stops_a_command_and_what_was_typed_meanwhile_is_sent(table, chat):
    """UI-55, UI-74."""
    table.fake.script({"text": "As you say."})
    chat.send("!echo begun; sleep 300 & sleep 300\r")
    chat.wait_for("! echo begun")
    chat.send("go on with @a.txt\r")
    chat.wait_for("queued: go on")
    time.sleep(1)  # it has printed
    chat.send("\x03")
    chat.wait_for("stopped; the output goes along")
    chat.wait_for("> go on with @a.txt")
    chat.wait_for("As you say.")
    chat.wait_for("ctx ·")
    said = last_message(table)
    assert "go on with" in said and "sleep 300" in said and "three" in said


def test_a_command_waits_for_the_end_of_a_turn(table, chat):
    """UI-74: the agent's work is not disturbed."""
    table.fake.script({"text": "slow words", "deltas": 2, "gap_s": 1.0})
    requests = table.fake.request_count
    chat.send("talk\r")
    table.fake.wait_requests(requests + 1, timeout=HANG_S)
    chat.send("!ls\r")
    chat.wait_for("a command has to wait")
    chat.wait_for("ctx ·")


def test_a_fact_is_remembered_for_the_next_turn(table, chat):
    """UI-74: one line of the memory; a doubled sign is text."""
    chat.send("#we indent with tabs\r")
    chat.wait_for("remembered, from the next turn on")
    table.fake.script({"text": "Noted.", "deltas": 1})
    chat.send("##5 is the ticket\r")
    chat.wait_for("Noted.")
    chat.wait_for("ctx ·")
    assert "we indent with tabs" in str(table.fake.requests[-1]["system"])
    assert last_message(table).startswith("#5 is the ticket")
    log = json.loads(table.ok("memory", "log", "--json"))
    assert "we indent with tabs" in str(log)
    for number in range(5):
        chat.send(f"#{number}{'x' * 990}\r")
    chat.wait_for("forgotten, the memory is full: we indent with tabs")
