"""Random Markdown: what opens and closes things, in any order, and any text."""

from hypothesis import strategies as st

PIECES = [
    "**", "*", "__", "~~", "`", "```", "```py\n", "\n", "\n\n", "||", "|", "|--|:-:|\n", "# ", "- ", "1. ", "> ",
    "[", "](http://a.b/c?d=1&e=2)", "](javascript:x)", "<b>", "</b>", "&amp;", "&", "<", ">", "\\", "    ", "a", "b c",
    "word ", "😀", "日本", "![x](", ")", "---\n", "\x00", "\ud800", "\u202e", "http://x.y", "_", "\r\n", "\t",
]  # fmt: skip
MARKDOWN = st.one_of(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.text(max_size=300))
