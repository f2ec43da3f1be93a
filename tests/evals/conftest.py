"""Evaluations as people start them: a home of its own, a suite in a directory, scripted models."""

import json
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from support.desk import Desk
from support.fake_models import FakeModels

MODEL = "anthropic:claude-sonnet-4-5"


class Evals(Desk):
    """A desk whose suite is `project/suite`."""

    @property
    def suite(self) -> Path:
        return self.project / "suite"

    def task(
        self, name: str, check: str, *, files: dict[str, str] | None = None, solution: str = "", **keys: Any
    ) -> Path:
        """Make a task of our own form."""
        place = self.suite / name
        (place / "files").mkdir(parents=True)
        keys = {"request": f"Do {name}.", **keys}
        (place / "task.toml").write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in keys.items()))
        (place / "check.sh").write_text(check)
        for path, text in (files or {"a.txt": "one\n"}).items():
            (place / "files" / path).write_text(text)
        if solution:
            (place / "solution.sh").write_text(solution)
        return place

    def judge(self, *more: str, code: int = 0, suite: Path | None = None) -> dict[str, Any]:
        """Run `bowerbird eval --json` with the scripted model."""
        who = () if "--agent" in more else ("--model", MODEL)
        found, out, err = self.run("eval", str(suite or self.suite), *who, "--json", *more)
        if "commands cannot run" in err:
            pytest.skip(err)
        assert found == code, (found, err, out)
        self.told = err
        return json.loads(out)


@pytest.fixture(scope="session")
def models() -> Generator[FakeModels]:
    with FakeModels() as fake:
        yield fake


@pytest.fixture
def evals(tmp_path: Path, models: FakeModels, monkeypatch: pytest.MonkeyPatch) -> Generator[Evals]:
    models.reset()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))  # directories of wrong tries stay
    with Evals(tmp_path, models) as made:
        made.environment["TMPDIR"] = str(temporary)
        yield made


@pytest.fixture
def commands(models: FakeModels) -> Callable[..., None]:
    """Have the model run a command, chosen by the request, then answer."""

    def script(by_request: dict[str, str], answer: str = "Done.") -> None:
        def step(body: dict[str, Any], _: int) -> dict[str, Any]:
            if any(message["role"] == "assistant" for message in body["messages"]):
                return {"text": answer}
            said = json.dumps(body["messages"])
            command = next((line for request, line in by_request.items() if request in said), "true")
            return {"tools": [{"name": "bash", "input": {"command": command}}]}

        models.answer(step)

    return script
