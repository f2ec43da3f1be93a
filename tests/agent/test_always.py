"""What "always" means for a call, and what it never reaches (UI-71, AG-60)."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.agent.always import rules_for
from bowerbird.agent.permissions import decide
from bowerbird.agent.policy import Policy
from bowerbird.core.events import EffectClass
from bowerbird.tools.processes.shell_words import read_line

ASKS = Policy.of({"enable_approval": True, "ask": ["*"]})


@dataclass(frozen=True)
class Subject:
    """What the decision sees of a tool."""

    name: str
    effect: EffectClass = "branch"
    aliases: tuple[str, ...] = ()
    needs_approval: bool | None = None


def after(first: dict[str, Any], then: dict[str, Any], name: str = "bash") -> str:
    """Return what is decided of a call once another was always allowed."""
    policy = ASKS.always_allowing(rules_for(name, first))
    return decide(Subject(name), then, "normal", policy).action


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("git push origin main", ["bash(git push *)"]),
        ("git -C .. push", ["bash(git -C .. push)"]),
        ("npm run build -- --prod", ["bash(npm run build *)"]),
        ("uv run pytest -q", ["bash(uv run pytest *)"]),
        ("docker run -it x", ["bash(docker run -it x)"]),
        ("pytest -q tests && ls", ["bash(pytest *)", "bash(ls *)"]),
        ("rm -r build", ["bash(rm -r build)"]),
        ("rm *.py", ["bash(rm [*].py)"]),
        ("./gradlew build", ["bash(./gradlew build)"]),
        ("cat a | wc -l", ["bash(cat *)", "bash(wc *)"]),
        ("ls; ls -l", ["bash(ls *)"]),
    ],
)
def test_a_command_gives_a_rule_for_others_like_it(command: str, rules: list[str]) -> None:
    """UI-71."""
    assert [str(rule) for rule in rules_for("bash", {"command": command})] == rules
    assert after({"command": command}, {"command": command}) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "sudo ls", "sh -c 'ls'", "A=1 ls", "echo $HOME", "echo `id`", 'echo "x', "xargs rm", "find . -delete", "$x y",
        "ls $(rm -r /)", "env ls", "", "rm " + "x" * 400, "python3 - <<< x", "echo 1 | python3", "X=1; ls",
    ],
)  # fmt: skip
def test_what_cannot_be_told_gives_none(command: str) -> None:
    """A command that runs another one, or that depends on a variable, is asked about each time."""
    assert rules_for("bash", {"command": command}) == ()


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("git push origin", "git push origin && rm -r ."),
        ("git push origin", "git reset --hard"),
        ("git push", "git pushx"),
        ("rm *.py", "rm a.py"),
        ("ls", "ls $(rm -r .)"),
        ("ls", "sudo ls"),
        ("ls", "A=1 ls"),
        ("npm run build", "npm run other"),
        ("pytest", "pytestx"),
    ],
)
def test_a_rule_reaches_no_further(first: str, then: str) -> None:
    assert after({"command": first}, {"command": then}) == "ask"


def test_a_file_gives_a_rule_for_its_directory_and_none_for_a_marked_one() -> None:
    """UI-71: a rule never reaches flagged paths."""
    first = {"path": "./src/x/../a.py"}
    assert [str(rule) for rule in rules_for("write_file", first)] == ["write_file(src/*)"]
    assert after(first, {"path": "src/deep/b.py"}, "write_file") == "allow"
    for path in ("b.py", "srcs/b.py", "src/../b.py", "src/.git/hooks/x", "src/.github/workflows/ci.yml"):
        assert after(first, {"path": path}, "write_file") == "ask", path
    assert after({"path": "src/a", "dst": "src/b"}, {"src": "src/a", "dst": "other/b"}, "move_file") == "ask"
    assert rules_for("write_file", {"path": ".github/workflows/ci.yml"}) == ()
    assert [str(rule) for rule in rules_for("write_file", {"path": "top.txt"})] == ["write_file(top.txt)"]


def patch(*paths: str) -> dict[str, Any]:
    return {"patch": "".join(f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n" for path in paths)}


def test_a_patch_gives_a_rule_for_the_tool_that_reaches_no_marked_file() -> None:
    """UI-71: what it writes stands in its text."""
    assert [str(rule) for rule in rules_for("apply_patch", patch("a.py"))] == ["apply_patch"]
    assert rules_for("apply_patch", patch("a.py", ".github/workflows/ci.yml")) == ()
    assert after(patch("a.py"), patch("b.py", "src/c.py"), "apply_patch") == "allow"
    for marked in (patch("b.py", "src/.git/config"), patch("x/../.envrc"), {"patch": "@@ no patch @@"}):
        assert after(patch("a.py"), marked, "apply_patch") == "ask", marked


def test_an_address_gives_a_rule_for_its_host_and_other_tools_one_for_their_name() -> None:
    first = {"url": "https://docs.example/a?b"}
    assert after(first, {"url": "https://docs.example/c"}, "web_fetch") == "allow"
    for url in ("http://docs.example/c", "https://docs.example.evil/c", "https://x@docs.example/c"):
        assert after(first, {"url": url}, "web_fetch") == "ask", url
    assert [str(rule) for rule in rules_for("mcp__mail__send", {"to": "x"})] == ["mcp__mail__send"]
    assert [str(rule) for rule in rules_for("host_execute", {"command": "make a*"})] == [
        "host_execute(make a[*])"
    ]


def test_a_rule_that_denies_wins() -> None:
    """AG-60: deny wins; what a person always allows answers an `ask` rule."""
    rules = rules_for("bash", {"command": "git push"})
    denied = Policy.of({"deny": ["bash(git push --force*)"]}).always_allowing(rules)
    assert decide(Subject("bash"), {"command": "git push --force"}, "normal", denied).action == "deny"
    assert (
        decide(Subject("bash"), {"command": "git push"}, "normal", ASKS.always_allowing(rules)).action
        == "allow"
    )
    assert (
        decide(Subject("bash"), {"command": "git push"}, "plan", ASKS.always_allowing(rules)).action == "deny"
    )


WORDS = st.sampled_from(
    ["git", "ls", "rm", "push", "-rf", "*", "a b", "$x", "'q'", ";", "&&", "|", "sudo", "sh", "-c", "\n"]
)


@given(
    st.lists(WORDS, min_size=1, max_size=6).map(" ".join),
    st.lists(WORDS, min_size=1, max_size=6).map(" ".join),
)
def test_a_rule_allows_only_commands_of_the_same_kind(first: str, then: str) -> None:
    """Whatever is allowed afterwards begins, command by command, as a command of the call that was allowed."""
    assert Policy.of({"always": [str(rule) for rule in rules_for("bash", {"command": first})]})
    if after({"command": first}, {"command": then}) != "allow":
        return
    known = {command.words[0] for command in read_line(first).commands}
    assert {command.words[0] for command in read_line(then).commands} <= known
