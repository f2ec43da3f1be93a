"""PR-29: what real programs printed (recorded with `benchmarks/real_agents.py`'s scene, cut to what is read)."""

from pathlib import Path

import pytest

from bowerbird.providers.programs.vendors import VENDORS

RECORDED = Path(__file__).with_name("recorded")
ANSWER = "I wrote made.txt and removed gone.txt."
TOOLS = {
    "claude_code": "Bash", "codex_cli": "made.txt", "opencode": "bash", "copilot": "bash", "cline": "run_commands",
    "mistral_vibe": "file_system.bash", "gemini": None, "qwen_cli": None,
}  # fmt: skip
TOKENS = {"mistral_vibe": None, "copilot": None}
NAMELESS = ("cline",)


@pytest.mark.parametrize("name", TOOLS)
def test_answer_tokens_and_session_are_read(name: str):
    """PR-27: one tool call, one sentence, 200 tokens in and 40 out."""
    reader = VENDORS[name].reader()
    text = (RECORDED / f"{name}.txt").read_text()
    events = [event for line in text.split("\n") for event in reader.feed(line)]
    outcome = reader.outcome()
    assert (outcome.text, outcome.ended, outcome.error) == (ANSWER, True, None)
    assert outcome.tokens == TOKENS.get(name, 240)
    assert (outcome.session is None) == (name in NAMELESS)
    wanted = TOOLS[name]
    assert wanted is None or any(event.kind == "tool" and wanted in event.text for event in events)


@pytest.mark.parametrize("name", TOOLS)
def test_output_that_breaks_off_is_no_success(name: str):
    """PR-19: a program that died before its end."""
    lines = (RECORDED / f"{name}.txt").read_text().rstrip("\n").split("\n")
    reader = VENDORS[name].reader()
    for line in (*lines[:-1], lines[-1][: len(lines[-1]) // 2]):
        reader.feed(line)
    assert not reader.outcome().ended


def test_a_tool_that_was_skipped_is_named():
    """PR-19: Vibe's recorded run was without its approval mode."""
    reader = VENDORS["mistral_vibe"].reader()
    for line in (RECORDED / "mistral_vibe.txt").read_text().split("\n"):
        reader.feed(line)
    assert reader.outcome().denied == ("file_system.bash",)
