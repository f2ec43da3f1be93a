"""Packages whose names are imported when they are first used (issue 11, step 1: one helper for all of them)."""

import ast
import json
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent.parent / "src"
FACES = {
    ".".join(file.parent.relative_to(SOURCE).parts): file
    for file in sorted(SOURCE.glob("bowerbird/**/__init__.py"))
    if "lazy(" in file.read_text()
}
LOADED = """
import json, sys
import {package}
print(json.dumps([name for name in sys.modules if name.split(".")[0] == "bowerbird"]))
"""


def shown_to_checkers(file: Path) -> dict[str, str]:
    """The names that the block for type checkers imports, and from where."""
    [block] = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {name.asname or name.name: str(node.module) for node in imports for name in node.names}


def test_there_are_faces_to_hold() -> None:
    assert {"bowerbird", "bowerbird.sessions", "bowerbird.models", "bowerbird.workspace"} <= set(FACES)


@pytest.mark.parametrize("package", FACES)
def test_a_face_says_the_same_to_checkers_and_to_programs(package: str) -> None:
    """Its three lists agree, and a name is the one that its module has."""
    face = import_module(package)
    shown = shown_to_checkers(FACES[package])
    assert sorted(face.__all__) == dir(face)
    assert set(shown) | {"__version__"} == set(face.__all__) | {"__version__"}
    for name, module in shown.items():
        at_home = getattr(import_module(module), name, sys.modules.get(f"{module}.{name}"))
        assert getattr(face, name) is at_home
    with pytest.raises(AttributeError, match=f"'{package}' has no attribute 'nobody'"):
        _ = face.nobody


@pytest.mark.parametrize("package", FACES)
def test_importing_a_face_loads_nothing_that_is_behind_it(package: str) -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED.format(package=package)], capture_output=True, check=True, text=True
    ).stdout  # fmt: skip
    above = {package.rsplit(".", level)[0] for level in range(package.count(".") + 1)}
    assert set(json.loads(loaded)) == above | {"bowerbird", "bowerbird.core", "bowerbird.core.lazy"}


def test_what_comes_from_a_face_can_be_pickled() -> None:
    import bowerbird

    usage = bowerbird.Usage(input_tokens=3)
    assert pickle.loads(pickle.dumps(usage)) == usage
    assert pickle.loads(pickle.dumps(bowerbird.BranchBusy)) is bowerbird.BranchBusy
