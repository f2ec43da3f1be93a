"""PR-19, PR-26, PR-27: what vendors print, read line by line; nothing that a program prints can raise."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.providers.catalogue import CATALOGUE
from bowerbird.providers.programs.launching import filled, launch
from bowerbird.providers.programs.outcome import Outcome, failure
from bowerbird.providers.programs.vendors import VENDORS

_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
_FIELDS = (
    "type result is_error session_id usage permission_denials message content text error item thread_id part tokens "
    "sessionID role sessionId data exitCode finishReason stats models response payloads meta event tool_calls"
).split()
_TYPES = (
    "result assistant system thread.started turn.completed turn.failed item.completed text step_finish error tool_use "
    "assistant.message session.error run_result agent_event message"
).split()
_RECORD = st.dictionaries(st.sampled_from(_FIELDS), _JSON | st.sampled_from(_TYPES), max_size=6)
_LINE = st.one_of(
    st.text(max_size=60),
    st.builds(lambda record, kind: json.dumps({**record, "type": kind}), _RECORD, st.sampled_from(_TYPES)),
    _JSON.map(json.dumps),
    st.just("{" * 3000),
)


@given(lines=st.lists(_LINE, max_size=8))
@settings(max_examples=150)
def test_no_output_makes_a_reader_raise(lines: list[str]):
    """PR-26: unknown types, fields of any type, broken lines, values that are no objects."""
    for make in {vendor.reader for vendor in VENDORS.values()}:
        reader = make()
        for line in lines:
            for event in reader.feed(line):
                assert isinstance(event.text, str)
        outcome = reader.outcome()
        json.dumps([outcome.text, outcome.error, outcome.session, outcome.denied, outcome.notes])


@pytest.mark.parametrize("name", VENDORS)
def test_nothing_printed_and_exit_0_is_a_failure(name: str):
    """PR-19: never "some output and quiet stderr"."""
    outcome = VENDORS[name].reader().outcome()
    assert failure(name, outcome, 0, "", None, "sign in") is not None


@pytest.mark.parametrize("name", VENDORS)
def test_an_exit_code_is_a_failure_whatever_was_said(name: str):
    """PR-19: both the end marker and exit code 0."""
    assert failure(name, Outcome("fine", ended=True), 2, "", None, "sign in") is not None
    assert failure(name, Outcome("fine", ended=True), 0, "warnings", None, "sign in") is None


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("prompt", ["--version", "-", "-p x", "/plan x"])
def test_a_prompt_never_becomes_an_option(name: str, prompt: str):
    """PR-16: on standard input as it is, or as one word that begins with no dash."""
    vendor = VENDORS[name]
    values = dict.fromkeys(
        ("model", "url", "origin", "token", "home", "cwd", "seconds", "turns", "new_session"), "v"
    )
    made = launch(vendor, ("/bin/x",), prompt, {**values, "session": None}, {})
    if vendor.prompt == "stdin":
        assert made.stdin == prompt.encode() and (prompt == "-" or prompt not in made.argv)
    else:
        word = "\n" + prompt if prompt.startswith("-") else prompt
        assert made.stdin is None and made.argv.count(word) == 1


def test_every_program_of_the_catalogue_has_its_data():
    """PR-2, PR-27."""
    assert {entry.name for entry in CATALOGUE.values() if entry.type == "cli"} == set(VENDORS)


def test_groups_without_a_value_are_left_out():
    """PR-27: no model set means that none is passed."""
    words = filled(("run", ("-m", "{model}"), "x {session}"), {"model": None, "session": "s"})
    assert words == ["run", "x s"]


FREE = {
    "claude_code": "acceptEdits", "codex_cli": "--dangerously-bypass-approvals-and-sandbox", "gemini": "yolo",
    "opencode": "--auto", "mistral_vibe": "--yolo", "qwen_cli": "yolo", "copilot": "--allow-all-tools",
    "hermes": "--yolo", "aider": "--yes-always",
}  # fmt: skip


@pytest.mark.parametrize("name", VENDORS)
def test_what_a_program_may_do_unasked_is_said_where_the_branch_is_the_boundary(name: str):
    """PR-21: without review the vendor's own caution is kept; a mode of settings takes the place of both."""
    base = {"home": "/h", "cwd": "/w", "new_session": "n", "seconds": "9", "turns": "9"}
    more: list[dict[str, str]] = [{"free": "1"}, {}, {"permission_mode": "plan"}]
    free, bound, plan = (launch(VENDORS[name], (name,), "go", {**base, **each}, {}).argv for each in more)
    assert not any("{" in word for word in (*free, *bound, *plan))
    if name in FREE:
        assert FREE[name] in free and FREE[name] not in bound and FREE[name] not in plan
    if VENDORS[name].mode:
        assert any("plan" in word for word in plan)
    if name == "cline":
        assert "true" in free and "false" in bound
    assert "HERMES_YOLO_MODE" not in launch(VENDORS[name], (name,), "go", base, {}).env
