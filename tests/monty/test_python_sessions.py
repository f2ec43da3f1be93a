"""Python in Monty: SB-43 … SB-48, SB-57, tools acceptance 10. Real workers, no mocks."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.patience import patience
from support.python_workers import workers

from bowerbird.sandbox import DumpFiles, PythonLimits, PythonSessions
from bowerbird.sandbox.python.engine import ENGINE_VERSION, MISSING, MODULES, available
from bowerbird.sandbox.python.sessions import pack, unpack

KEYS = ["ok", "stdout", "stderr", "result", "error", "line", "traceback", "truncated", "duration_ms", "state",
        "engine"]  # fmt: skip


@pytest.fixture
async def python() -> AsyncIterator[PythonSessions]:
    sessions = PythonSessions(PythonLimits(timeout_s=5))
    yield sessions
    await sessions.aclose()


async def test_the_record_has_its_keys_in_order(python: PythonSessions) -> None:
    """SB-43."""
    record = await python.run("b", "import sys\nprint('out')\nprint('err', file=sys.stderr)\n[1, 'a']")
    assert list(record.to_data()) == KEYS
    assert record.ok
    assert (record.stdout, record.stderr, record.result) == ("out\n", "err\n", "[1, 'a']")
    assert (record.error, record.line, record.traceback) == (None, None, None)
    assert (record.truncated, record.state, record.engine) == (False, "kept", "monty")


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("1 + 1", "2"), ("x = 1", None), ("None", None), ("print(1)", None), ("1, 2", "(1, 2)"),
        ("(1 +\n 2) # c", "3"), ("a = 1; a + 1;", "2"), ("'''x\ny'''", "'x\\ny'"), ("(y := 5)", "5"),
        ("repr = 3\nrepr", "3"), ("", None), ("# only a comment", None), ("if True:\n  5", None),
        ("é = 'ü'; é", "'ü'"), ("x = 2\r\nx\r\n", "2"), ("[i for i in range(3)]", "[0, 1, 2]"),
        ("class P:\n  def __repr__(self): return 'P!'\nP()", "P!"), ("f'{1}{\"a\"}'", "'1a'"),
        ("async def f(): return 4\nawait f()", "4"),
    ],
)  # fmt: skip
async def test_result_is_the_repr_of_the_last_expression(
    python: PythonSessions, code: str, result: str | None
) -> None:
    record = await python.run("b", code)
    assert record.error is None
    assert record.result == result


async def test_a_long_result_is_cut_at_2000_characters(python: PythonSessions) -> None:
    record = await python.run("b", "'x' * 10_000_000")
    assert record.result is not None
    assert len(record.result) == 2_000
    assert record.result.endswith("…")


async def test_names_persist_from_call_to_call_and_not_between_branches(python: PythonSessions) -> None:
    """SB-44."""
    await python.run("one", "x = 41\ndef f(): return x + 1")
    assert (await python.run("one", "f()")).result == "42"
    assert (await python.run("two", "x")).error == "NameError: name 'x' is not defined"


async def test_three_concurrent_calls_keep_all_their_variables_in_call_order(python: PythonSessions) -> None:
    """Acceptance 10 of the tools chapter, SB-44."""
    await python.run("b", "order = []")
    codes = [
        f"import asyncio\nawait asyncio.sleep({0.03 - n / 100})\nv{n} = {n}\norder.append({n})"
        for n in range(3)
    ]
    records = await asyncio.gather(*(python.run("b", code) for code in codes))
    assert all(r.ok for r in records)
    assert (await python.run("b", "(v0, v1, v2, order)")).result == "(0, 1, 2, [0, 1, 2])"


# ---------------------------------------------------------------- errors (SB-47)


async def test_an_error_tells_type_message_place_and_source(python: PythonSessions) -> None:
    record = await python.run("b", "def f(n):\n    return 10 / n\n\nprint('before')\nf(0)")
    assert not record.ok
    assert (record.error, record.line, record.stdout) == (
        "ZeroDivisionError: division by zero",
        2,
        "before\n",
    )
    assert record.traceback == (
        "Traceback (most recent call last):\n"
        "  line 5, column 1\n    f(0)\n    ^^^^\n"
        "  line 2, column 12, in f\n    return 10 / n\n           ^^^^^^\n"
        "ZeroDivisionError: division by zero"
    )


async def test_a_frame_of_an_earlier_snippet_is_called_so(python: PythonSessions) -> None:
    await python.run("b", "def f():\n    return [][1]")
    record = await python.run("b", "\n\nf()")
    assert record.line == 3
    assert record.traceback is not None
    assert "  earlier snippet, line 2, column 12, in f" in record.traceback


@pytest.mark.parametrize(
    ("code", "line", "told"),
    [
        ("x = 1\ndef (", 2, "SyntaxError"),
        ("x = (1,\n", 2, "SyntaxError"),
        ("y = 3; 1 +\\\n 'a'", 1, "line 1, column 8\n    y = 3; 1 +"),
        ("'a' * 3\n'b' +\\\n1", 2, "line 2, column 1"),
        ("nope", 1, "NameError: name 'nope' is not defined"),
        ("open('x.txt', encoding='latin-1')", 1, "utf-8 only"),
    ],
)
async def test_places_are_those_of_the_code_as_written(
    python: PythonSessions, code: str, line: int, told: str
) -> None:
    record = await python.run("b", code)
    assert record.line == line
    assert told in f"{record.traceback}"


async def test_an_error_keeps_the_variables(python: PythonSessions) -> None:
    await python.run("b", "x = 1")
    assert (await python.run("b", "x = 2\n1 / 0")).state == "kept"
    assert (await python.run("b", "x")).result == "2"


@pytest.mark.parametrize(("what", "code"), MISSING.items())
async def test_what_the_description_calls_missing_is_missing(
    python: PythonSessions, what: str, code: str
) -> None:
    """SB-47: the tool description is compared with the pinned version."""
    record = await python.run("b", code, _Opens())
    assert not record.ok, what
    assert record.error is not None
    assert "monty" not in record.error
    lacking = (
        "this interpreter does not support",
        "this interpreter has its own modules only",
        "'file' argument",
    )
    assert any(text in record.error for text in lacking)


class _Opens:
    """File calls that open anything and hold nothing."""

    async def call(self, name: str, args: tuple[Any, ...], kwargs: Any) -> object:
        from bowerbird.sandbox.python.monty import OpenedFile

        return OpenedFile(str(args[0]), str(args[1])) if name == "open" else None

    async def flush(self) -> None:
        return


async def test_the_modules_listed_are_those_present(python: PythonSessions) -> None:
    """SB-47."""
    import sys

    import pydantic_monty

    assert pydantic_monty.__version__ == ENGINE_VERSION
    assert available() is None
    names = sorted(n for n in sys.stdlib_module_names if not n.startswith("_"))
    checks = "".join(f"try:\n  import {n}\n  found.append('{n}')\nexcept ImportError: pass\n" for n in names)
    record = await python.run("b", f"found = []\n{checks}\n','.join(found)")
    assert record.result == repr(",".join(MODULES))


# ---------------------------------------------------------------- functions (SB-46)


async def test_functions_of_the_caller_can_be_awaited_together_and_raise_python_errors() -> None:
    """SB-46."""

    class Odd(Exception):
        pass

    async def fetch(n: int, *, more: bool = False) -> Any:
        await asyncio.sleep(0.02)
        if n == 0:
            raise KeyError("zero")
        if n == 1:
            raise Odd("strange")
        return object() if n == 2 else {"n": n, "more": more}

    sessions = PythonSessions(functions={"fetch": fetch})

    async def shown(code: str) -> str | None:
        record = await sessions.run("b", code)
        return record.result or record.error

    assert await shown("await fetch(5, more=True)") == "{'n': 5, 'more': True}"
    started = time.monotonic()
    assert await shown("import asyncio\nlen(await asyncio.gather(*[fetch(n) for n in range(3, 23)]))") == "20"
    assert time.monotonic() - started < patience(0.3)
    assert await shown("try:\n  await fetch(0)\nexcept KeyError as e:\n  r = e.args\nr") == "('zero',)"
    assert await shown("await fetch(1)") == "RuntimeError: Odd: strange"
    assert await shown("await fetch(2)") == "TypeError: fetch returned a object, which cannot be passed on"
    await sessions.aclose()


@pytest.mark.parametrize(
    "code",
    ["import os\nos.environ", "import os\nos.getenv('HOME')", "import os\nos.system('id')", "import socket",
     "import subprocess", "import ctypes", "__import__('os').system", "open('/etc/passwd').read()",
     "().__class__.__base__.__subclasses__()", "import os\nos.listdir('/')"],
)  # fmt: skip
async def test_there_is_no_environment_network_process_or_host(python: PythonSessions, code: str) -> None:
    """SB-46: a run without a branch reaches nothing at all."""
    record = await python.run("b", code)
    assert not record.ok, record.result


# ---------------------------------------------------------------- dumps and forks (SB-44)


async def test_a_session_survives_a_restart_after_its_turn_ended(tmp_path: Path) -> None:
    dumps = DumpFiles(tmp_path / "python")
    first = PythonSessions(dumps=dumps)
    await first.run("b", "x = [1, 2]\ndef f(): return sum(x)")
    await first.end_turn("b")
    assert workers() == []  # between turns no worker waits
    assert (await first.run("b", "f()")).result == "3"
    await first.end_turn("b")
    await first.aclose()
    second = PythonSessions(dumps=dumps)
    record = await second.run("b", "f()")
    await second.aclose()
    assert (record.result, record.state) == ("3", "kept")
    assert (tmp_path / "python").stat().st_mode & 0o777 == 0o700


async def test_a_session_that_was_not_saved_is_reported_lost_after_a_restart(tmp_path: Path) -> None:
    dumps = DumpFiles(tmp_path)
    first = PythonSessions(dumps=dumps)
    await first.run("b", "x = 1")
    await first.end_turn("b")
    await first.run("b", "x = 2")  # and the process dies within this turn
    await first.aclose()
    second = PythonSessions(dumps=dumps)
    record = await second.run("b", "1")
    again = await second.run("b", "1")
    await second.aclose()
    assert (record.state, again.state) == ("lost", "kept")


async def test_a_dump_over_the_limit_stays_in_this_process_only(tmp_path: Path) -> None:
    dumps = DumpFiles(tmp_path)
    first = PythonSessions(PythonLimits(dump_bytes=100_000), dumps=dumps)
    await first.run("b", "x = 'a' * 200_000")
    await first.end_turn("b")
    assert (await first.run("b", "len(x)")).result == "200000"
    await first.aclose()
    second = PythonSessions(dumps=dumps)
    assert (await second.run("b", "1")).state == "lost"
    await second.aclose()


async def test_after_a_rollback_the_next_call_says_lost(python: PythonSessions) -> None:
    await python.run("b", "x = 1")
    await python.rolled_back("b")
    record = await python.run("b", "x")
    assert (record.error, record.state) == ("NameError: name 'x' is not defined", "lost")


async def test_a_fork_copies_the_names_only_when_asked(python: PythonSessions) -> None:
    """SB-44, WS-40."""
    await python.run("parent", "x = [1]")
    await python.fork("parent", "copy", copy=True)
    await python.fork("parent", "empty")
    await python.run("parent", "x.append(2)")
    assert (await python.run("copy", "x")).result == "[1]"
    assert (await python.run("empty", "x")).error == "NameError: name 'x' is not defined"
    await python.end_turn("parent")
    await python.fork("parent", "later", copy=True)
    assert (await python.run("later", "x")).result == "[1, 2]"
    assert (await python.run("parent", "x")).result == "[1, 2]"


@pytest.mark.parametrize("stored", [b"", b"garbage", pack(b""), pack(b"dump")[:-1], pack(b"dump") + b"x"])
def test_torn_or_foreign_dumps_are_not_loaded(stored: bytes) -> None:
    assert unpack(stored) is None
    assert unpack(pack(b"dump")) == b"dump"
    assert unpack(pack(b"dump").replace(ENGINE_VERSION.encode(), b"0.0.1")) is None


async def test_a_dump_that_does_not_load_says_lost_and_starts_empty(tmp_path: Path) -> None:
    dumps = DumpFiles(tmp_path)
    await dumps.save("b", pack(b"not a dump of the interpreter"))
    sessions = PythonSessions(dumps=dumps)
    record = await sessions.run("b", "1 + 1")
    await sessions.aclose()
    assert (record.result, record.state) == ("2", "lost")
