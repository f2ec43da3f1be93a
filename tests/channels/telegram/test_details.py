"""What *Details* opens (AS-20)."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support import telegram_html

from bowerbird.channels.telegram.pieces import read_pieces
from bowerbird.channels.telegram.tool_lines import about, detail_pages, one_line, shortened
from bowerbird.core.events import AssistantStep, ToolIntent, ToolOutcome
from bowerbird.core.messages import Message, ThinkingBlock
from bowerbird.core.usage import Usage


def pages(*events: Any) -> list[str]:
    found: list[str] = []
    for page in detail_pages(events):
        (piece,) = read_pieces(page)
        found.append(telegram_html.read(piece.text).text)
        assert telegram_html.units(piece.text) <= 4096
    return found


def test_calls_with_their_inputs_and_results() -> None:
    """AS-20: at most 25 lines or 2,500 characters each."""
    result = "\n".join(f"line {n} <b>" for n in range(40))
    (page,) = pages(
        ToolIntent("1", "bash", {"command": "ls"}, "branch"), ToolOutcome("1", "bash", "error", result)
    )
    assert "🔧 bash\ncommand: ls" in page
    assert "✗ bash\nline 0 <b>" in page and "line 24 <b>" in page and "line 25" not in page
    assert "more characters" in page


def test_thinking_is_shorter() -> None:
    """AS-20: 15 lines or 1,500 characters."""
    thought = ThinkingBlock("deep " * 400 + "end")
    message = Message("assistant", (thought,))
    (page,) = pages(AssistantStep(message, "end_turn", "m", Usage()))
    assert page.startswith("💭 Thinking\ndeep") and "end" not in page and len(page) < 1_600


@given(st.lists(st.tuples(st.text(), st.text()), max_size=30))
def test_pages_are_few_and_valid(calls: list[tuple[str, str]]) -> None:
    """AS-20: whatever tools are given and say."""
    events: list[Any] = []
    for tool, said in calls:
        events += [
            ToolIntent("1", tool, {said: [said] * 300}, "read"),
            ToolOutcome("1", tool, "ok", said * 500),
        ]
    assert len(pages(*events)) <= 20


def test_inputs_are_shortened() -> None:
    """AS-20: basename for files, 60 of a pattern, else 70."""
    assert about({"text": "x", "path": "/a/b/c.py"}) == "c.py"
    assert len(about({"pattern": "x" * 99})) == 60
    assert len(about({"n": 1, "command": "y" * 99})) == 70
    assert about({}) == about({"n": 5}) == ""
    assert one_line("a\n b", 10) == "a b"
    assert shortened("abc", 5, 2) == "ab\n… 1 more characters"
