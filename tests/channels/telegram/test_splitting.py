"""Long answers are cut so that every part is valid by itself and nothing is lost (AS-17)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import telegram_html
from support.markdown import MARKDOWN

from bowerbird.channels.telegram.formatting import markdown_runs
from bowerbird.channels.telegram.markup import Run
from bowerbird.channels.telegram.splitting import LIMIT, first_part, split_markdown, split_runs


def joined(parts: list[str]) -> str:
    """What parts show, each read by itself and within the limits."""
    text = ""
    for part in parts:
        shown = telegram_html.read(part)
        assert telegram_html.units(part) <= LIMIT
        assert len(shown.entities) <= 100
        assert shown.text.strip()
        text += shown.text
    return text


def test_a_code_block_of_10_kb_is_whole_again_when_joined() -> None:
    """AS-17, acceptance 3: `<`, `&` and emoji in a code block."""
    line = "if a < b && c > d: print('😀')\n"
    source = line * (10_000 // len(line) + 1)
    parts = split_markdown(f"```py\n{source}```")
    assert parts is not None and len(parts) > 2
    assert joined(parts) == source.removesuffix("\n")
    assert all(part.startswith('<pre><code class="language-py">if') for part in parts)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        pytest.param(("a" * 30 + "\n\n" + "b c\n" * 10 + "\n") * 100, "\n\n", id="paragraph"),
        pytest.param("```\n" + ("a b\n" * 3_000) + "```", "\n", id="line"),
        pytest.param("```\n" + "ab " * 3_000 + "```", " ", id="space"),
        pytest.param("```\n" + "a" * 9_000 + "```", "a", id="character"),
        pytest.param("```\n" + "😀" * 9_000 + "```", "😀", id="pair"),
        pytest.param("```\n" + "&" * 9_000 + "```", "&", id="entity"),
    ],
)
def test_a_part_ends_at_the_best_place(text: str, first: str) -> None:
    """AS-17: paragraph, line, space, character."""
    parts = split_runs(markdown_runs(text), 100)
    shown = telegram_html.read(parts[0])
    assert shown.text.endswith(first)
    assert len(parts[0]) > 1_000
    joined(parts)


@given(MARKDOWN, st.integers(60, 200))
def test_nothing_is_lost_and_every_part_is_valid(markdown: str, limit: int) -> None:
    """AS-17: random Markdown, cut into small parts; only parts of blanks are left out."""
    runs = [run for run in markdown_runs(markdown) if not any(tag.startswith("a ") for tag in run.tags)]
    parts = split_runs(runs, 10**6, limit)
    text = ""
    for part in parts:
        assert telegram_html.units(part) <= limit
        text += telegram_html.read(part).text
    whole = "".join(run.text for run in runs)
    assert _dense(text) == _dense(whole)


@given(st.lists(st.tuples(st.text("a \n", max_size=9), st.sampled_from([(), ("b",), ("b", "i"), ("code",)]))))
def test_no_part_has_more_than_100_entities(pieces: list[tuple[str, tuple[str, ...]]]) -> None:
    """AS-17: entities are counted, too."""
    runs = [Run(text, tags) for text, tags in pieces if text] * 40
    assert _dense(joined(split_runs(runs, 10**6))) == _dense("".join(run.text for run in runs))


def test_more_than_ten_parts_are_a_file() -> None:
    """AS-17: the first part is sent, the rest is in `answer.md`."""
    paragraph = "word " * 700 + "\n\n"
    ten = split_markdown(paragraph * 10)
    assert ten is not None and len(ten) == 10
    assert split_markdown(paragraph * 11) is None
    assert split_markdown("x" * 10**7) is None
    assert joined([first_part(paragraph * 10_000)]).startswith("word word")


@pytest.mark.parametrize("text", ["", " \n\n", "\x00"])
def test_what_shows_nothing_has_no_parts(text: str) -> None:
    """AS-17: Telegram refuses an empty message."""
    assert split_markdown(text) == []


def test_rare_places_cost_in_proportion_to_the_length() -> None:
    """AS-17: cutting looks at each character a bounded number of times, also with runs of one character."""
    text = "".join(f"**{n % 10}** `a`\n" for n in range(4_000))
    runs = markdown_runs(text)
    parts = split_runs(runs, 10**6)
    assert _dense(joined(parts)) == _dense("".join(run.text for run in runs))


def _dense(text: str) -> str:
    return "".join(text.split())
