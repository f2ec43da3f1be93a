"""No SKILL.md, however it is made, does more than be refused with its reason (AS-44, AS-45)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.skills.skill import SkillProblem, parse_skill

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=40)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=8,
)  # fmt: skip
KEYS = st.sampled_from(
    ["name", "description", "requires_env", "requires_bridge", "metadata", "allowed-tools", "x"]
)
SIGNS = st.sampled_from(["---\n", "name: a\n", "description: b\n", "&a [*a, *a]\n", "!!python/name:os\n", "? {\n",
                         "<<: *a\n", "\t- x\n", "\x00", "\ufeff", "...\n", "a: |\n  b\n", "%YAML 9.9\n", "'", '"'])  # fmt: skip


@settings(max_examples=700, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.lists(st.one_of(SIGNS, st.text(max_size=10)), max_size=12).map("".join),
        st.dictionaries(KEYS, VALUES).map(
            lambda found: "\n".join(f"{key}: {value!r}" for key, value in found.items())
        ),
    )
)
def test_whatever_it_holds(content: bytes | str) -> None:
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    for whole in (data, b"---\n" + data + b"\n---\nbody\n"):
        try:
            skill = parse_skill(whole, None)
        except SkillProblem as error:
            assert str(error)
        else:
            assert 1 <= len(skill.description) <= 1024 and skill.name


def test_aliases_that_would_grow_without_end_are_refused() -> None:
    """Ten levels of ten: a billion, from a few hundred bytes."""
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    front = "\n".join(["name: a", "description: b", *lines]).encode()
    try:
        skill = parse_skill(b"---\n" + front + b"\n---\n", None)
    except SkillProblem:
        return
    assert skill.name == "a"
