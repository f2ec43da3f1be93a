"""Damaged arguments are repaired as listed or refused, never invented (MO-25, MO-26, acceptance 5)."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.models.answers.repair import repair_arguments

FENCE, STRING, CONTROL = "code fence or whitespace", "string containing JSON", "control characters"
COMMA, PYTHON, EMPTY = "trailing commas", "Python literals", "empty arguments"

REPAIRED = [  # text, value, repairs
    ("", {}, [EMPTY]),
    (" \n\t", {}, [EMPTY]),
    ('{"a": 1}', {"a": 1}, []),
    ('  {"a": 1}\n', {"a": 1}, []),
    ('```json\n{"a": 1}\n```', {"a": 1}, [FENCE]),
    ('```\n{"a": 1}```', {"a": 1}, [FENCE]),
    ('\n\n```JSON\r\n{"a": 1}\r\n```  ', {"a": 1}, [FENCE]),
    ('\ufeff{"a": 1}', {"a": 1}, [FENCE]),
    ('\u00a0{"a": 1}\u00a0', {"a": 1}, [FENCE]),
    (json.dumps('{"a": 1}'), {"a": 1}, [STRING]),
    (json.dumps('{"a": True,}'), {"a": True}, [STRING, COMMA, PYTHON]),
    ('{"a": "x\ny"}', {"a": "x\ny"}, [CONTROL]),
    ('{"a": "x\ty\x01"}', {"a": "x\ty\x01"}, [CONTROL]),
    ('{"a": "\\"x\n\\""}', {"a": '"x\n"'}, [CONTROL]),
    ('{"a": 1,}', {"a": 1}, [COMMA]),
    ('{"a": [1, 2, ], }', {"a": [1, 2]}, [COMMA]),
    ('{"a": ["x",], "b": {"c": 1,},}', {"a": ["x"], "b": {"c": 1}}, [COMMA]),
    ('{"a": ", ]",}', {"a": ", ]"}, [COMMA]),
    ('{"a": True, "b": False, "c": None}', {"a": True, "b": False, "c": None}, [PYTHON]),
    ('{"a": [True, "True", None]}', {"a": [True, "True", None]}, [PYTHON]),
    (
        '```json\n{"a": "x\ny", "b": [None,],}\n```',
        {"a": "x\ny", "b": [None]},
        [FENCE, CONTROL, COMMA, PYTHON],
    ),
]
REFUSED = [  # text, line, column
    ('{"a": 1', 1, 8),
    ('{"a": "x', 1, 7),
    ('{"a": [1, 2}', 1, 12),
    ('{"a"}', 1, 5),
    ('{"a": }', 1, 7),
    ('{"a": 1}}', 1, 9),
    ('{"a": 1} and more', 1, 10),
    ("{'a': 1}", 1, 2),
    ("{a: 1}", 1, 2),
    ('{"a" 1}', 1, 6),
    ('{"a": 1 "b": 2}', 1, 9),
    ("{,}", 1, 2),
    ('{"a": [1,,]}', 1, 10),
    ('{"a": NaN}', 1, 7),
    ('{"a": tru}', 1, 7),
    ('{"a": "b\\\nc"}', 1, 9),
    ('{"a": "\\ud800"}', 1, 8),
    ('{\n  "a": 1,\n  "b": oops\n}', 3, 8),
    ('```json\n{"a": 1\n```', 1, 1),
]
NOT_OBJECTS = [("[1, 2]", [1, 2]), ("null", None), ('"just text"', "just text"), ("3", 3), ("true", True)]


def test_the_corpus_holds_at_least_forty_strings():
    assert len(REPAIRED) + len(REFUSED) + len(NOT_OBJECTS) >= 40


@pytest.mark.parametrize(("text", "value", "repairs"), REPAIRED)
def test_listed_damage_is_repaired_and_named(text, value, repairs):
    repaired = repair_arguments(text)
    assert (repaired.input, repaired.error) == (value, None)
    assert list(repaired.repairs) == repairs


@pytest.mark.parametrize(("text", "line", "column"), REFUSED)
def test_other_damage_is_refused_with_its_position(text, line, column):
    repaired = repair_arguments(text)
    assert repaired.input == {"raw_arguments": text}
    assert repaired.error is not None and repaired.error.endswith(f"at line {line}, column {column}")


@pytest.mark.parametrize(("text", "value"), NOT_OBJECTS)
def test_what_is_no_object_is_kept_and_not_run(text, value):
    repaired = repair_arguments(text)
    assert repaired.input == {"value": value} and "an object is needed" in (repaired.error or "")


def test_deep_nesting_and_huge_numbers_are_refused_without_a_crash():
    for text in ('{"a":' * 100_000, '{"a": ' + "9" * 100_000 + "}"):
        assert repair_arguments(text).error is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=6), JSON, max_size=4)


@given(OBJECTS)
def test_good_arguments_pass_unchanged(value):
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value, indent=2)):
        repaired = repair_arguments(text)
        assert (repaired.input, repaired.error) == (value, None) and not repaired.repairs


@given(OBJECTS)
def test_listed_damage_to_any_object_gives_that_object_back(value):
    text = json.dumps(value)
    for damaged in (f"```json\n{text}\n```", json.dumps(text), f"\ufeff{text}"):
        assert repair_arguments(damaged).input == value


@given(OBJECTS, st.data())
def test_a_text_cut_short_is_never_completed(value, data):
    """What is missing is not invented: no proper prefix of an object's text may run."""
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    repaired = repair_arguments(cut)
    assert repaired.error is not None and repaired.input == {"raw_arguments": cut}


def scalars(value: object) -> list[object]:
    if isinstance(value, dict):
        return [x for key, item in value.items() for x in (key, *scalars(item))]
    return [x for item in value for x in scalars(item)] if isinstance(value, list) else [value]


@given(st.text(alphabet='{}[]",:\\ntrueFalsNo01 \n`', max_size=40))
def test_whatever_runs_was_written_by_the_model(text):
    """Every word and number of an accepted value stands in the text."""
    repaired = repair_arguments(text)
    if repaired.error is None:
        plain = text.lower().replace("\\", "").replace("\n", "n")
        for scalar in scalars(repaired.input):
            word = (
                {True: "true", False: "false", None: "n"}.get(scalar, str(scalar))
                if not isinstance(scalar, str)
                else scalar
            )
            assert word.lower().replace("\\", "").replace("\n", "n") in plain


@pytest.mark.parametrize(
    "text", ['{"a": "' + '\\"' * 100_000, "```json\n" + " " * 200_000 + "x", '"' * 200_000]
)
def test_damaged_arguments_are_judged_in_one_pass(text: str) -> None:
    """Issue 10, blocker 6: what a model writes is read on the event loop; these took minutes."""
    began = time.process_time()
    assert repair_arguments(text).error is not None
    assert time.process_time() - began < 3.0
