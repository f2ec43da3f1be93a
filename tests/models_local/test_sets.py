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


def test_there_are_many_of_each_to_tune_on_and_as_many_unseen_as_the_bars_count(benchmark: Any):
    assert {kind: len(benchmark.jobs(kind, False)) for kind in benchmark.BARS} == {
        "edit": 146,
        "question": 210,
    }
    for kind, (_, of) in benchmark.BARS.items():
        assert len(benchmark.jobs(kind, True)) == of


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


def with_results(benchmark: Any, kind: str) -> list[Any]:
    """The jobs beside whose judge stand right and wrong results: the unseen ones, and those that were unseen once."""
    unseen = benchmark.jobs(kind, True)
    for job in unseen:
        assert {"to", "right"} & job.judge.keys() and job.judge["wrong"], job.name
    return [*unseen, *(job for job in benchmark.jobs(kind, False) if "wrong" in job.judge)]


def replaced(root: Path, rows: list[list[str]]) -> None:
    """Make the changes of a result: rows of a path, what stands there once ("": a new file), and what stands there then."""
    for name, old, new in rows:
        if not old:
            written(root, {name: new})
            continue
        text = (root / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, (name, old)
        (root / name).write_text(text.replace(old, new), encoding="utf-8")


def test_of_a_change_every_right_result_is_right_and_every_wrong_one_wrong(benchmark: Any, tmp_path: Path):
    for job in with_results(benchmark, "edit"):
        judge = job.judge
        right = (
            [judge["right"]]
            if "right" in judge
            else [[[judge["path"], judge["from"], to]] for to in judge["to"]]
        )
        for n, (rows, wanted) in enumerate(
            [*((rows, True) for rows in right), *((rows, False) for rows in judge["wrong"])]
        ):
            root = written(tmp_path / f"{job.name} {n}", job.files)
            replaced(root, rows)
            wrong = benchmark.wrong_edit(job, root)
            assert (not wrong) is wanted, (job.name, rows, wrong)


def test_of_a_question_every_right_answer_is_right_and_every_wrong_one_wrong(benchmark: Any):
    for job in with_results(benchmark, "question"):
        for said in job.judge["right"]:
            assert not benchmark.wrong_answer(job, said), (job.name, said)
        for said in job.judge["wrong"]:
            assert benchmark.wrong_answer(job, said), (job.name, said)


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
