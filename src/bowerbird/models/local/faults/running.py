"""Runs the tests of a project in Python; says of each that fails what it got, and which function it called.

Here: a program of its own, sent to the sandbox as text: it imports the standard library alone. Not here: when
it is run, and what follows (`checking.py`). Tests that want fixtures are left out.
"""

import ast
import importlib.util
import inspect
import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

MOST_CHARS = 300


def run(paths: Sequence[str]) -> None:
    """Print a line for each test that fails, for each file that cannot be run, and how many passed."""
    here = f"{Path.cwd()}{os.sep}"
    sys.dont_write_bytecode = True
    sys.path.insert(0, here)
    for name, module in list(sys.modules.items()):  # what an earlier run loaded may have changed since
        if str(getattr(module, "__file__", None) or "").startswith(here):
            del sys.modules[name]
    passed = sum(_run_file(path, here) for path in paths)
    _say("PASSED", passed)


def _say(what: str, fact: object) -> None:
    sys.stdout.write(f"{what} {json.dumps(fact)}\n")


def _run_file(path: str, here: str) -> int:
    whole = f"{here}{path}"
    try:
        tree = ast.parse(Path(whole).read_text(encoding="utf-8"))
        spec = importlib.util.spec_from_file_location("tests_that_run", whole)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001 - whatever a test raises is what is to be told
        _say("CANNOT", [path, repr(error)[:MOST_CHARS]])
        return 0
    passed = 0
    for name, test in list(vars(module).items()):
        if not name.startswith("test") or not inspect.isfunction(test) or inspect.signature(test).parameters:
            continue
        try:
            test()
            passed += 1
        except Exception as error:  # noqa: BLE001 - whatever a test raises is what is to be told
            said, places = _told(whole, here, tree, error)
            _say("FAILED", [f"{path}::{name}", said[:MOST_CHARS], places[:1]])
    return passed


def _told(path: str, here: str, tree: ast.Module, error: Exception) -> tuple[str, list[tuple[str, str]]]:
    """Return what the failing statement of a test gave, and the functions of the project that it calls."""
    frames = [f for f in traceback.walk_tb(error.__traceback__) if f[0].f_code.co_filename == path]
    if not frames:
        return repr(error), []
    frame, line = frames[-1]
    held = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0)]
    node = max(held, key=lambda n: n.lineno)
    names = {**frame.f_globals, **frame.f_locals}
    places = list(_places(node, names, here))
    if not isinstance(error, AssertionError) or not isinstance(node, ast.Assert):
        return f"{ast.unparse(node)} raises {type(error).__name__}: {error}", places
    test = node.test
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        got, wanted = (_value(side, frame) for side in (test.left, test.comparators[0]))
        return f"{ast.unparse(test.left)} is {got}, and must be {wanted}", places
    return f"{ast.unparse(test)} is not so", places


def _value(node: ast.expr, frame: FrameType) -> str:
    try:
        return repr(eval(compile(ast.Expression(node), "a test", "eval"), frame.f_globals, frame.f_locals))
    except Exception as error:  # noqa: BLE001 - whatever a test raises is what is to be told
        return repr(error)


def _places(node: ast.AST, names: Mapping[str, Any], here: str) -> Iterator[tuple[str, str]]:
    for call in ast.walk(node):
        made = (
            names.get(call.func.id)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
            else None
        )
        if inspect.isfunction(made) and made.__code__.co_filename.startswith(here):
            yield os.path.relpath(made.__code__.co_filename, here), made.__name__
