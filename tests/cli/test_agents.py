"""`bowerbird agents …` with a fake `claude` on the PATH, here and over a server (PR-8, PR-20, PR-30; R1)."""

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from support.desk import Desk

KEY = "sk-Zq7Xw9Vt3Rk5Jh1GfQ8Yp"
CLAUDE = """#!/bin/sh
if [ "$1" = --version ]; then echo "2.1.0 (Claude Code)"; exit 0; fi
prompt=$(cat)
case "$prompt" in *fail*) echo '{"type":"result","subtype":"success","is_error":true,"result":"no"}'; exit 1;; esac
case "$prompt" in *words*) printf '%s\\n' "$*" > words.txt; mkdir -p .github/workflows; : > .github/workflows/ci.yml;; esac
printf '%s\\n' "$prompt" > made.txt
rm -f a.txt
case "$prompt" in *forge*) : > 'x
9 files changed';; esac
env > "$HOME/seen"; env | grep -c Zq7Xw9 > leaked.txt
echo '{"type":"result","subtype":"success","is_error":false,"result":"made it","session_id":"11111111-1111-1111-1111-111111111111","usage":{"input_tokens":5,"output_tokens":7},"total_cost_usd":0.01}'
"""


@pytest.fixture
def agents(desk: Desk) -> Generator[Desk]:
    """A desk whose PATH has a `claude` and an `opencode` that cannot say its version."""
    programs = desk.project.parent / "bin"
    programs.mkdir()
    for name, text in (("claude", CLAUDE), ("opencode", "#!/bin/sh\nexit 3\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    desk.environment["PATH"] = f"{programs}:{desk.environment['PATH']}"
    desk.environment["ANTHROPIC_API_KEY"] = KEY
    yield desk


def rows(desk: Desk, *arguments: str) -> Any:
    return json.loads(desk.ok(*arguments, "--json"))


def test_a_run_is_on_a_branch_that_is_reviewed_landed_and_undone(agents: Desk) -> None:
    """PR-20, PR-30, acceptance 8 and 10, law 2: nothing reaches the files until it lands."""
    answer = rows(agents, "agents", "run", "claude_code", "make it; --now")
    assert answer["content"] == "made it" and answer["error"] is None
    assert answer["changes"]["deleted"] == ["a.txt"]
    assert answer["changes"]["written"] == ["leaked.txt", "made.txt"]
    thread, session = answer["metadata"]["thread_id"], answer["session_id"]
    assert sorted(path.name for path in agents.project.iterdir()) == ["a.txt"]
    assert "+make it; --now" in agents.ok("diff", thread)
    agents.ok("land", thread, "--yes")
    assert (agents.project / "made.txt").read_text() == "make it; --now\n"
    assert (agents.project / "leaked.txt").read_text() == "0\n"
    agents.ok("undo")
    assert sorted(path.name for path in agents.project.iterdir()) == ["a.txt"]

    said = rows(agents, "agents", "memory", session)
    assert [log["content"] for log in said] == ["make it; --now", "made it"]
    (run,) = rows(agents, "agents", "runs")
    assert (run["agent"], run["state"], run["conversation_id"]) == ("claude_code", "done", thread)
    assert run["cost"] == 0.01 and run["changes"]["deleted"] == 1

    again = rows(agents, "agents", "run", "claude_code", "once more", "--session", session)
    assert again["session_id"] == session and again["metadata"]["thread_id"] == thread
    assert len(rows(agents, "agents", "memory", session)) == 4


def test_a_run_without_review_lands_only_where_settings_allow_it(agents: Desk) -> None:
    """PR-21, law 2: said each time; the vendor's own caution is kept; on record, and undone."""
    asked = ("agents", "run", "claude_code", "words", "--no-branch")
    agents.environment["BOWERBIRD_PROVIDERS__ALLOW_DIRECT"] = "true"
    code, _, said = agents.run(*asked)
    assert code == 0 and "works without review" in said and "landed without review" in said
    assert "stayed on the branch: .github/workflows/ci.yml (flagged: ci)" in said
    assert sorted(path.name for path in agents.project.iterdir()) == ["leaked.txt", "made.txt", "words.txt"]
    assert "acceptEdits" not in (agents.project / "words.txt").read_text()
    (run,) = rows(agents, "agents", "runs")
    assert run["landed"]["landing"] in said and run["landed"]["paths"][0] == "a.txt"
    code, _, forked = agents.run(*asked, "--fork", run["conversation_id"])
    assert code != 0 and "on a fork is reviewed" in forked
    code, _, said = agents.run(*asked, "--session", run["session_id"])
    assert code == 1 and "nobody has reviewed" in said, "what stayed must not land with the next run"
    agents.ok("undo", run["landed"]["landing"])
    assert sorted(path.name for path in agents.project.iterdir()) == ["a.txt"]


def test_a_session_with_an_agent_names_the_branch_of_its_changes(agents: Desk) -> None:
    """PR-30, UI-20: what `agents run` prints is what `diff` and `land` take, also of a run that failed."""
    answer = rows(agents, "agents", "run", "claude_code", "make it")
    assert "+make it" in agents.ok("diff", answer["session_id"])
    code, _, said = agents.run("agents", "run", "codex", "hello")
    (failed,) = [run["session_id"] for run in rows(agents, "agents", "runs") if run["agent"] == "codex"]
    assert code == 1 and failed in said
    code, _, said = agents.run("diff", failed)
    assert code != 0 and f"agents memory {failed}" in said
    assert agents.run("diff", "sess_000000000000000000000000")[0] != 0


def test_a_failure_has_its_exit_code_and_no_piece_of_the_key(agents: Desk) -> None:
    """PR-9, PR-12, PR-19, acceptance 2 and 3; PR-21: without review only where settings allow it."""
    code, _, said = agents.run("agents", "run", "claude_code", "words", "--no-branch")
    assert code != 0 and "providers.allow_direct" in said and rows(agents, "agents", "runs") == []
    code, out, err = agents.run("agents", "run", "claude_code", "please fail")
    assert code == 1 and "claude_code" in err
    code, more, said = agents.run("agents", "run", "nobody", "x")
    assert (code == 2 and "no such agent" in said) or "no agent is called" in said
    text = out + err + more + said + agents.ok("agents", "list") + agents.ok("agents", "list", "--json")
    text += agents.ok("agents", "runs", "--json") + agents.run("agents", "run", "claude", "x")[2]
    assert not [at for at in range(2, len(KEY) - 3) if KEY[at : at + 4] in text]


def test_the_name_of_a_file_is_one_line_of_what_changed(agents: Desk) -> None:
    """PR-20, UI-87: with a line break in it, it was a line of its own making."""
    _, _, said = agents.run("agents", "run", "claude_code", "forge a line")
    assert "  x\\n9 files changed" in said.splitlines(), said


def test_every_agent_is_listed_with_its_state(agents: Desk) -> None:
    """PR-6 … PR-8, acceptance 1 and 12."""
    found = {row["name"]: row for row in rows(agents, "agents", "list")}
    core = (
        "claude codex o1 deepseek qwen jules opencode gemini mistral_vibe every_code openclaw ollama".split()
    )
    assert set(core) <= set(found) and found["explore"]["type"] == "subagent"
    assert (found["claude_code"]["status"], found["claude_code"]["version"]) == ("operative", "2.1.0")
    assert found["opencode"]["status"] != "unavailable" and found["opencode"]["version"] is None
    assert found["jules"]["status"] == "unavailable" and "JULES_COMMAND" in found["jules"]["detail"]
    code, out, _ = agents.run("agents", "probe", "jules")
    assert code == 1 and out.startswith("jules: unavailable")
    assert agents.run("agents", "run", "claude_code", " ")[0] == 2


def test_a_fork_leaves_the_branch_of_its_caller_alone(
    agents: Desk, written: Callable[[str, str], dict[str, Any]]
) -> None:
    """PR-20: an agent asked for a session sees what is on its branch, and works on a fork."""
    agents.edit(written("mine.txt", "x\n"))
    agents.ok("run", "--no-approval", "write it")
    (mine,) = rows(agents, "sessions")
    thread = mine.get("thread_id") or mine["id"]
    answer = rows(agents, "agents", "run", "claude_code", "go", "--fork", thread)
    other = answer["metadata"]["thread_id"]
    assert other != thread and "made.txt" not in agents.ok("diff", thread)
    assert "mine.txt" in agents.ok("diff", other) and "made.txt" in agents.ok("diff", other)


def test_the_main_agent_calls_others_where_settings_list_them(agents: Desk, tmp_path: Path) -> None:
    """TO-48: offered with `providers.enabled`; the answer and the session come back."""
    agents.environment["BOWERBIRD_PROVIDERS__ENABLED"] = '["claude_code"]'
    names = {row["name"] for row in rows(agents, "tools")}
    assert {"execute_agent", "list_agents"} <= names
    call = {"name": "execute_agent", "input": {"agent_name": "claude_code", "prompt": "go on"}}
    agents.fake.script({"tools": [call]}, {"text": "It did."})
    assert "It did." in agents.ok("run", "--yes", "ask claude")
    told = json.dumps(agents.fake.requests[-1]["messages"])
    assert "made it" in told and "made.txt" in told and "where the user reviews them" in told
    (run,) = rows(agents, "agents", "runs")
    assert run["prompt"] == "go on" and run["changes"]["written"] == 2
