"""What agents answer, read: JSON, code blocks, fields, tidied text (PR-34 … PR-38)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.patience import patience

from bowerbird.core.errors import InvalidArgument
from bowerbird.providers.parsing import (
    between,
    clean_response,
    first_code_block,
    parse_code_blocks,
    parse_json,
    parse_json_all,
    parse_key_values,
    parse_structured_output,
    split_keep,
    xml_tag,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ODD = st.lists(
    st.sampled_from([*'{}[]",:\\ \n`~ae1-.<>/', "```json\n", '{"a":', "\\u00", "Sure. ", "NaN"]), max_size=60
).map("".join)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        pytest.param(' {"a": [1]} ', {"a": [1]}, id="whole"),
        pytest.param('{"x":0}\n```\n[1]\n```\n```json\n[2]\n```', [2], id="json-tagged-fence-first"),
        pytest.param('{"x":0}\n~~~py\n[1]\n~~~', [1], id="any-fence-before-prose"),
        pytest.param('It is {"a":1} and {"b":2}.', {"a": 1}, id="first-of-two"),
        pytest.param('cut: [{"a":1},{"b":2},{"c', {"a": 1}, id="first-complete-in-a-cut-list"),
        pytest.param('{"a {"b":1}', {"b": 1}, id="bracket-in-what-looked-like-text"),
        pytest.param("{x} [NaN] [Infinity] [1e999] [3]", [3], id="not-json"),
        pytest.param("42", 42, id="scalar"),
    ],
)
def test_json_is_found_by_the_order_of_attempts(text: str, data: object) -> None:
    """PR-34, acceptance 13."""
    found = parse_json(text)
    assert found and found.data == data and found.error is None and found.raw_text == text


@pytest.mark.parametrize(
    ("text", "strict", "data", "error"),
    [
        (" no ", False, "no", "No JSON found"),
        (" no ", True, None, "No valid JSON found"),
        (" \n", False, "", "Empty input"),
        ("", True, None, "Empty input"),
    ],
)
def test_text_without_json_says_so(text: str, strict: bool, data: object, error: str) -> None:
    """PR-34."""
    found = parse_json(text, strict)
    assert not found and (found.data, found.error) == (data, error)


def _first_by_trying(text: str) -> list[object]:
    """What the rule says, tried at every bracket."""
    decoder = json.JSONDecoder(parse_constant=lambda name: float(f"no {name}"))
    found: list[object] = []
    at = 0
    while at < len(text):
        if text[at] in "{[":
            try:
                value, at = decoder.raw_decode(text, at)
            except ValueError:
                at += 1
            else:
                found.append(value)
        else:
            at += 1
    return found


@given(st.lists(JSON.map(json.dumps) | ODD, max_size=6))
def test_values_in_prose_are_those_that_trying_everywhere_finds(parts: list[str]) -> None:
    """PR-34: one pass over the brackets finds what an attempt at each of them would."""
    text = "x " + " ".join(parts)
    assert parse_json_all(text) == _first_by_trying(text)


def test_fences_have_their_languages_and_lines() -> None:
    """PR-35, acceptance 13."""
    text = "a\n```c++ title\nint a;\n```\n~~~\n```\n~~~\n   ````PY\n   x\n     y\n```\n   `````\n```\nopen"
    blocks = [(b.language, b.code, b.start_line, b.end_line) for b in parse_code_blocks(text)]
    assert blocks == [
        ("c++", "int a;", 2, 4),
        ("text", "```", 5, 7),
        ("PY", "x\n  y\n```", 8, 12),
        ("text", "open", 13, 14),
    ]
    assert [b.code for b in parse_code_blocks(text, "py")] == ["x\n  y\n```"]
    first = first_code_block(text, "C++")
    assert first is not None and first.start_line == 2
    assert parse_code_blocks("```\n```")[0].code == "" and not parse_code_blocks("    ```\n``` a`b")


def test_a_search_without_end_is_given_up_and_its_neighbours_are_answered() -> None:
    """PR-36."""
    found = parse_structured_output(
        "a" * 40 + "b 7", {"bad": "(a+)+$", "n": r"b (\d)", "whole": "b .", "no": "z"}
    )
    assert found == {"bad": None, "n": "7", "whole": "b 7", "no": None}
    with pytest.raises(InvalidArgument, match="'f'"):
        parse_structured_output("x", {"f": "("})


def test_smaller_readers() -> None:
    """PR-36."""
    assert parse_key_values("a: 1\n url : http://x\nnone\n: 2\na: 3") == {"a": "3", "url": "http://x"}
    assert between("x<<y>>z", "<<", ">>") == "y" and between("x<<y", "<<", ">>") is None
    assert xml_tag("<ab>no</ab><a k='1'>x</a><a>y</a>", "a") == "x"
    assert xml_tag("<a>x</a><a>y</a><a>open", "a", all=True) == ["x", "y"]
    assert xml_tag("none", "a") is None
    assert split_keep("a->b-c", ["-", "->"]) == ["a", "->", "b", "-", "c"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Hereford cattle", "Hereford cattle"),
        ("Sure, that is 4.", "Sure, that is 4."),
        ("Sure!", "Sure!"),
        ("Certainly. Great question! 42", "42"),
        ("Sure! Here is the code:\n\n```\na\n\n\n\nb\n```\n\n\n\nEnd ", "```\na\n\n\n\nb\n```\n\nEnd"),
        ("Okay. a\n\n\n\nb", "a\n\nb"),
        ("Surely. x", "Surely. x"),
    ],
)
def test_only_whole_polite_sentences_go(text: str, clean: str) -> None:
    """PR-37."""
    assert clean_response(text) == clean


@given(st.text() | ODD)
def test_no_text_makes_them_fail(text: str) -> None:
    """PR-38."""
    parse_json(text, strict=True)
    assert all(block.start_line <= block.end_line for block in parse_code_blocks(text))
    parse_key_values(text)
    xml_tag(text, "a", all=True)
    between(text, "a", text[:3])
    assert "".join(split_keep(text, ["a", "`", text[:2]])) == text
    clean_response(text)


@pytest.mark.timeout(patience(20))
@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "{",
        '{"',
        '{"a":',
        '["[',
        "[1,",
        "[{},",
        "[[1],",
        "```\n",
        "~~~\n",
        "`",
        "\n \n",
        "<a>",
        "<a ",
        '"[\\"',
        "Sure. ",
    ],
)
def test_a_megabyte_takes_a_moment(piece: str) -> None:
    """PR-38: quadratic time would be minutes."""
    text = piece * (1_000_000 // len(piece))
    parse_json(text)
    parse_json_all(text)
    parse_code_blocks(text)
    clean_response(text)
    xml_tag(text, "a", all=True)
    split_keep(text, ["[", "a"])
