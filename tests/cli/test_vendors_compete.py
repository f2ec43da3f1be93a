"""A tournament of other vendors' agents at a terminal, here and over a server (PR-39, DE-21; issue 16, 6)."""

import json
from collections.abc import Callable, Generator
from typing import Any

import pytest
from support.desk import Desk

KEY = "sk-Vn4Yt8Lp2Wd6Hc3Xb9Rk"
TEST = "import calc\nassert calc.add(2, 3) == 5, calc.add(2, 3)\n"
WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
CHECK = "python3 check.py"
_SAY = """printf '%s' '{"type":"result","is_error":false,"result":"fixed","session_id":"s",'
printf '%s\\n' '"usage":{"input_tokens":5,"output_tokens":7},"total_cost_usd":0.25}'
"""
CLAUDE = f"""#!/bin/sh
if [ "$1" = --version ]; then echo "2.1.0 (Claude Code)"; exit 0; fi
cat > "$HOME/prompt"
printf 'def add(a, b):\\n    return a * b\\n' > calc.py
{_SAY}"""
CODEX = """#!/bin/sh
if [ "$1" = --version ]; then echo "codex-cli 0.99.0"; exit 0; fi
cat > "$HOME/prompt"
printf 'def add(a, b):\\n    return a + b\\n' > calc.py
echo '{"type":"thread.started","thread_id":"t-1"}'
echo '{"type":"item.completed","item":{"type":"agent_message","text":"fixed it"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":11,"output_tokens":3}}'
"""


@pytest.fixture
def rivals(desk: Desk) -> Generator[Desk]:
    """A desk with a failing test, a `claude` that mends it wrongly and a `codex` that mends it."""
    programs = desk.project.parent / "bin"
    programs.mkdir()
    for name, text in (("claude", CLAUDE), ("codex", CODEX)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    desk.environment |= {"PATH": f"{programs}:{desk.environment['PATH']}", "OPENAI_API_KEY": KEY}
    desk.environment["ANTHROPIC_API_KEY"] = KEY
    (desk.project / "calc.py").write_text(WRONG)
    (desk.project / "check.py").write_text(TEST)
    yield desk


def own_attempt(desk: Desk, written: Callable[[str, str], dict[str, Any]], text: str) -> None:
    """Script what Bowerbird's own attempt writes."""

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        if any(message["role"] == "assistant" for message in body["messages"]):
            return {"text": "done"}
        return {"tools": [written("calc.py", text)]}

    desk.fake.answer(answer)


def compete(desk: Desk, *more: str) -> dict[str, Any]:
    who = ("--with", "claude_code", "--with", "codex_cli", "--with", "self")
    code, out, err = desk.run("attempt", "make check.py pass", *who, "--check", CHECK, "--json", *more)
    if "checks cannot run here" in err or "needs the network" in out:
        pytest.skip(err or out)
    assert code == 0, err + out
    return json.loads(out)


def test_the_checks_decide_between_three_vendors_and_the_winner_is_merged(
    rivals: Desk, written: Callable[[str, str], dict[str, Any]]
) -> None:
    """PR-39, DE-21 … DE-24: one branch for each, the checks decide, the winner's changes are on the session's
    branch, and the files stay until they land.
    """
    own_attempt(rivals, written, "def add(a, b):\n    return 6\n")
    found = compete(rivals, "--merge")
    by_agent = {row["agent"]: row for row in found["ranking"]}
    assert set(by_agent) == {"claude_code", "codex_cli", "self"}, found
    assert found["winner"] == by_agent["codex_cli"]["handle"] == "subagent_1"
    assert [by_agent[name]["passed"] for name in ("claude_code", "codex_cli", "self")] == [0, 1, 0]
    assert by_agent["claude_code"]["cost"] == 0.25 and by_agent["codex_cli"]["tokens"] == 14
    assert found["merged"]["written"] == ["/calc.py"]
    assert (rivals.project / "calc.py").read_text() == WRONG
    thread = found["conversation_id"]
    listed = {row["handle"]: row for row in json.loads(rivals.ok("subagents", "list", thread, "--json"))}
    assert [listed[f"subagent_{n}"]["agent"] for n in range(3)] == ["claude_code", "codex_cli", "self"]
    whole = json.loads(rivals.ok("subagents", "show", thread, "subagent_1", "--json"))
    said = [(row["role"], row["content"]) for row in whole["transcript"]]
    assert said == [("user", "make check.py pass"), ("assistant", "fixed it")]
    rivals.ok("land", thread, "--yes")
    assert (rivals.project / "calc.py").read_text() == RIGHT
    runs = json.loads(rivals.ok("agents", "runs", "--json"))
    assert {(run["agent"], run["state"]) for run in runs} == {("claude_code", "done"), ("codex_cli", "done")}


def test_nobody_competes_against_fewer_than_were_named(rivals: Desk) -> None:
    """PR-39: one who cannot attempt is named before anything starts, and why."""
    for name, why in (
        ("claude_cod", "there is no agent 'claude_cod'; those that can attempt are"),
        ("claude", "claude does not work on files"),
        ("opencode", "opencode cannot attempt: "),
    ):
        code, _, err = rivals.run("attempt", "x", "--with", name, "--with", "self", "--check", "true")
        assert code in (1, 2) and why in err, err
    code, _, err = rivals.run("attempt", "x", "-n", "2", *["--with", "self"] * 3, "--check", "true")
    assert code in (1, 2) and "3 agents for 2 attempts" in err, err
    assert json.loads(rivals.ok("agents", "runs", "--json")) == []
