"""Sequences and sets that share their beginnings behave as tuples and frozensets do, and share (issue 10, 6)."""

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.core.growing import FEW_NAMES, PIECE, Growing, Names

NUMBERS = st.lists(st.integers(0, 9), max_size=3 * PIECE)
PLACES = st.integers(-4 * PIECE, 4 * PIECE)


@given(NUMBERS, NUMBERS, st.data())
def test_a_growing_sequence_is_what_a_tuple_would_be(
    some: list[int], more: list[int], data: st.DataObject
) -> None:
    held, plain = Growing.of(some).plus(more), (*some, *more)
    end = data.draw(st.integers(0, len(plain)))
    held, plain = held.upto(end).plus(more), plain[:end] + tuple(more)
    if plain:
        at = data.draw(st.integers(0, len(plain) - 1))
        held, plain = held.replaced(at, -1), (*plain[:at], -1, *plain[at + 1 :])
        assert held[at] == held[at - len(plain)] == -1
    assert held == plain
    assert plain == held
    assert (hash(held), len(held), bool(held)) == (hash(plain), len(plain), bool(plain))
    assert (list(held), list(reversed(held))) == (list(plain), list(reversed(plain)))
    assert held != (*plain, 1)


@given(NUMBERS, PLACES | st.none(), PLACES | st.none(), st.sampled_from([None, 1, 2, -1]))
def test_parts_of_it_are_those_of_a_tuple(
    some: list[int], start: int | None, stop: int | None, step: int | None
) -> None:
    held, plain = Growing.of(some), tuple(some)
    assert held[start:stop:step] == plain[start:stop:step]
    for at in {start or 0, stop or 0}:
        try:
            wanted = plain[at]
        except IndexError:
            try:
                held[at]
            except IndexError:
                continue
            raise AssertionError(f"index {at} of {len(plain)} was found") from None
        assert held[at] == wanted


def test_a_longer_one_shares_its_pieces_with_the_shorter() -> None:
    short = Growing.of(range(10_000))
    long = short.plus([1]).replaced(9_000, 1)
    assert Growing.of(short) is short
    assert all(long[at : at + PIECE] is short[at : at + PIECE] for at in range(0, 8_900, PIECE))
    assert long[9_000] == 1
    assert short[9_000] == 9_000


@given(st.lists(st.lists(st.integers(0, 999).map(str), max_size=2 * FEW_NAMES), max_size=4))
def test_a_set_of_names_is_what_a_frozenset_would_be(groups: list[list[str]]) -> None:
    held, plain = Names(), frozenset[str]()
    for group in groups:
        held, plain = held.plus(iter(group)), plain.union(group)
        assert held == plain
        assert plain == held
        assert (len(held), hash(held), sorted(held)) == (len(plain), hash(plain), sorted(plain))
        assert all(name in held for name in group)
    assert "x" not in held
    assert Names.of(held) is held
