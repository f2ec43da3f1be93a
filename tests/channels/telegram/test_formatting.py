"""Markdown becomes what Telegram can show, and nothing of it is lost (AS-16)."""

import pytest
from hypothesis import given
from support import telegram_html
from support.markdown import MARKDOWN

from bowerbird.channels.telegram.formatting import format_markdown
from bowerbird.channels.telegram.markup import to_text


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("**a** *b* ~~c~~ `d<`", "<b>a</b> <i>b</i> <s>c</s> <code>d&lt;</code>"),
        ("***a***", "<b><i>a</i></b>"),
        ("# Head **x**", "<b>Head x</b>"),
        ("||secret|| a || b", "<tg-spoiler>secret</tg-spoiler> a || b"),
        ("if (a || b || c)", "if (a || b || c)"),
        ("`||x||` \\||x||", "<code>||x||</code> ||x||"),
        ("**a ||b** c||", "<b>a <tg-spoiler>b</tg-spoiler></b><tg-spoiler> c</tg-spoiler>"),
        ("```py\nx < 1\n```", '<pre><code class="language-py">x &lt; 1</code></pre>'),
        ("```\nopen", "<pre>open</pre>"),
        ("```py\"onclick=x\nx\n```", '<pre><code class="language-py">x</code></pre>'),
        ("- a\n- b\n  - c\n    1. d", "• a\n• b\n  ◦ c\n    1. d"),
        ("3. a\n4. b\n\n   c", "3. a\n4. b\n\n   c"),
        ("- - a", "• ◦ a"),
        ("> a\n> > b\n\nc", "<blockquote>a\n\nb</blockquote>\n\nc"),
        ("a\n\n---\nb", "a\n\n──────────\n\nb"),
        ("a\nb  \nc", "a\nb\nc"),
        ("[a](https://x.y/?p=1&q=<2>)", '<a href="https://x.y/?p=1&amp;q=%3C2%3E">a</a>'),
        ("[a](tg://user?id=1) [m](mailto:a@b.c)", '<a href="tg://user?id=1">a</a> <a href="mailto:a@b.c">m</a>'),
        ("[a](javascript:alert)", "[a](javascript:alert)"),
        ("[a](ftp://x) [src/a.py](src/a.py)", "a (ftp://x) src/a.py"),
        ("[](http://a.b)", "http://a.b"),
        ("[`a`](http://a.b)", '<a href="http://a.b">a</a>'),
        ("![pic](https://x.y/z.png)", '<a href="https://x.y/z.png">pic</a>'),
        ("<b>x</b> <!-- c --> &lt; &", "&lt;b&gt;x&lt;/b&gt; &lt;!-- c --&gt; &lt; &amp;"),
        ("[1]: http://a.b", "[1]: http://a.b"),
        ("| a | n |\n|:-:|--:|\n| 日本語 | **1** |\n| x |", "<pre>  a    | n\n-------+--\n日本語 | 1\n  x    |</pre>"),
        ("- | a |\n  |---|\n  | b |", "• \n<pre>a\n-\nb</pre>"),
        ("```\n```", "```\n```"),
        ("", ""),
    ],
)  # fmt: skip
def test_markdown_is_shown_as_telegram_can(markdown: str, shown: str) -> None:
    """AS-16."""
    assert format_markdown(markdown) == shown
    telegram_html.read(shown)


@given(MARKDOWN)
def test_any_text_becomes_valid_html_that_shows_all_its_letters(markdown: str) -> None:
    """AS-16: random Markdown, by a strict reader of Telegram's HTML."""
    source = format_markdown(markdown)
    shown = telegram_html.read(source)
    assert to_text(source) == shown.text
    if "](" not in markdown and "&" not in markdown and "```" not in markdown and "~~~" not in markdown:
        assert _letters(markdown) == _letters(shown.text)


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isalpha())


@pytest.mark.parametrize("block", ["> ", "- "])
def test_what_is_nested_too_deeply_is_shown_as_it_stands(block: str) -> None:
    """AS-16: the parser's limit loses nothing."""
    assert "end" in telegram_html.read(format_markdown(block * 70 + "end")).text
    assert "end" in telegram_html.read(format_markdown(block * 20 + "end")).text


def test_one_wide_cell_does_not_widen_a_thousand_rows() -> None:
    """AS-16: the text of a table stays in proportion to what was written."""
    rows = "\n".join(["| a | b |"] * 1_000)
    markdown = f"| {'x' * 5_000} | b |\n|---|---|\n{rows}"
    assert len(format_markdown(markdown)) < 100_000


def test_an_address_too_long_for_a_message_is_text() -> None:
    """AS-16, AS-17: it can then be cut."""
    source = format_markdown(f"[a](http://{'x' * 3_000})")
    assert "<a" not in source and "x" * 3_000 in source
