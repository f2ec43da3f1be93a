"""A stand-in for the program `claude`: its flags, its conversations on disk, its answers; started by a real gateway.

Here: making it, and what it was asked. Not here: the bridge, whose real code the tests run.
"""

import json
import sys
from pathlib import Path
from typing import Any

PROGRAM = """#!{python}
import json, os, sys, time
from pathlib import Path

arguments = sys.argv[1:]
if arguments == ["--version"]:
    print("2.1.0 (Claude Code)")
    sys.exit()
text = sys.stdin.read()
given = dict(zip(arguments, arguments[1:]))
new, resumed = given.get("--session-id"), given.get("--resume")
session = new or resumed
place = Path({projects!r}) / os.getcwd().replace("/", "-")
place.mkdir(exist_ok=True)
talk = place / (session + ".jsonl")
running = Path({log!r} + "." + session)
with open({log!r}, "a") as log:
    log.write(json.dumps({{"arguments": arguments, "text": text, "cwd": os.getcwd(), "pid": os.getpid(),
                           "together": running.exists()}}) + "\\n")
if resumed and not talk.exists():
    sys.exit("No conversation found with session ID: " + resumed)
running.touch()
try:
    line = {{"type": "user", "cwd": os.getcwd(), "gitBranch": "main", "message": {{"role": "user", "content": text}}}}
    with talk.open("a") as file:
        file.write(json.dumps(line) + "\\n")
    if text.startswith("write"):
        Path("made.txt").write_text("by claude")
    if text.startswith("sleep"):
        time.sleep(600)
    result = {{"type": "result", "is_error": text == "fail", "result": "you said " + text, "session_id": session,
               "total_cost_usd": 0.25, "permission_denials": []}}
    if text.startswith("deny"):
        result["permission_denials"] = [{{"tool_name": "Bash", "tool_input": {{"command": "rm -rf x"}}}}]
    if "stream-json" in arguments:
        print(json.dumps({{"type": "system", "subtype": "compact_boundary",
                           "compact_metadata": {{"pre_tokens": 90000, "post_tokens": 1200}}}}))
    print(json.dumps(result))
finally:
    running.unlink()
"""


class ClaudeProgram:
    """The program in a directory of its own, with the directories that it knows."""

    def __init__(self, place: Path) -> None:
        self.projects, self.log = place / "claude-projects", place / "claude.log"
        self.projects.mkdir()
        self.path = place / "bin" / "claude"
        self.path.parent.mkdir()
        source = PROGRAM.format(python=sys.executable, projects=str(self.projects), log=str(self.log))
        self.path.write_text(source)
        self.path.chmod(0o755)

    def asked(self) -> list[dict[str, Any]]:
        """Every run so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def talk(self, project: Path, session: str, *lines: object) -> None:
        """Leave a conversation of an earlier day."""
        place = self.projects / str(project).replace("/", "-")
        place.mkdir(exist_ok=True)
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (place / f"{session}.jsonl").write_text("\n".join(texts) + "\n")

    @staticmethod
    def said(text: str, project: Path, **more: Any) -> dict[str, Any]:
        """A line of a conversation in which a person says something."""
        return {"type": "user", "cwd": str(project), "message": {"role": "user", "content": text}, **more}
