"""What the same work costs through this agent, mini-swe-agent and Claude Code, against a server that plays the cache.

    python benchmarks/agent_costs.py [--steps 10 30 80] [--mini DIR/bin/mini] [--claude PATH]

One scripted trajectory (reads of real files of this repository, edits, the output of tests), as a shell command a
step, and for this agent and Claude Code once more with their own tools for files. The server knows what a request
sends and prices it as the provider would: Anthropic's marked prefixes (at least 1,024 tokens, read at 0.1, written at
1.25, looked for 20 blocks back) and OpenAI's automatic ones (steps of 128 tokens from 1,024). Tokens are about:
characters by four. A rival that is not there is left out, and said. Exit code 1 when a bar at 30 steps is missed.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.fake_models import FakeModels  # noqa: E402 - beside the path
from support.provider_rules import RULES  # noqa: E402 - beside the path

LEAST, BLOCKS_BACK, STEP = 1_024, 20, 128
ANTHROPIC, OPENAI = (
    (3.0, 3.75, 0.3, 15.0),
    (1.25, 1.25, 0.125, 10.0),
)  # USD per million: in, written, read, out
BARS = {"claude": 1.0, "mini": 1.15}
TASK = "Work through the steps one after another; finish when the work is done."
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
TEST = "import unittest\n\n\nclass T(unittest.TestCase):\n" + "".join(
    f"    def test_number_{n}_is_what_it_was_before(self):\n        self.assertEqual({n}, {n})\n\n"
    for n in range(40)
)


class Usage(NamedTuple):
    """Tokens of one request."""

    input: int
    write: int
    read: int


def size(value: Any) -> int:
    """About how many tokens `value` is."""
    return len(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) // 4


def unmarked(value: Any) -> Any:
    """Return `value` without cache marks, wherever they are."""
    if isinstance(value, list):
        return [unmarked(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: unmarked(each) for key, each in value.items() if key != "cache_control"}
    if isinstance(kept.get("content"), str):  # a text alone is the same as a list of it
        kept["content"] = [{"type": "text", "text": kept["content"]}]
    return kept


def alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


class Cache:
    """What a provider keeps of requests, and what of the next one is read from it."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.texts: list[str] = []

    def anthropic(self, body: dict[str, Any]) -> Usage:
        """Marked prefixes: whole blocks, in the order tools, system, messages."""
        system = body.get("system") or []
        blocks = [*body.get("tools", []), *([{"text": system}] if isinstance(system, str) else system)]
        turn = {"choice": body.get("tool_choice"), "thinking": body.get("thinking")}
        first = len(blocks)
        for message in body["messages"]:
            content = message["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            blocks += [{"role": message["role"], **part} for part in parts]
        hashed, seen, at, marks = hashlib.sha256(body["model"].encode()), [], 0, []
        for number, block in enumerate(blocks):
            if number == first:
                hashed.update(json.dumps(turn, sort_keys=True).encode())
            plain = unmarked(block)
            if str(plain.get("text", "")).startswith("x-anthropic-billing-header"):
                plain = {"text": "billing"}  # another with each request, and no part of the prompt
            hashed.update(json.dumps(plain, sort_keys=True).encode())
            at += size(plain)
            seen.append((hashed.hexdigest(), at))
            marks += [number] if '"cache_control":' in json.dumps(block) else []
        marks += [len(blocks) - 1] if body.get("cache_control") else []
        places = {place for mark in marks for place in range(max(0, mark - BLOCKS_BACK), mark + 1)}
        read = max((seen[place][1] for place in places if seen[place][0] in self.known), default=0)
        kept = [seen[mark] for mark in marks if seen[mark][1] >= LEAST]
        self.known |= {digest for digest, _ in kept}
        written = max((upto for _, upto in kept), default=read)
        return Usage(at - max(read, written), max(0, written - read), read)

    def openai(self, body: dict[str, Any]) -> Usage:
        """The longest beginning that an earlier request had, in whole steps."""
        text = json.dumps(
            [body.get("tools"), body.get("instructions"), body.get("messages") or body.get("input")]
        )
        same = max((alike(text, old) // 4 for old in self.texts), default=0)
        self.texts.append(text)
        read = same // STEP * STEP if same >= LEAST else 0
        return Usage(size(text) - read, 0, read)


def work(steps: int, own_tools: str) -> list[dict[str, Any]]:
    """Return the calls: name and input of a shell command, or of a tool for files of `own_tools`."""
    files = sorted(
        path.name
        for path in (ROOT / "src/bowerbird/agent/turn_loop").glob("*.py")
        if path.stat().st_size > 2_000
    )
    made: list[dict[str, Any]] = []
    for number in range(steps):
        name = files[number // 3 % len(files)]
        kind = number % 3
        start = 1 + 60 * (number // (3 * len(files)))
        if kind == 2:
            made.append({"command": f"echo '# {number}' >> {name} && python3 -m unittest -v test_small 2>&1"})
        elif own_tools and kind == 0:
            span = {"offset": start, "limit": 200}
            made.append({"file_path": name, **span} if own_tools == "claude" else {"path": name, **span})
        elif own_tools:
            keys = (
                ("file_path", "old_string", "new_string") if own_tools == "claude" else ("path", "old", "new")
            )
            made.append(dict(zip(keys, (name, '"""', f'"""{number} '), strict=True)) | {"replace_all": True})
        elif kind == 0:
            made.append({"command": f"sed -n '{start},{start + 199}p' {name}"})
        else:
            made.append(
                {"command": f'sed -i \'s/"""/"""{number} /\' {name} && git diff --stat {name} | tail -3'}
            )
    return made


def called(call: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """Return a call under the name that the agent's own tool has."""
    if "command" in call:
        wanted = ("Bash", "bash")
    elif "limit" in call:
        wanted = ("Read", "read_file")
    else:
        wanted = ("Edit", "edit_file")
    name = next(word for word in wanted if word in names)
    return {"name": name, "input": call}


class Agent(NamedTuple):
    """How one agent is run: its command, what its environment adds."""

    name: str
    command: list[str]
    environment: dict[str, str]
    own_tools: str = ""


def run(agent: Agent, steps: int, wire: str) -> dict[str, Any]:
    """Run a trajectory and return what it cost."""
    calls, cache = work(steps, agent.own_tools), Cache()
    sums, main, out = [0, 0, 0], 0, 0
    with tempfile.TemporaryDirectory() as place, FakeModels() as fake:
        project, home = Path(place) / "project", Path(place) / "home"
        shutil.copytree(
            ROOT / "src/bowerbird/agent/turn_loop", project, ignore=shutil.ignore_patterns("__pycache__")
        )
        home.mkdir()
        (project / "test_small.py").write_text(TEST)
        for words in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "a"],
        ):
            subprocess.run(["git", *words], cwd=project, check=True)

        def answer(body: dict[str, Any], _number: int) -> dict[str, Any]:
            nonlocal main, out
            found = cache.anthropic(body) if wire == "anthropic" else cache.openai(body)
            for at, value in enumerate(found):
                sums[at] += value
            said = [
                tool.get("name") or tool.get("function", {}).get("name") for tool in body.get("tools") or []
            ]
            names = {str(name) for name in said}
            step: dict[str, Any] = {"text": "Done."}
            if names & {"bash", "Bash"}:
                at, main = main, main + 1
                if at < steps:
                    step = {"text": "I go on with the next step.", "tools": [called(calls[at], names)]}
                elif agent.name.startswith("mini"):
                    step = {"text": "Done.", "tools": [{"name": "bash", "input": {"command": SUBMIT}}]}
            out += size(step)
            usage = {
                "input": found.input,
                "output": size(step),
                "cache_read": found.read,
                "cache_write": found.write,
            }
            return step | {"usage": usage}

        fake.without |= {rule.name for rule in RULES}  # it prices; what is refused is seen elsewhere
        fake.answer(answer)
        url = {"anthropic": fake.anthropic_url, "openai": fake.openai_url}[wire]
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", "LANG": "C.UTF-8",
            f"{wire.upper()}_API_KEY": "k-for-nothing", f"{wire.upper()}_BASE_URL": url, f"{wire.upper()}_API_BASE": url,
            **agent.environment,
        }  # fmt: skip
        command = [part.replace("PLACE", place) for part in agent.command]
        done = subprocess.run(
            command, check=False, cwd=project, env=environment, capture_output=True, text=True, timeout=500
        )
        refused = list(fake.refused)
    if main < steps:
        end = (done.stderr or done.stdout)[-600:]
        raise RuntimeError(f"{agent.name} ended after {main} of {steps} steps: {refused[:1]} {end}")
    price = ANTHROPIC if wire == "anthropic" else OPENAI
    cost = sum(n * p for n, p in zip((*sums, out), price, strict=True)) / 1e6
    whole = sum(sums)
    return {
        "cost": cost,
        "input": whole,
        "cached": sums[2] / whole if whole else 0.0,
        "output": out,
        "requests": main,
    }


def agents(mini: str | None, claude: str | None, wire: str) -> list[Agent]:
    """Return who is there."""
    model = "anthropic:claude-sonnet-4-5" if wire == "anthropic" else "openai:gpt-5"
    ours = [
        sys.executable,
        "-m",
        "bowerbird",
        "run",
        "--json",
        "--yes",
        "--max-turns",
        "200",
        "--model",
        model,
        TASK,
    ]
    found = [Agent("bowerbird", ours, {}), Agent("bowerbird, file tools", ours, {}, "bowerbird")]
    if mini:
        words = [
            mini,
            "-t",
            TASK,
            "-m",
            model.replace(":", "/"),
            "--yolo",
            "--exit-immediately",
            "-o",
            "PLACE/out.json",
        ]
        quiet = {
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_SILENT_STARTUP": "1",
        }
        found.append(Agent("mini-swe-agent", words, quiet))
    if claude and wire == "anthropic":
        words = [
            claude, "-p", TASK, "--model", "claude-sonnet-4-5", "--permission-mode", "acceptEdits", "--allowedTools",
            "Bash", "Read", "Edit", "--output-format", "json",
        ]  # fmt: skip
        quiet = {
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }
        found += [
            Agent("claude code", words, quiet),
            Agent("claude code, file tools", words, quiet, "claude"),
        ]
    return found


def main() -> int:
    """Print the table; see the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, nargs="+", default=[10, 30, 80])
    parser.add_argument("--mini", help="the program `mini` of a mini-swe-agent in an environment of its own")
    parser.add_argument("--claude", help="the program `claude`")
    asked = parser.parse_args()
    for name in ("mini", "claude"):
        if getattr(asked, name) is None:
            print(f"{name}: not there (--{name}); left out")
    missed: list[str] = []
    print(f"{'wire':10} {'agent':26} {'steps':>5} {'cost':>8} {'input':>10} {'cached':>7} {'output':>7}")
    for wire in ("anthropic", "openai"):
        for steps in asked.steps:
            costs: dict[str, float] = {}
            for agent in agents(asked.mini, asked.claude, wire):
                try:
                    row = run(agent, steps, wire)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    print(f"{wire:10} {agent.name:26} {steps:5}  not run: {str(error)[:700]}")
                    continue
                costs[agent.name] = row["cost"]
                print(
                    f"{wire:10} {agent.name:26} {steps:5} {row['cost']:8.4f} {row['input']:10,} {row['cached']:7.1%}"
                    f" {row['output']:7,}",
                    flush=True,
                )
            for mine, rival, bar in (
                ("bowerbird", "claude code", BARS["claude"]), ("bowerbird", "mini-swe-agent", BARS["mini"]),
                ("bowerbird, file tools", "claude code, file tools", BARS["claude"]),
            ):  # fmt: skip
                if steps == 30 and mine in costs and rival in costs:
                    share = costs[mine] / costs[rival]
                    print(f"{'':10} {mine} is {share:.2f} × {rival}; the bar is {bar}")
                    missed += [f"{wire}: {mine} against {rival}"] if share > bar else []
    print(f"missed: {'; '.join(missed)}" if missed else "no bar was missed")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
