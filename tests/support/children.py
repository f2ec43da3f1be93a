"""Scripts of a model that has subagents: every child is known by the words of its task."""

import re
from typing import Any

from support.agent_turns import call, results, texts
from support.fake_models import FakeModels

Step = dict[str, Any]
Script = dict[str, list[Step]]


def replaced(old: str, new: str, path: str = "a.txt") -> Step:
    """A step that edits a file."""
    return {"tools": [call("edit_file", path=path, old=old, new=new)]}


def wrote(path: str, content: str = "x\n") -> Step:
    """A step that writes a file."""
    return {"tools": [call("write_file", path=path, content=content)]}


def said(body: dict[str, Any]) -> str:
    """The task of a request: the text of its first message."""
    return texts(body)[0]


def play(fake: FakeModels, scripts: Script, otherwise: Step | None = None) -> None:
    """Answer each request by the script whose name is a word of its task, one step per round of tools."""

    def answer(body: dict[str, Any], _n: int) -> Step:
        rounds = sum(m["role"] == "assistant" for m in body["messages"])
        for name, steps in scripts.items():
            if re.search(rf"\b{re.escape(name)}\b", said(body)):
                return steps[min(rounds, len(steps) - 1)]
        return otherwise or {"text": "nothing to do"}

    fake.answer(answer)


def last_result(body: dict[str, Any]) -> str:
    """The text of the newest tool result of a request."""
    content = results(body)[-1]["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def requests_of(fake: FakeModels, name: str) -> list[dict[str, Any]]:
    """The requests whose task has the word `name`."""
    return [body for body in fake.requests if re.search(rf"\b{re.escape(name)}\b", said(body))]
