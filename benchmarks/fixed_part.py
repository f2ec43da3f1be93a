"""What each request of a session begins with, by group, and what differs between two steps of one turn.

    python benchmarks/fixed_part.py [--model PROVIDER:NAME]

A server with the settings of nobody, and one turn of four steps with a scripted model. Tokens are about: bytes of
JSON by four, as English has; cache marks are left out. Exit code 1 when a step changes anything before its new end.
"""

import argparse
import asyncio
import itertools
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.fake_models import FakeModels
from support.live_server import live_server
from support.provider_rules import unmarked

from bowerbird.tools.builtin import GROUPS

OTHERS = {
    "commands": "bash python background", "agents": "agent spawn team tournament", "tasks": "task todo", "skills": "skill",
    "schedules": "schedule",
}  # fmt: skip
"""Groups of tools that need a service, by words of their names."""


def tokens(value: Any) -> int:
    """About how many tokens `value` is as JSON."""
    return len(json.dumps(value).encode()) // 4


def groups_of(names: list[str]) -> dict[str, str]:
    """The group of each tool."""
    known = {tool.name: group for group, make in GROUPS.items() for tool in make()}
    words = [(word, group) for group, said in OTHERS.items() for word in said.split()]
    return {n: known.get(n) or next((g for word, g in words if word in n), n) for n in names}


async def requests(name: str) -> list[dict[str, Any]]:
    """What one turn of four steps asks."""
    step = {"text": "I look.", "tools": [{"name": "list_files", "input": {"path": "/"}}]}
    with tempfile.TemporaryDirectory() as place, FakeModels() as fake:
        (Path(place) / "workspace").mkdir()
        fake.script(step, step, step, {"text": "done"})
        env = {"OPENAI_API_KEY": "k-for-nothing", "OPENAI_BASE_URL": fake.openai_url}
        async with live_server(Path(place), fake, env=env) as live:
            conversation = await live.conversation(model=name, enable_approval=False)
            path = f"/api/conversations/{conversation}/messages?wait=60"
            await live.http.post(path, json={"content": "Look around."})
        return [unmarked(body) for body in fake.requests]


def told(bodies: list[dict[str, Any]]) -> int:
    """Print the groups of the first request, and how the steps differ; return how many bytes should not."""
    first = bodies[0]
    said: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    tools = {tool.get("name") or tool["function"]["name"]: tool for tool in first["tools"]}
    for name, group in groups_of([*tools]).items():
        said[group] += tokens(tools[name])
        counted[group] += 1
    system = [first["system"]] if "system" in first else first["messages"][:1]
    print(f"{'system prompt':24} {tokens(system):6,}")
    for group, count in said.most_common():
        print(f"{f'tools: {group} ({counted[group]})':24} {count:6,}")
    print(f"{'together':24} {tokens(system) + sum(said.values()):6,}")
    changed = 0
    for number, (earlier, later) in enumerate(itertools.pairwise(bodies), 1):
        same = all(earlier.get(key) == later.get(key) for key in ("tools", "system"))
        kept = later["messages"][: len(earlier["messages"])] == earlier["messages"]
        new = len(json.dumps(later["messages"][len(earlier["messages"]) :]).encode())
        changed += not (same and kept)
        print(
            f"step {number} to {number + 1}: {new:,} bytes at the end, {'nothing' if same and kept else 'MORE'} before"
        )
    return changed


def main() -> int:
    """Print all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="anthropic:claude-sonnet-5-5")
    return 1 if told(asyncio.run(requests(parser.parse_args().model))) else 0


if __name__ == "__main__":
    sys.exit(main())
