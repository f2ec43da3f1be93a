"""`bowerbird model check`: the right verdict for an endpoint that is good, cut, or speaks calls badly."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S

CHARS_OF_TOKEN = 4


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class Endpoint:
    """A model that knows what it is sent, as far as its window goes."""

    def __init__(self, fake: FakeModels, window: int = 1_000_000, *, calls: bool = True) -> None:
        self.window, self.calls = window, calls
        self.seen: set[str] = set()
        fake.answer(self.answer)

    def answer(self, body: dict[str, Any], _number: int) -> dict[str, Any]:
        last = body["messages"][-1]
        said = text_of(last.get("content"))[-self.window * CHARS_OF_TOKEN :]
        cached = said in self.seen
        self.seen.add(said)
        tokens = len(said) // CHARS_OF_TOKEN
        used = {"input": 0 if cached else tokens, "cache_read": tokens if cached else 0, "output": 20}
        return {**self.step(last["role"], said), "usage": used}

    def step(self, role: str, said: str) -> dict[str, Any]:
        if role == "tool":
            return {"text": "The sum is 4,335."}
        for words, step in (
            ("Count from 1 to 60", {"text": " ".join(map(str, range(1, 61))), "deltas": 20}),
            ("add 1742 and 2593", self.calling("add", {"a": 1742, "b": 2593})),
            ("add 30 and 40", self.calling("add", {"a": 1, "b": 2}, {"a": 30, "b": 40})),
            ("capital of France? Answer", {"text": "Paris"}),
            ("from 1 to 500", {"text": "\n".join(map(str, range(1, 501)))}),
            ("as JSON", {"text": '{"city": "Paris"}'}),
            ("colour", {"text": "Red."}),
            ("the word ok", {"text": "ok"}),
        ):
            if words in said:
                return step
        if wanted := re.search("called “(.+)” for", said):
            return self.calling(
                "order", {"buyer": {"name": "Zoë"}, "items": [{"what": wanted[1], "count": 3}]}
            )
        if "word for word" in said:
            return self.calling("save", {"name": "log", "text": said.partition("\n\n")[2]})
        found = re.search(r"The password is (\S+)\.", said)
        return {"text": found[1] if found else "I do not see any password."}

    def calling(self, name: str, *inputs: dict[str, Any]) -> dict[str, Any]:
        if not self.calls:
            return {"text": f"<function={name}>{json.dumps(inputs[0])}"}
        return {"tools": [{"name": name, "input": given} for given in inputs]}


def checked(fake: FakeModels, home: Path, *more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "HOME": str(home), "PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "sk-0123456789abcdef",
        "OPENAI_BASE_URL": fake.openai_url, "LANG": "C.UTF-8",
    }  # fmt: skip
    command = [sys.executable, "-m", "bowerbird", "model", "check", "openai:gpt-test", *more]
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True,
                          timeout=4 * HANG_S, check=False)  # fmt: skip


def test_a_good_endpoint_is_fit(fake: FakeModels, tmp_path: Path) -> None:
    Endpoint(fake)
    done = checked(fake, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "openai:gpt-test is fit for an agent." in done.stdout
    assert "✓ calls at once: two in one answer" in done.stdout and "✓ a picture: seen" in done.stdout
    assert "✓ 5 KB of arguments: 100 of 100 lines" in done.stdout and "read from the cache" in done.stdout
    assert fake.refused == []


def test_an_endpoint_that_cuts_its_window_is_found_out(fake: FakeModels, tmp_path: Path) -> None:
    Endpoint(fake, window=4_096)
    done = checked(fake, tmp_path, "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1 and told["verdict"] == "not fit for an agent: the context"
    (context,) = [row for row in told["findings"] if row["name"] == "the context"]
    assert "the beginning of 6,000 tokens was not there any more" in context["told"]
    assert told["settings"] == {}, "no agent's work fits into so little"


def test_what_is_there_of_a_window_can_be_put_into_the_settings(fake: FakeModels, tmp_path: Path) -> None:
    Endpoint(fake, window=16_000)
    (tmp_path / ".bowerbird").mkdir()
    file = tmp_path / ".bowerbird/config.yaml"
    file.write_text("agent:\n  max_turns: 7  # few\n")
    done = checked(fake, tmp_path, "--write")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "fit for an agent, with limits: the context" in done.stdout
    set_to = re.search(r"models.openai:gpt-test.context_window: (\d+)", done.stdout)
    assert set_to is not None and 8_192 <= int(set_to[1]) <= 16_000
    assert file.read_text().startswith("agent:\n  max_turns: 7  # few\n")
    assert f"context_window: {set_to[1]}" in file.read_text()
    shown = subprocess.run(
        [sys.executable, "-m", "bowerbird", "config", "show", "models"], cwd=tmp_path, capture_output=True, text=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert f"models.openai:gpt-test.context_window  {set_to[1]}" in shown.stdout, shown.stdout


def test_an_endpoint_whose_calls_are_text_is_found_out(fake: FakeModels, tmp_path: Path) -> None:
    Endpoint(fake, calls=False)
    done = checked(fake, tmp_path)
    assert done.returncode == 1
    assert "not fit for an agent: a call, 5 KB of arguments" in done.stdout
    assert "✗ a call: it called no tool" in done.stdout


def test_an_endpoint_that_refuses_the_key_is_said_at_once(fake: FakeModels, tmp_path: Path) -> None:
    fake.script({"status": 401, "body": {"error": {"message": "Incorrect API key provided"}}})
    done = checked(fake, tmp_path)
    assert done.returncode == 1 and fake.request_count == 1
    assert "refused the key" in done.stdout and "sk-0123456789abcdef" not in done.stdout + done.stderr
