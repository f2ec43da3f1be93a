"""A whole piece of work on a project, as a person has it done: a model edits and tests on a branch, one file lands.

Here: the project, the home of its own, the real command, and what was seen at each stage. Used by the tests on
a tiny project and by `benchmarks/real_project.py` on a published one.
"""

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.abuse import tree_of
from support.fake_models import FakeModels
from support.terminals import COMMAND, clean_environment

WHEELS = "WHEELS"
"""In commands of the script: the directory that holds the wheels of the test requirements."""


def venv(*requirements: str) -> str:
    """Return the command that makes the branch's environment and installs into it without a network."""
    words = " ".join(requirements)
    return (
        "python3 -m venv .venv && .venv/bin/pip install -q --disable-pip-version-check "
        f"--no-index --find-links WHEELS {words}"
    )


def bash(command: str, timeout: int = 300) -> dict[str, Any]:
    """Return one call of the `bash` tool."""
    return {"name": "bash", "input": {"command": command, "timeout": timeout}}


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    """Return one call of the `edit_file` tool."""
    return {"name": "edit_file", "input": {"path": path, "old": old, "new": new}}


@dataclass
class Work:
    """One project with a session on it.

    Args:
        place: an empty directory; `place/project` is the workspace and exists.
        settings: of the command, beside those that this needs.
    """

    place: Path
    fake: FakeModels
    wheels: Path
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    took_s: dict[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        self.project = self.place / "project"
        own = self.place / "home/.bowerbird"
        own.mkdir(parents=True)
        chosen = {"sandbox": {"read_only": [str(self.wheels)], **self.settings}}
        (own / "config.yaml").write_text(json.dumps(chosen))
        self.environment = clean_environment(
            own.parent, ANTHROPIC_API_KEY="sk-planted", ANTHROPIC_BASE_URL=self.fake.anthropic_url
        )
        self.before = self.workspace()

    def workspace(self) -> dict[str, Any]:
        """Return every file of the real directory with its content, mode, owner and time."""
        return tree_of(self.project)

    def command(self, *words: str) -> str:
        """Run the real command in the project; return its standard output."""
        begun = time.monotonic()
        ran = subprocess.run(
            [*COMMAND, *words], cwd=self.project, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.took_s[words[0]] = time.monotonic() - begun
        if ran.returncode != 0:
            raise AssertionError(f"bowerbird {words[0]}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}")
        return ran.stdout

    def do(self, text: str, batches: Sequence[Sequence[dict[str, Any]]]) -> list[str]:
        """Have the model make these calls, batch after batch; return what each call's result said."""
        steps = json.loads(
            json.dumps([{"tools": list(batch)} for batch in batches]).replace(WHEELS, str(self.wheels))
        )
        self.fake.script(*steps, {"text": "It is done."})
        self.command("run", text, "--quiet")
        found: dict[str, str] = {}
        for request in self.fake.requests:  # older results are shortened in later requests
            for message in request["messages"]:
                for block in message["content"] if isinstance(message["content"], list) else ():
                    if block["type"] == "tool_result":
                        content = block["content"]
                        text = (
                            content
                            if isinstance(content, str)
                            else "".join(b.get("text", "") for b in content)
                        )
                        found.setdefault(block["tool_use_id"], text)
        return list(found.values())

    def changed(self) -> dict[str, list[str]]:
        """Return the paths that the branch wrote and deleted."""
        told = json.loads(self.command("diff", "--json"))
        return {
            "written": [row["path"] for row in told["written"]],
            "deleted": [row["path"] if isinstance(row, dict) else row for row in told["deleted"]],
        }

    def land(self, *paths: str) -> None:
        """Land these paths of the newest session and nothing else."""
        [thread] = {row["id"] for row in json.loads(self.command("sessions", "--json"))}
        self.command("land", thread, *paths, "--yes", "--partial")

    def differences(self, *, times: bool = True) -> list[str]:
        """Return the paths of the workspace that are not as they were; `times`: also by time and owner alone."""
        old, now = self.before, self.workspace()
        if not times:
            old, now = ({path: seen[0] for path, seen in tree.items()} for tree in (old, now))
        return sorted(path for path in now.keys() | old.keys() if now.get(path) != old.get(path))
