"""CF-10: names that are not read are always reported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.config.keys import STRICT_SECTIONS, distance, nearest


def test_a_typo_in_a_section_that_opens_a_door_is_an_error(place, errors):
    """Acceptance 2."""
    found = errors("server: {auth: token, alowed_emails: ['a@b']}")
    where = f"{place.directory}/config.yaml:1"
    assert found == (f"server.alowed_emails: unknown key (did you mean allowed_emails?); {where}",)


def test_a_typo_elsewhere_is_a_warning_and_the_load_succeeds(place):
    """Acceptance 2."""
    (warning,) = place.load("agent: {max_turn: 3}").warnings
    assert warning.startswith("agent.max_turn: unknown key (did you mean max_turns?)")


@pytest.mark.parametrize("section", sorted(STRICT_SECTIONS - {"providers", "mcp_servers"}))
def test_strict_sections(errors, section):
    assert any("unknown key" in e for e in errors(f"{section}: {{zzz: 1}}"))


@pytest.mark.parametrize("text", ["providers: {openai: {zzz: 1}}", "mcp_servers: {a: {command: x, zzz: 1}}"])
def test_strict_entries(errors, text):
    assert any("unknown key" in e for e in errors(text))


def test_a_misspelt_strict_section_is_an_error_too(place, errors):
    assert "did you mean sandbox?" in errors("sandbx: {minimum: overlay}")[0]
    assert "unknown key" in place.load("nonsense: 1").warnings[0]


def test_the_same_word_and_a_key_of_another_section_are_suggested(place):
    warnings = place.load("agent: {maxTurns: 3}\nmemory: {bash_timeout: 3}").warnings
    assert "did you mean max_turns?" in warnings[0]
    assert "did you mean tools.bash_timeout?" in warnings[1]


def test_unknown_variables_of_ours_warn_and_the_four_known_do_not(place):
    env = dict.fromkeys(("BOWERBIRD_URL", "BOWERBIRD_TOKEN", "BOWERBIRD_DEBUG"), "x")
    assert place.load(env=env).warnings == ()
    (warning,) = place.load(env={"BOWERBIRD_AGENT__MAX_TURN": "3"}).warnings
    assert "did you mean BOWERBIRD_AGENT__MAX_TURNS?" in warning


def test_near_names_in_dotenv_warn_but_not_in_the_environment(place):
    place.write(".env", "MODLE=x\nUNRELATED_NAME=1\n")
    (warning,) = place.load("").warnings
    assert "MODLE is not read (did you mean MODEL?)" in warning and ".env:1" in warning
    assert place.load(kind="cli", env={"MODLE": "x"}).warnings == ()


def test_two_names_of_one_key_must_agree(place, errors):
    """CF-51."""
    assert place.load("agent: {max_tool_iterations: 7}").settings.agent.max_turns == 7
    assert place.load("agent: {max_tool_iterations: 7, max_turns: 7}").settings.agent.max_turns == 7
    assert "set twice with different values" in errors("agent: {max_tool_iterations: 7, max_turns: 8}")[0]


def _slow_distance(a, b):
    table = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i, j] = min(
                table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            )
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(a), len(b)]


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_distance_is_the_edit_distance_up_to_its_limit(a, b):
    assert distance(a, b) == min(_slow_distance(a, b), 3)


def test_nothing_near_is_no_suggestion():
    assert nearest("zzzzzz", ["max_turns"]) is None
    assert nearest("x", []) is None
