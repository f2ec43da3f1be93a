"""The sets of `benchmarks/embedded`: every job can be told right from wrong without a model (D-23)."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, imported as it runs."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    return importlib.import_module("embedded_model")


def written(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def test_there_are_ninety_of_each_to_tune_on_and_as_many_unseen_as_the_bars_count(benchmark: Any):
    for kind, (_, of) in benchmark.BARS.items():
        assert (len(benchmark.jobs(kind, False)), len(benchmark.jobs(kind, True))) == (90, of)


def test_a_change_that_was_not_made_is_wrong_and_the_right_one_right(benchmark: Any, tmp_path: Path):
    for job in [*benchmark.jobs("edit", False), *benchmark.jobs("edit", True)]:
        root = written(tmp_path / job.name, job.files)
        assert benchmark.wrong_edit(job, root), f"{job.name}: nothing changed, and nothing is missed"
        if "to" in job.judge:
            path = root / job.judge["path"]
            old = path.read_text(encoding="utf-8")
            assert old.count(job.judge["from"]) == 1, job.name
            path.write_text(old.replace(job.judge["from"], job.judge["to"][0]), encoding="utf-8")
            assert not benchmark.wrong_edit(job, root), job.name


def test_an_answer_is_judged_by_its_words(benchmark: Any):
    job = benchmark.Job("question", "p", 1, "How many, where?", {}, {"words": ["1525", r"a\.py"]})
    assert not benchmark.wrong_answer(job, "There are 1,525 in src/a.py.")
    assert benchmark.wrong_answer(job, "There are 15250 in a.py.")
    assert benchmark.wrong_answer(job, "There are 1525.5 in a.py.")
    assert not benchmark.wrong_answer(job, "There are 1525.0 in a.py."), "the same number"
    assert benchmark.wrong_answer(job, "1525 in a_py")


def test_an_answer_that_lists_too_much_is_wrong(benchmark: Any):
    job = benchmark.Job("question", "p", 1, "Which are due?", {}, {"words": ["A1", "B2"], "never": ["C3"]})
    assert not benchmark.wrong_answer(job, "A1 and B2 are due.")
    assert benchmark.wrong_answer(job, "All are due: A1, B2 and C3.")
