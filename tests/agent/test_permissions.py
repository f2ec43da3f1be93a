"""The permission decision (AG-59 … AG-64, TO-49): rules, shell lines, plan mode, and laws by hypothesis."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bowerbird.agent.permissions import Decision, decide, offered
from bowerbird.agent.policy import Policy
from bowerbird.core.errors import InvalidArgument
from bowerbird.core.events import EffectClass
from bowerbird.tools.names import SAFE_TOOLS
from bowerbird.tools.processes.shell_words import read_line


@dataclass(frozen=True)
class Subject:
    """What the decision sees of a tool."""

    name: str
    effect: EffectClass = "branch"
    aliases: tuple[str, ...] = ()
    needs_approval: bool | None = None


BASH = Subject("bash", aliases=("execute", "shell", "run_command"))
READ = Subject("read_file", "read")
WRITE = Subject("write_file")
HOST = Subject("host_execute", "outside")


def judge(tool: Subject, rules: Any = None, mode: Any = "normal", **arguments: Any) -> Decision:
    return decide(tool, arguments, mode, Policy.of(rules))


@pytest.mark.parametrize(
    ("tool", "action"), [(BASH, "allow"), (READ, "allow"), (WRITE, "allow"), (HOST, "ask")]
)
def test_only_what_acts_outside_asks_when_approval_is_off(tool: Subject, action: str) -> None:
    """AG-60, AG-61."""
    assert judge(tool, command="ls").action == action


def test_a_tool_that_a_program_handed_over_needs_no_further_approval() -> None:
    mine = Subject("count_words", "outside")
    assert decide(mine, {}, "normal", Policy(given=frozenset({"count_words"}))).action == "allow"
    asked = Policy.of({"enable_approval": True})
    assert decide(mine, {}, "normal", asked).action == "ask"


@pytest.mark.parametrize("name", sorted(SAFE_TOOLS - {"exit_plan_mode"}))
def test_safe_tools_run_unasked_with_approval_on(name: str) -> None:
    """TO-49."""
    assert judge(Subject(name), {"enable_approval": True}).action == "allow"


@pytest.mark.parametrize("name", ["web_search", "web_fetch", "bash", "write_file"])
def test_all_others_ask_with_approval_on(name: str) -> None:
    """TO-49: a query can carry data out."""
    assert judge(Subject(name, "read"), {"enable_approval": True}).action == "ask"


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        pytest.param("git status", True, id="one"),
        pytest.param("git", True, id="bare"),
        pytest.param("git add . && git commit -m 'a b'", True, id="both"),
        pytest.param("git status; rm -rf x", False, id="one-of-two"),
        pytest.param("git log | sh", False, id="pipe"),
        pytest.param("git log $(rm x)", False, id="substitution"),
        pytest.param("git log `rm x`", False, id="backticks"),
        pytest.param("if true; then rm x; fi", False, id="compound"),
        pytest.param("PATH=/tmp git status", False, id="variable"),
        pytest.param("PATH=/tmp; git status", False, id="assignment"),
        pytest.param("git() { rm x; }; git", False, id="function"),
        pytest.param("$GIT status", False, id="unknown-name"),
        pytest.param("gitx", False, id="longer-name"),
        pytest.param("git status (", False, id="unreadable"),
        pytest.param("'git' status", True, id="quoted"),
        pytest.param("", False, id="empty"),
        pytest.param("git log --format='$(x)'", True, id="text-in-quotes"),
    ],
)
def test_an_allow_rule_must_match_every_simple_command(line: str, allowed: bool) -> None:
    """AG-60."""
    rules = {"allow": ["bash(git *)"], "enable_approval": True}
    assert (judge(BASH, rules, command=line).action == "allow") is allowed


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf x",
        "ls && rm x",
        "'rm' x",
        "r\\m x",
        "/bin/rm x",
        "env rm x",
        "sudo -u me rm x",
        "xargs -n1 rm",
        "find . -exec rm {} ;",
        "sh -c 'ls; rm x'",
        'bash -lc "rm x"',
        "eval rm x",
        "timeout 5 bash -c 'env rm x'",
        "echo $(rm x)",
        "A=1 rm x",
        "$CMD x",
        "rm (",
    ],
)
def test_a_deny_rule_matches_wherever_the_command_hides(line: str) -> None:
    assert judge(BASH, {"deny": ["bash(rm *)"]}, command=line).action == "deny"


@pytest.mark.parametrize("line", ["ls -la", "echo rm x", "git rm x", "cat 'rm x'", "grep -r 'rm -rf' ."])
def test_a_deny_rule_leaves_other_commands_alone(line: str) -> None:
    assert judge(BASH, {"deny": ["bash(rm *)"]}, command=line).action == "allow"


def test_deny_wins_over_everything_and_ask_over_allow() -> None:
    rules = {"deny": ["bash(rm *)"], "ask": ["bash(git push *)"], "allow": ["bash"], "auto_approve": True}
    assert judge(BASH, rules, command="rm x").action == "deny"
    assert judge(BASH, {**rules, "auto_approve": False}, command="git push").action == "ask"
    assert judge(BASH, rules, command="git push").action == "allow"
    assert judge(BASH, {**rules, "auto_approve": False}, command="ls").action == "allow"


def test_a_rule_for_an_alias_holds_for_the_tool() -> None:
    """TO acceptance 8."""
    assert judge(BASH, {"deny": ["run_command"]}, command="ls").action == "deny"


@pytest.mark.parametrize(
    ("path", "action"),
    [
        ("src/a.py", "allow"),
        ("/src/a.py", "allow"),
        ("./src/../src/a.py", "allow"),
        ("docs/a.md", "ask"),
        ("src/../docs/a.md", "ask"),
    ],
)
def test_patterns_of_file_tools_match_paths(path: str, action: str) -> None:
    rules = {"allow": ["write_file(src/*)"], "enable_approval": True}
    assert judge(WRITE, rules, path=path, content="src/x").action == action


def test_a_move_must_be_allowed_at_both_ends() -> None:
    move = Subject("move_file")
    rules = {"allow": ["move_file(src/*)"], "enable_approval": True}
    assert judge(move, rules, src="src/a", dst="src/b").action == "allow"
    assert judge(move, rules, src="src/a", dst="b").action == "ask"


def test_globs_of_tool_names_match() -> None:
    assert judge(Subject("mcp__docs__find", "outside"), {"allow": ["mcp__docs__*"]}).action == "allow"


def test_a_role_lists_the_only_tools() -> None:
    assert judge(BASH, {"role": ["read_file"]}, command="ls").action == "deny"
    role = Policy.of({"role": ["read_file", "ls"]})
    ls = Subject("ls", "read")
    assert offered([READ, ls, BASH], "normal", role, full=False) == (READ, ls)


@pytest.mark.parametrize(
    ("tool", "arguments", "action"),
    [
        (READ, {}, "allow"),
        (Subject("enter_plan_mode", "plan"), {}, "allow"),
        (Subject("exit_plan_mode", "plan"), {}, "allow"),
        (Subject("task_create", "session"), {}, "allow"),
        (Subject("task_list", "read"), {}, "allow"),
        (Subject("todo_write", "session"), {}, "deny"),
        (Subject("task"), {"agent_type": "explore"}, "allow"),
        (Subject("task"), {"agent_type": "code"}, "deny"),
        (Subject("task"), {}, "deny"),
        (BASH, {"command": "ls"}, "deny"),
        (WRITE, {"path": "a"}, "deny"),
        (HOST, {}, "deny"),
    ],
)
def test_plan_mode_denies_all_but_reading_and_planning(
    tool: Subject, arguments: dict[str, Any], action: str
) -> None:
    """AG-64; AG acceptance 6."""
    assert decide(tool, arguments, "plan", Policy.of({"allow": [tool.name]})).action == action


def test_the_way_out_of_plan_mode_is_offered_there_and_with_the_full_set_and_runs_in_plan_mode_only() -> None:
    leave = Subject("exit_plan_mode", "plan")
    for mode, full, there in (("plan", False, True), ("normal", False, False), ("normal", True, True)):
        assert (leave in offered([leave, BASH], mode, Policy(), full=full)) is there
    assert decide(leave, {}, "plan", Policy()).action == "allow"
    assert decide(leave, {}, "normal", Policy()).action == "deny"


def test_plan_mode_takes_no_tool_out_of_what_is_sent() -> None:
    assert BASH in offered([READ, BASH, WRITE], "plan", Policy(), full=False)


@pytest.mark.parametrize(
    ("there", "shown"),
    [
        (("bash", "run_python", "delete_file", "mcp__x__ls"), ("bash", "mcp__x__ls")),
        (("run_python_code", "delete_file", "ls"), ("run_python_code", "delete_file")),
        (("task_list", "todo_write", "todo_add"), ("todo_write",)),
        (("task_list", "spawn_teammate"), ("task_list", "spawn_teammate")),
    ],
)
def test_the_default_set_leaves_out_what_another_tool_that_is_there_does(
    there: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    tools = [Subject(name) for name in there]
    assert tuple(tool.name for tool in offered(tools, "normal", Policy(), full=False)) == shown
    assert offered(tools, "normal", Policy(), full=True) == tuple(tools)


@pytest.mark.parametrize(
    "patch",
    [
        "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-a\n+b\n--- a/migrations/1.sql\n+++ b/migrations/1.sql\n@@\n-a\n+b\n",
        "--- migrations/1.sql\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
        "*** Begin Patch\n*** Update File: src/a.py\n*** Move to: src/../migrations/1.sql\n*** End Patch\n",
        "*** Begin Patch\n*** Delete File: ./migrations/1.sql\n*** End Patch\n",
    ],
)
def test_a_rule_about_a_path_reaches_each_file_of_a_patch(patch: str) -> None:
    tool = Subject("apply_patch")
    assert judge(tool, {"deny": ["*(migrations/*)"]}, patch=patch).action == "deny"
    assert judge(tool, {"ask": ["*(migrations/*)"], "enable_approval": True}, patch=patch).action == "ask"
    assert judge(tool, {"deny": ["*(db/*)"]}, patch=patch).action == "allow"


@pytest.mark.parametrize("rules", ["bash", {"denny": []}, ["bash(rm *)"], {"deny": ["1 2"]}, {"deny": "x"}])
def test_a_policy_that_cannot_be_read_is_refused(rules: Any) -> None:
    with pytest.raises(InvalidArgument):
        Policy.of(rules)


def test_a_policy_survives_its_plain_form() -> None:
    policy = Policy.of(["deny bash(rm *)", "ask web_fetch", "allow bash(git *)"], enable_approval=True)
    assert Policy.of(policy.to_data()) == policy


NAMES = st.sampled_from(["bash", "read_file", "write_file", "web_fetch", "task", "mine"])
TOOLS = st.builds(
    Subject,
    name=NAMES,
    effect=st.sampled_from(["read", "plan", "session", "branch", "outside"]),
    needs_approval=st.sampled_from([None, True, False]),
)
LINES = st.lists(st.sampled_from(["git status", "rm x", "ls", "$X y", "git $(rm x)", "env rm x"]), max_size=4)
RULES = st.lists(st.sampled_from(["bash", "bash(git *)", "bash(rm *)", "read_file", "mine", "*"]), max_size=3)
POLICIES = st.builds(
    lambda deny, ask, allow, approval, auto: Policy.of(
        {"deny": deny, "ask": ask, "allow": allow, "enable_approval": approval, "auto_approve": auto}
    ),
    RULES, RULES, RULES, st.booleans(), st.booleans(),
)  # fmt: skip
STRICT = {"allow": 0, "ask": 1, "deny": 2}


@given(tool=TOOLS, lines=LINES, policy=POLICIES, mode=st.sampled_from(["normal", "plan"]), extra=RULES)
def test_a_further_deny_rule_and_plan_mode_never_loosen(
    tool: Subject, lines: list[str], policy: Policy, mode: Any, extra: list[str]
) -> None:
    arguments = {"command": "; ".join(lines)}
    before = decide(tool, arguments, mode, policy)
    stricter = Policy.of({**policy.to_data(), "deny": [*policy.to_data().get("deny", []), *extra]})
    assert STRICT[decide(tool, arguments, mode, stricter).action] >= STRICT[before.action]
    planned = decide(tool, arguments, "plan", policy)
    if tool.effect not in ("read", "plan"):
        assert planned.action == "deny"
    assert before.reason


@given(st.text(max_size=80))
@example("{\U0010ffff<")  # ended the process
@example("rm \U000fffff\x00")
def test_any_text_can_be_read_as_a_line(text: str) -> None:
    line = read_line(text)
    assert all(isinstance(c.text, str) for c in (*line.commands, *line.hidden))


def test_words_outside_ascii_keep_their_letters_and_make_no_assignment() -> None:
    assert [c.words for c in read_line("rm dé.txt 日本語 '🐦'").commands] == [
        ("rm", "dé.txt", "日本語", "🐦")
    ]
    assert read_line("é=1 rm x").commands[0].words == ("é=1", "rm", "x")
