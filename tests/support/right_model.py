"""A scripted model that is right: it knows the tasks of a suite by their requests, and does what their solutions do.

Run as a program it serves the wire formats until it is killed:
`python tests/support/right_model.py evals` prints the address for `ANTHROPIC_BASE_URL`.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.fake_models import FakeModels

Step = dict[str, Any]


def said_by_people(body: dict[str, Any]) -> str:
    """Return all that user messages say, results of tools left out."""
    texts: list[str] = []
    for message in body["messages"]:
        if message["role"] == "user":
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            texts += [block["text"] for block in blocks if block["type"] == "text"]
    return "\n".join(texts)


def right_model(suite: Path) -> Callable[[dict[str, Any], int], Step]:
    """Return the answers of a model that runs a task's solution, looks at what it did, and answers."""
    known: dict[str, tuple[str, str]] = {}
    for file in sorted(suite.glob("*/task.toml")):
        told = tomllib.loads(file.read_text())
        solution = file.parent / "solution.sh"
        script = solution.read_text() if solution.is_file() else ""
        known[told["request"].strip()] = (script, told.get("answer", "Done."))

    def answer(body: dict[str, Any], _: int) -> Step:
        said = said_by_people(body)
        script, words = next(found for request, found in known.items() if request in said)
        done = sum(message["role"] == "assistant" for message in body["messages"])
        usage = {"input": 1_000 + 100 * done, "output": 50, "cache_read": 0, "cache_write": 0}
        steps: list[Step] = [{"tools": [{"name": "bash", "input": {"command": script}}]}] if script else []
        steps += [{"tools": [{"name": "list_files", "input": {}}]}, {"text": words}]
        return {**steps[min(done, len(steps) - 1)], "usage": usage}

    return answer


def main() -> None:
    with FakeModels() as fake:
        fake.answer(right_model(Path(sys.argv[1])))
        print(fake.anthropic_url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
