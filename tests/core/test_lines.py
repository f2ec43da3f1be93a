"""Lines found among lines: every place, and no other; the nearest where there is none."""

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.core.lines import nearest, places, unlike

LINES = st.lists(st.sampled_from(["a", "b", ""]), max_size=20)


@given(LINES, st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=4))
def test_lines_are_found_at_each_of_their_places(lines: list[str], wanted: list[str]) -> None:
    every = [at for at in range(len(lines)) if lines[at : at + len(wanted)] == wanted]
    assert places(lines, wanted) == every
    assert places(lines, wanted, 1) == every[:1]


@given(st.integers(0, 30), st.integers(1, 8), st.data())
def test_lines_of_which_one_differs_are_nearest_where_they_stand(
    at: int, count: int, data: st.DataObject
) -> None:
    lines = [f"line {number}" for number in range(40)]
    wanted = lines[at : at + count]
    differs = data.draw(st.integers(0, len(wanted) - 1))
    wanted[differs] = "zzzz"
    if count > 1:
        assert nearest(lines, wanted) == at
        assert unlike(lines, wanted).startswith(
            f"line {at + differs + 1} is not 'zzzz'. The nearest lines:\n"
        )
    else:
        assert nearest(lines, wanted) is None
