"""D-18: settings for what does not exist are refused, and every key that exists is read."""

import ast
import gc
from pathlib import Path

import pytest

import bowerbird
from bowerbird.config.absent import ABSENT
from bowerbird.config.keys import PREFIX, find, walk

SOURCE = Path(bowerbird.__file__).parent


@pytest.mark.parametrize("value", ["{enabled: true}", "{enabled: false}", "{zzz: {a: 1}}", "", "[1]", "off"])
@pytest.mark.parametrize("name", [name for name in ABSENT if "." not in name])
def test_a_section_of_a_later_version_is_refused_with_its_line(place, errors, name, value):
    """house F4: `channels.telegram.enabled: true` passed, and nobody ever answered."""
    found = errors(f"agent: {{max_turns: 7}}\n{name}: {value}")
    where = f"{place.directory}/config.yaml:2"
    assert found == (f"{name}: not in this version ({ABSENT[name]}); take it out; {where}",)


def test_a_variable_of_such_a_section_is_refused(errors):
    (one,) = errors(env={f"{PREFIX}ACP__TOKEN": "planted"})
    assert one.startswith("BOWERBIRD_ACP__TOKEN: not in this version (editors come later)")
    assert "planted" not in one
    (two,) = errors(env={f"{PREFIX}PROTOCOLS__OPENAI": "{}"})
    assert "not in this version" in two


def test_a_key_and_a_value_of_a_later_version_are_refused(errors):
    (said,) = errors("dispatch: {kind: dbos}")
    assert said.startswith("dispatch.kind: ") and "dbos is not in this version" in said


def test_nothing_absent_is_a_key():
    assert [
        name for name in ABSENT if find(tuple(name.split("."))) not in (None, find(("providers", "x")))
    ] == []


def test_every_key_is_read_outside_config():
    """house F4: 48 documented settings did nothing. Entries of `providers` are open by name."""
    # A finaliser that runs inside ast.parse makes CPython 3.11 raise SystemError (python/cpython#106905).
    gc.collect()
    gc.disable()
    try:
        read = _names_read()
    finally:
        gc.enable()
    unread = [
        info.name
        for info in walk()
        if info.path[:2] != ("providers", "*") and not {part for part in info.path if part != "*"} <= read
    ]
    assert unread == []


def _names_read() -> set[str]:
    read: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        if file.relative_to(SOURCE).parts[0] == "config":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                read.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                read.add(node.value)
    return read
