"""Which changes a person's names mean (D-27)."""

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.sessions.wishes import named_changes

PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
NAMES = st.one_of(PATHS, PATHS.map(lambda path: path[1:] + "/"), st.sampled_from(["/", "", "/ab"]))


@given(st.lists(PATHS, unique=True), st.lists(NAMES))
def test_a_change_is_named_by_itself_or_by_what_it_lies_in(changed: list[str], named: list[str]) -> None:
    def means(name: str, path: str) -> bool:
        top = "/" + name.strip("/")
        return top in ("/", path) or path.startswith(f"{top}/")

    got = named_changes(changed, named)
    fitting = [path for path in changed if any(means(name, path) for name in named)]
    assert got[: len(fitting)] == fitting
    others = {"/" + name.strip("/") for name in got[len(fitting) :]}
    assert others == {
        "/" + name.strip("/") for name in named if not any(means(name, path) for path in changed)
    }


def test_without_names_all_are_meant() -> None:
    assert named_changes(["/a"], None) == ["/a"]
