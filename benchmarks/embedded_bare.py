"""The bare recipe that the embedded agent is measured against: the same weights, no runtime around them.

Here: a change in three or four short calls without tools, a question as a loop of at most eight steps
forced by a schema, both straight on a directory, and what they cost. Not here: the sets, the judging, the
product (`embedded_model.py`).
"""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from bowerbird.models.local.engine import Engine
from bowerbird.models.local.generation import Counts, Generation
from bowerbird.models.local.grammar import schema_grammar

STEPS = 8
STOP_WORDS = frozenset(
    "a all an and are as at be by can does file for from has how in is it its many of on one or set so that the this "
    "to was what when where which who with".split()
)
PARSERS: dict[str, Callable[[str], Any]] = {".py": ast.parse, ".json": json.loads, ".toml": tomllib.loads}
REWRITE = (
    "You get a task and a file. Answer with the whole changed file in one fenced block; everything that the task does "
    "not name stays exactly as it is."
)
REWRITTEN = (
    ("Set the limit to 9.", "a.py", "LIMIT = 5\nNAME = 'a'", "LIMIT = 9\nNAME = 'a'"),
    ("Add pear to the fruit.", "fruit.json", '{"fruit": ["fig"]}', '{"fruit": ["fig", "pear"]}'),
    ("Remove the line that prints.", "b.py", "x = 1\nprint(x)\ny = 2", "x = 1\ny = 2"),
)
ASKING = """You answer questions about a project with tools. Each step is one JSON object; then you see its result.
Never guess: look at files first. Compute with Python. Then use final_answer, one sentence with exact names and numbers.
Tools: read_file (path), search_files (word), run_python_code (code follows in a fenced block), final_answer (answer).

Task: Which port does the server use?
{"tool": "search_files", "word": "port"}
server.py:12: PORT = 8021
{"tool": "final_answer", "answer": "Port 8021."}

Task: When is a parcel heavy?
{"tool": "search_files", "word": "heavy parcel"}
nothing found: read a file or search for one shorter word
{"tool": "read_file", "path": "parcels.py"}
parcels.py, 1 line:
HEAVY_KG = 25
{"tool": "final_answer", "answer": "From 25 kg on."}

Task: How much rain fell in Bergen in total, by rain.csv?
{"tool": "read_file", "path": "rain.csv"}
rain.csv, 3 of 900 lines:
day,city,mm
2024-05-01,Oslo,3.5
{"tool": "run_python_code"}
```python
import csv
print(sum(float(r["mm"]) for r in csv.DictReader(open("rain.csv")) if r["city"] == "Bergen"))
```
Output: 1843.5
{"tool": "final_answer", "answer": "1843.5 mm."}

Task: Who wrote the parser?
{"tool": "read_file", "path": "AUTHORS"}
AUTHORS, 1 line:
parser: Ada
{"tool": "final_answer", "answer": "Ada."}

Task: What does total() return for no rows?
{"tool": "search_files", "word": "total"}
sums.py:3: def total(rows):
    return sum(rows)
{"tool": "final_answer", "answer": "0, the sum of nothing."}"""


