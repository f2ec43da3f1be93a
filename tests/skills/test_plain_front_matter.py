"""Front matter of plain lines is read without the YAML library, and says the same as with it."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from bowerbird.skills.skill import SkillProblem, front_fields

WORDS = st.text(st.sampled_from("abnoy:#'\"[]{},&*!|>%@`-_?~ 0e.=<\\\t"), max_size=12)
LINES = st.lists(st.tuples(WORDS | st.sampled_from(["name", "on", "true"]), WORDS), min_size=1, max_size=3)


@pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")
@given(LINES)
@example([("name", "true")])
@example([("null", "a")])
@example([("name", "a: b")])
@example([("name", "a #b")])
@example([("name", "a"), ("name", "b")])
@example([("[0,[]]", "")])
@example([("name", 'Use it for "sums", [averages] & more.')])
def test_a_line_means_what_yaml_says_it_means(lines: list[tuple[str, str]]) -> None:
    front = "".join(f"{key}: {text}\n" for key, text in lines).encode()
    reader: Any = YAML(typ="safe", pure=True)
    try:
        found = reader.load(front.decode())
        expected = {str(k): v for k, v in found.items()} if isinstance(found, dict) else None
    except (YAMLError, ValueError, TypeError):  # a list in a list is no key
        expected = None
    try:
        assert front_fields(front) == expected
    except SkillProblem:
        assert expected is None


def test_the_skills_that_are_shipped_need_no_yaml_library() -> None:
    """UI-51: its import took a twentieth of a one-turn run."""
    script = (
        "import sys; from bowerbird.skills.library import SkillLibrary\n"
        "assert [skill.name for skill in SkillLibrary(None).offered()], 'none found'\n"
        "assert 'ruamel.yaml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
