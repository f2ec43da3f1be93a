"""A text that is put together from pieces, whichever way they come (D-28)."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.core.pieces import Pieces


@given(text=st.text(max_size=40), draw=st.data())
def test_cut_repeated_late_and_early_pieces_give_the_same_text(text: str, draw: st.DataObject) -> None:
    spans = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    more = [tuple(sorted(span)) for span in draw.draw(st.lists(spans, max_size=6))]
    cuts = sorted({0, len(text), *draw.draw(st.lists(st.integers(0, len(text)), max_size=6))})
    pieces = [*pairwise(cuts), *more]
    found, gained = Pieces(), ""
    for begin, end in draw.draw(st.permutations(pieces)):
        gained += found.take(text[begin:end], begin)
        assert text.startswith(str(found)) and gained == str(found)
    assert str(found) == text and found.length == len(text)
