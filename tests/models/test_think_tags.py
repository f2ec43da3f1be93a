"""`<think>` at the start of a text, however it is cut (MO-24)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.models.providers.think_tags import ThinkTags


def divide(pieces: list[str]) -> tuple[str, str]:
    tags = ThinkTags()
    out = [piece for text in pieces for piece in tags.feed(text)] + tags.finish()
    return tuple("".join(p.text for p in out if p.kind == kind) for kind in ("thinking", "text"))


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<think>why</think>so", "why", "so"),
        ("\n <think>why</think>\n\nso", "why", "so"),
        ("so <think>no</think>", "", "so <think>no</think>"),
        ("<thinking>x", "", "<thinking>x"),
        ("<think>never closed", "never closed", ""),
        ("<think></think>so", "", "so"),
        ("<think>a</thin</think>b", "a</thin", "b"),
        ("", "", ""),
        ("<thi", "", "<thi"),
        ("<think>a</think>b</think>c", "a", "b</think>c"),
    ],
)
def test_tags_at_the_start_become_thinking(text, thinking, answer):
    assert divide([text]) == (thinking, answer)
    assert divide(list(text)) == (thinking, answer)


@given(st.text(alphabet="<>/thinkab \n", max_size=60), st.data())
def test_cutting_a_text_anywhere_changes_nothing(text, data):
    for whole in (text, f"<think>{text}", f"<think>x</think>{text}"):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        assert divide(pieces) == divide([whole])


@given(st.text(max_size=40).filter(lambda t: not t.lstrip().startswith("<")))
def test_a_text_without_tag_passes_unchanged(text):
    assert divide([text]) == ("", text)
