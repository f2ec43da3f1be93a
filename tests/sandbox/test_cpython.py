"""SB-50: fresh CPython on the branch."""

import subprocess
import sys

import pytest
from support.sandboxes import bench_of

from bowerbird.core.errors import InvalidArgument
from bowerbird.sandbox.cpython import last_line, run_python


async def test_a_snippet_imports_branch_files_and_its_failing_line_is_known(tmp_path):
    async with bench_of(tmp_path, {"lib.py": "def f(x):\n    return 1 / x\n"}) as bench:
        ran = await run_python(bench.sandbox, "import lib\nprint(lib.f(1))\nlib.f(0)\n")
        assert ran.command.exit_code == 1 and ran.line == 3
        assert ran.command.stdout == "1.0\n" and "ZeroDivisionError" in (ran.command.stderr or "")
        assert ran.to_data()["line"] == 3 and ran.to_data()["tier"] == "overlay"


async def test_a_file_gets_arguments_and_input_and_its_own_line_is_named(tmp_path):
    script = "import sys\nprint(sys.argv[1:], sys.stdin.read())\nraise SystemExit(4)\n"
    async with bench_of(tmp_path, {"sub/run.py": script, "bad.py": "x = 1\n\nx.y\n"}) as bench:
        ran = await run_python(bench.sandbox, path="sub/run.py", args=["a", "b c"], stdin="typed")
        assert (ran.command.exit_code, ran.command.stdout) == (4, "['a', 'b c'] typed\n")
        assert ran.line is None
        assert (await run_python(bench.sandbox, path="/bad.py")).line == 3


async def test_names_do_not_persist_and_a_large_snippet_runs(tmp_path):
    async with bench_of(tmp_path) as bench:
        await run_python(bench.sandbox, "x = 1")
        assert (await run_python(bench.sandbox, "print(x)")).command.exit_code == 1
        padding = "# é" * 60_000
        ran = await run_python(bench.sandbox, f"{padding}\nimport sys\nprint(sys.argv)\n1/0", args=["z"])
        assert ran.command.stdout == "['-c', 'z']\n" and ran.line == 4
        assert list((tmp_path / "data/branches").glob("*/out/*.py")) == []


async def test_exactly_one_of_code_and_path_is_taken(tmp_path):
    async with bench_of(tmp_path, {"a.py": ""}) as bench:
        for code, path in ((None, None), ("", "a.py")):
            with pytest.raises(InvalidArgument, match="exactly one"):
                await run_python(bench.sandbox, code, path)
        assert (await run_python(bench.sandbox, "")).command.exit_code == 0


async def test_the_branch_s_own_environment_is_used_if_it_runs(tmp_path):
    async with bench_of(tmp_path, {"a": ""}) as bench:
        made = await bench.sandbox.run("python3 -m venv --without-pip .venv")
        assert made.exit_code == 0, made.output
        ran = await run_python(bench.sandbox, "import sys; print(sys.prefix)")
        assert ran.command.stdout == f"{bench.root}/.venv\n"
        broken = "rm .venv/bin/python; printf '#!/missing' > .venv/bin/python; chmod +x .venv/bin/python"
        await bench.sandbox.run(broken)
        ran = await run_python(bench.sandbox, "import sys; print(sys.prefix)")
        assert ran.command.exit_code == 0 and ".venv" not in (ran.command.stdout or "")


async def test_a_timeout_ends_it(tmp_path):
    async with bench_of(tmp_path) as bench:
        ran = await run_python(bench.sandbox, "print('x', flush=True)\nwhile True: pass", timeout=0.3)
        assert (ran.command.exit_code, ran.command.timed_out, ran.command.output) == (124, True, "x\n")


def test_the_last_frame_of_the_snippet_counts_not_that_of_a_library():
    code = "import json\ndef f():\n    json.loads('{')\nf()\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert last_line(done.stderr, "<string>") == 3
    assert last_line("no traceback", "<string>") is None
