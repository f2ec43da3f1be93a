"""Must show 6 of the issue on a tiny project that needs no network; `benchmarks/real_project.py` has a published one.

A scripted model makes a virtual environment on the branch, installs the test requirement into it, runs the
project's tests, mends its source, and runs them again. Only the source lands.
"""

import zipfile
from pathlib import Path

import pytest
from support.abuse import TIERS
from support.fake_models import FakeModels
from support.project_work import Work, bash, edit, venv
from support.trees import write_tree

PROJECT = {
    "README": "A till.\n",
    "till/__init__.py": "",
    "till/sums.py": "def total(prices):\n    return sum(prices[1:])\n",
    "tests/check_sums.py": "from till.sums import total\n\n\ndef check_total():\n    assert total([1, 2, 3]) == 6\n",
}
RUNNER = """
import importlib.util, pathlib, sys
def main():
    sys.path.insert(0, ".")
    failed = 0
    for path in sorted(pathlib.Path("tests").glob("check_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name in dir(module):
            if name.startswith("check_"):
                try:
                    getattr(module, name)()
                except AssertionError:
                    failed += 1
    print(f"{failed} failed")
    sys.exit(failed)
"""


def make_wheel(directory: Path) -> None:
    """A test runner, as a published one would be installed."""
    info = "tinycheck-1.0.dist-info"
    files = {
        "tinycheck.py": RUNNER,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tinycheck\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntinycheck = tinycheck:main\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    directory.mkdir()
    with zipfile.ZipFile(directory / "tinycheck-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)


@pytest.mark.parametrize("tier", TIERS)
def test_a_model_mends_and_tests_a_project_on_its_branch_and_only_the_source_lands(tmp_path, tier: str):
    write_tree(tmp_path / "project", PROJECT)
    make_wheel(tmp_path / "wheels")
    with FakeModels() as fake:
        here = Work(tmp_path, fake, tmp_path / "wheels", {"tier": tier})
        made, first, _, second = here.do(
            "Mend the till.",
            [
                [bash(venv("tinycheck"))],
                [bash(".venv/bin/tinycheck")],
                [edit("till/sums.py", "prices[1:]", "prices")],
                [bash(".venv/bin/tinycheck")],
            ],
        )
        assert "exit code" not in made, made
        assert first.startswith("1 failed") and "[exit code 1]" in first, first
        assert second.strip() == "0 failed", second
        assert here.changed()["written"] == ["/till/sums.py"], "the environment is ignored: it stays behind"
        assert here.differences() == [], "byte-identical until the landing, times included"
        here.land("till/sums.py")
        assert here.differences(times=False) == ["/till/sums.py"]
        assert "sum(prices)" in (here.project / "till/sums.py").read_text()