class Bare:
    """The recipe on one directory after another, and the tokens that it took."""

    def __init__(self, weights: Engine) -> None:
        self.engine = weights
        self.counts = Counts()

    async def say(
        self,
        turns: Sequence[tuple[str, str]],
        schema: Mapping[str, Any] | None = None,
        most: int = 300,
        heat: float = 0.0,
        seed: int = 0,
    ) -> str:
        """Return what the model says, under a JSON Schema if one is given."""
        messages = tuple({"role": role, "content": text} for role, text in turns)
        grammar = schema_grammar(schema) if schema else ""
        said = ""
        async with aclosing(self.engine.generate(Generation(messages, most, grammar, heat, seed))) as pieces:
            async for piece in pieces:
                said += piece.text
                if piece.finish:
                    was, now = self.counts, piece.counts
                    self.counts = Counts(
                        was.evaluated + now.evaluated, was.reused + now.reused, was.generated + now.generated
                    )
        return said

    async def choose(self, asked: str, values: Sequence[str]) -> str:
        """Return one of `values`."""
        return json.loads(await self.say([("user", asked)], {"type": "string", "enum": list(values)}, 60))

    # ---------------------------------------------------------------- changes

    async def edit(self, root: Path, task: str) -> str:
        """Change a file of `root` as the task says; return what was done."""
        files = names(root)
        seen = (
            "Files:\n"
            + "\n".join(files)
            + "\nLines:\n"
            + "\n".join(hits(root, telling(task), 25))
            + f"\nTask: {task}\n"
        )
        kind = await self.choose(
            f"{seen}Is a file that exists changed, or a new one created?", ["change", "create"]
        )
        if kind == "create":
            named = re.findall(r"[\w./-]+\.\w+", task)
            path = next((word for word in named if word not in files), "new.txt")
            body = fenced(
                await self.say(
                    [("user", f"{seen}Write the content of {path} in one fenced block.")], None, 900
                )
            )
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(f"{body or ''}\n")
            return f"created {path}"
        path = await self.choose(f"{seen}Which file is changed?", files)
        old = (root / path).read_text().rstrip("\n")
        turns = [("system", REWRITE)]
        for asked, name, before, after in REWRITTEN:
            turns += [
                ("user", f"Task: {asked}\n{name}:\n```\n{before}\n```"),
                ("assistant", f"```\n{after}\n```"),
            ]
        turns.append(("user", f"Task: {task}\n{path}:\n```\n{old}\n```"))
        for attempt in range(3):
            new = fenced(await self.say(turns, None, len(old) // 2 + 300, 0.7 if attempt else 0.0, attempt))
            if new is not None and stands(path, task, old, new):
                (root / path).write_text(f"{new}\n")
                return f"changed {path}"
        return "changed nothing"

    # ---------------------------------------------------------------- questions

    async def ask(self, root: Path, task: str) -> str:
        """Return the answer to a question about `root`."""
        files, read, failed = names(root), list[str](), False
        turns = [("system", f"{ASKING}\n\nFiles:\n" + "\n".join(files)), ("user", f"Task: {task}")]
        for step in range(STEPS):
            options = [
                form("search_files", word={"type": "string", "minLength": 1, "maxLength": 40}),
                form("run_python_code"),
            ]
            if unread := [path for path in files if path not in read]:
                options.insert(0, form("read_file", path={"enum": unread}))
            final = form("final_answer", answer={"type": "string", "minLength": 1, "maxLength": 400})
            if step == STEPS - 1:
                options = [final]
            elif step and not failed:
                options.append(final)
            text = await self.say(turns, {"anyOf": options}, 200)
            try:
                chosen: dict[str, str] = json.loads(text)
            except ValueError:
                return ""
            turns.append(("assistant", text))
            if chosen["tool"] == "final_answer":
                return chosen["answer"]
            if chosen["tool"] == "read_file":
                read.append(chosen["path"])
                result, failed = shown(root, chosen["path"]), False
            elif chosen["tool"] == "search_files":
                found = hits(root, chosen["word"].lower().split(), 12)
                result, failed = (
                    "\n".join(found) or "nothing found: read a file or search for one shorter word",
                    not found,
                )
            else:
                turns.append(("user", "Write the code in one fenced block."))
                written = await self.say(turns, None, 400)
                turns.append(("assistant", written))
                result, failed = ran(root, fenced(written) or "")
            turns.append(("user", f"{result}\nTask: {task}"))
        return ""


def form(tool: str, **fields: object) -> dict[str, Any]:
    """Return the schema of one tool's step."""
    have = {"tool": {"const": tool}, **fields}
    return {"type": "object", "properties": have, "required": list(have), "additionalProperties": False}


def names(root: Path) -> list[str]:
    """Return the files of `root`."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def telling(task: str) -> list[str]:
    """Return the words of a task that may stand in a file."""
    return [word for word in re.findall(r"[a-z_]\w{2,}|\d+", task.lower()) if word not in STOP_WORDS]


def hits(root: Path, words: Sequence[str], most: int) -> list[str]:
    """Return the lines that share the most words, each with its place; a definition with its body."""
    found: list[tuple[int, str]] = []
    for name in names(root):
        lines = (root / name).read_text().split("\n")
        for n, line in enumerate(lines):
            if score := sum(word in line.lower() for word in words):
                body = lines[n + 1 : n + 5] if re.match(r"\s*(def|class|function|func|fn)\b", line) else []
                found.append((-score, "\n".join([f"{name}:{n + 1}: {line.strip()}", *body])))
    return [text for _, text in sorted(found, key=lambda pair: pair[0])[:most]]


def shown(root: Path, path: str) -> str:
    """Return a file as the model sees it: of data only the head."""
    lines = (root / path).read_text().rstrip("\n").split("\n")
    kept = lines[:4] if path.endswith(".csv") else lines[:150]
    count = f"{len(kept)} of {len(lines)} lines" if len(kept) < len(lines) else f"{len(lines)} lines"
    return f"{path}, {count}:\n" + "\n".join(kept)


def ran(root: Path, code: str) -> tuple[str, bool]:
    """Run Python in `root`; return what is told of it, and whether it failed."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", code],
            cwd=root,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "Error: it did not end. Correct the code.", True
    if done.returncode:
        return f"Error: {done.stderr[-300:]}\nCorrect the code.", True
    return (f"Output: {done.stdout[:1500]}", False) if done.stdout.strip() else ("It printed nothing.", True)


def fenced(text: str) -> str | None:
    """Return what stands in the first fenced block."""
    found = re.search(r"```[^\n]*\n(.*?)\n```", text, re.DOTALL)
    return found[1] if found else None


def stands(path: str, task: str, old: str, new: str) -> bool:
    """Tell whether a rewritten file may stand: changed, parses, no lines lost unasked."""
    parse = PARSERS.get(Path(path).suffix)
    try:
        if parse is not None:
            parse(new)
    except (ValueError, SyntaxError):
        return False
    lost = old.count("\n") - new.count("\n")
    return new != old and (
        lost <= 1 or re.search(r"\b(remove|delete|drop)\b", task, re.IGNORECASE) is not None
    )
