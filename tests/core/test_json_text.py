"""JSON out of whatever text comes: bytes of file names, halves of characters."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from bowerbird.core.json_text import json_text, whole_escapes

ANY = st.text(alphabet=st.characters(exclude_categories=()), max_size=12)


@given(ANY)
@example("\ud800 \udcff \udfff")
def test_any_text_becomes_json(text: str) -> None:
    """Law 7: half of a character, which is no byte of a file name either, ended whoever wrote it down."""
    read = json.loads(json_text({"text": text}))["text"]
    assert read == text or any("\ud800" <= each <= "\udfff" for each in text)


@given(ANY)
def test_halves_that_escapes_name_are_made_whole_and_all_else_stays(text: str) -> None:
    """PT-16, PR-26: against what Python makes of the same escapes."""
    escaped = json.dumps(text)
    halves = json.loads(escaped)  # a pair of escapes is one character
    made = "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in halves)
    assert json.loads(whole_escapes(escaped)) == made
