"""SB-49: where Monty is missing, its two tools run in one sandboxed CPython per branch."""

import asyncio
import json
import time

import pytest
from support.patience import patience
from support.sandboxes import bench_of

from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.tools import ToolContext, Toolset
from bowerbird.tools.processes import family
from bowerbird.tools.processes import python_tools as python_module
from bowerbird.tools.processes.family import processes_of
from bowerbird.tools.processes.process_tools import ProcessSettings


async def test_names_persist_and_the_record_is_that_of_the_tools(tmp_path):
    async with bench_of(tmp_path, {"lib.py": "def twice(x):\n    return 2 * x\n"}) as bench:
        python = bench.sandbox.python
        first = await python.run("import lib\nx = lib.twice(10)\nprint('hello')\nx + 1")
        assert list(first.to_data()) == [
            "ok", "stdout", "stderr", "result", "error", "line", "traceback", "truncated", "duration_ms",
            "state", "engine",
        ]  # fmt: skip
        assert (first.ok, first.stdout, first.result, first.engine) == (True, "hello\n", "21", "cpython")
        assert (await python.run("x")).result == "20"
        failed = await python.run("y = 1\nx / 0")
        assert (failed.ok, failed.error, failed.line) == (False, "ZeroDivisionError: division by zero", 2)
        assert (
            failed.traceback is not None and "x / 0" in failed.traceback and "session" not in failed.traceback
        )
        assert (await python.run("y")).result == "1" and failed.state == "kept"
        assert (await python.run("def f(:")).line == 1
        assert (await python.run("'a' * 5000")).result.endswith("…")
        await python.close()


async def test_output_of_children_counts_and_is_bounded(tmp_path):
    async with bench_of(tmp_path) as bench:
        python = bench.sandbox.python
        code = "import subprocess\nsubprocess.run(['seq', '1', '50000'])\nNone"
        ran = await python.run(code, output_bytes=1000)
        assert ran.truncated and len((ran.stdout + ran.stderr).encode()) <= 1000
        assert ran.stdout.startswith("1\n2\n") and ran.stdout.endswith("50000\n")
        quiet = await python.run("import sys\nprint('e', file=sys.stderr)")
        assert (quiet.stdout, quiet.stderr, quiet.truncated) == ("", "e\n", False)
        await python.close()


async def test_files_a_snippet_writes_are_the_branch_s_after_each_call(tmp_path):
    async with bench_of(tmp_path) as bench:
        await bench.sandbox.python.run("open('a', 'w').write('1')", turn="t", call="c1")
        assert await bench.branch.read_bytes("a") == b"1"
        assert [(r["path"], r["call"], r["via"]) for r in bench.branch.journal()] == [("/a", "c1", "process")]
        assert (await bench.sandbox.run("cat a")).output == "1"
        await bench.branch.write_file("a", "2")
        assert (await bench.sandbox.python.run("open('a').read()")).result == "'2'"
        await bench.host.turn_ended(bench.branch.id)
        assert bench.branch.process_mark() is not None, "it does not hold the branch beyond the turn"
        assert (await bench.sandbox.python.run("1")).state == "lost"


async def test_a_timeout_and_a_death_lose_the_names_and_say_so(tmp_path):
    async with bench_of(tmp_path) as bench:
        python = bench.sandbox.python
        await python.run("x = 1")
        late = await python.run("open('kept', 'w').close()\nwhile True: pass", timeout_s=0.3)
        assert not late.ok and late.state == "lost" and "TimeoutError" in (late.error or "")
        assert await bench.branch.stat("kept") is not None
        after = await python.run("x")
        assert after.error == "NameError: name 'x' is not defined" and after.state == "lost"
        died = await python.run("import os\nos._exit(3)")
        assert not died.ok and "died" in (died.error or "") and (await python.run("2")).result == "2"
        await python.close()


async def test_a_cancelled_snippet_is_killed_at_once(tmp_path):
    async with bench_of(tmp_path) as bench:
        task = asyncio.create_task(bench.sandbox.python.run("open('up', 'w').close()\nwhile True: pass"))
        await bench.shows("up")
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < patience(2)
        assert not bench.sandbox.busy


async def test_without_monty_the_tools_run_here_and_without_both_they_are_absent_with_the_reasons(
    tmp_path, monkeypatch
):
    """Acceptance 13, 15."""
    for module in (python_module, family):
        monkeypatch.setattr(module, "python_unavailable", lambda: "Monty has no wheel for this host")
    async with bench_of(tmp_path, {"s.py": "z = x + 1\n"}) as bench:
        tools = Toolset((await processes_of(bench.host, ProcessSettings(), bench.branch)).tools)
        assert {"run_python_code", "run_python_file"} <= set(tools.names)

        async def use(name, **arguments):
            tool = tools.get(name)
            assert tool is not None
            return await tool.call(arguments, ToolContext(branch=bench.branch.bound("t", "c"), call="c"))

        await asyncio.gather(*(use("run_python_code", code=f"{n} = '{n}'") for n in "abc"))
        assert (await use("run_python_code", code="a + b + c")).text == "Result: 'abc'"
        await use("run_python_code", code="x = 1")
        await use("run_python_file", path="s.py")
        done = await use("run_python_code", code="z")
        assert done.data is not None and (done.data["result"], done.data["engine"]) == ("2", "cpython")
        none = SandboxHost(tmp_path / "data", SandboxSettings(tier="none"))
        absent = (await processes_of(none, ProcessSettings(), bench.branch)).absent
        await none.close()
        assert "no wheel" in absent["run_python_code"] and "sandbox.minimum" in absent["run_python_code"]


_FORGE = """
import json, os
said = json.loads({said!r})
for descriptor in range(3, 64):
    try:
        if os.readlink(f"/proc/self/fd/{{descriptor}}").startswith("socket:"):
            os.write(descriptor, said.encode("latin-1") * {times} + b"\\n")
    except OSError:
        pass
"""
_PRINTED = {"total": 0, "head": "", "tail": ""}


@pytest.mark.parametrize(
    "said",
    [
        "[]", "1", "{}", "null", "x", "[" * 100_000, '{"id": 1}',
        json.dumps({"id": "q", "result": "forged", "error": None, "line": None, "traceback": None,
                    "stdout": _PRINTED, "stderr": _PRINTED}),
        json.dumps({"id": "q", "result": None, "error": None, "line": "x", "traceback": None,
                    "stdout": {"total": 0, "head": "\u20ac", "tail": ""}, "stderr": _PRINTED}),
    ],
    ids=range(9),
)  # fmt: skip
async def test_a_snippet_that_writes_into_the_answers_is_told_and_forges_none(tmp_path, said: str):
    """Finding security 16: the server's tool call ended with TypeError, KeyError or RecursionError."""
    async with bench_of(tmp_path) as bench:
        python = bench.sandbox.python
        await python.run("kept = 1")
        record = await python.run(_FORGE.format(said=json.dumps(said), times=1))
        assert (record.ok, record.state, record.result) == (False, "lost", None)
        assert record.error is not None and "could not be read" in record.error
        after = await python.run("1 + 1")
        assert (after.ok, after.result, after.state) == (True, "2", "lost")
        assert (await python.run("2 + 2")).result == "4", "in step"


async def test_an_endless_answer_ends_the_interpreter(tmp_path):
    async with bench_of(tmp_path) as bench:
        record = await bench.sandbox.python.run(_FORGE.format(said=json.dumps("x" * 1024), times=20_000))
        assert not record.ok and record.state == "lost"
        assert (await bench.sandbox.python.run("3")).result == "3"
