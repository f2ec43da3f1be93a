"""Flags, caches and the landing policy: pure rules (WS-57, WS-58, WS-65)."""

import pytest

from bowerbird.core.errors import InvalidArgument
from bowerbird.workspace.landing.ignored import Ignored
from bowerbird.workspace.marks.flags import FlagRules, grade_of
from bowerbird.workspace.policy import lands_at, policy_of
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.threeway import Side

PLAIN = Side("file", 0o644, Content(b"x"))
RUNNABLE = Side("file", 0o755, Content(b"x"))


class _BuildIsIgnored:
    def __call__(self, path: str) -> bool:
        return path.startswith("/build")

    def whole(self, directory: str) -> bool:
        return directory.startswith("/build")


@pytest.mark.parametrize(
    ("path", "flags"),
    [
        ("/.github/workflows/ci.yml", ("ci",)),
        ("/sub/.GitHub/Actions/a/action.yml", ("ci",)),
        ("/.github/CODEOWNERS", ("dotfile",)),
        ("/Jenkinsfile", ("ci",)),
        ("/CLAUDE.md", ("agent-config",)),
        ("/docs/skill.md", ("agent-config",)),
        ("/.cursor/rules", ("agent-config",)),
        ("/MEMORY.md", ()),
        ("/.env.production", ("shell-rc",)),
        ("/.envrc", ("shell-rc",)),
        ("/home/.bashrc", ("shell-rc",)),
        ("/.vscode/tasks.json", ("editor-exec",)),
        ("/x.code-workspace", ("editor-exec",)),
        ("/Cargo.lock", ("lockfile",)),
        ("/package.json", ("build-exec",)),
        ("/src/a.py", ()),
        ("/gitignore", ()),
    ],
)
def test_names_are_flagged_at_any_depth_and_in_any_case(path: str, flags: tuple[str, ...]) -> None:
    assert FlagRules().flags(path, PLAIN, PLAIN) == flags


@pytest.mark.parametrize(
    ("old", "new", "flags"),
    [
        (None, RUNNABLE, ("exec-bit",)),
        (PLAIN, RUNNABLE, ("exec-bit",)),
        (RUNNABLE, RUNNABLE, ()),
        (RUNNABLE, PLAIN, ()),
        (RUNNABLE, Side("file", 0o4755, Content(b"x")), ("setuid",)),
        (PLAIN, Side("file", 0o666, Content(b"x")), ("permissions",)),
        (PLAIN, Side("file", 0o777, Content(b"x")), ("exec-bit", "permissions")),
        (PLAIN, Side("file", 0o000, Content(b"x")), ("permissions",)),
        (Side("file", 0o600, Content(b"x")), PLAIN, ("permissions",)),
        (PLAIN, Side("file", 0o600, Content(b"x")), ()),
        (None, Side("file", 0o666, Content(b"x")), ("permissions",)),
        (None, Side("file", 0o664, Content(b"x")), ()),
        (None, Side("file", 0o444, Content(b"x")), ()),
        (None, Side("symlink", target="/etc/passwd"), ("symlink-out",)),
        (None, Side("symlink", target="../../x"), ("symlink-out",)),
        (None, Side("symlink", target="../x"), ()),
        (None, Side("symlink", target="./../x"), ()),
        # `a` may be, or become, a link to anywhere (security 2)
        (None, Side("symlink", target="./a/../../x"), ("symlink-out",)),
        (None, Side("symlink", target="../.git/config"), ("symlink-in",)),
        (None, Side("symlink", target="../.bashrc"), ("symlink-in",)),
    ],
)
def test_what_a_path_becomes_is_flagged(old: Side | None, new: Side, flags: tuple[str, ...]) -> None:
    assert FlagRules().flags("/sub/a", old, new) == flags


def test_settings_add_and_remove_flags() -> None:
    rules = FlagRules(flag=("secret/**",), unflag=("scripts/*.sh",), agent_config=("skills/**",))
    assert rules.flags("/secret/a", PLAIN, PLAIN) == ("configured",)
    assert rules.flags("/scripts/run.sh", None, RUNNABLE) == ()
    assert rules.flags("/skills/x/SKILL.md", None, PLAIN) == ("agent-config",)


def test_the_strictest_flag_decides_and_an_unknown_one_is_strict() -> None:
    assert [grade_of(flags) for flags in ((), ("build-exec", "git-data"), ("build-exec", "ci"), ("new",))] == [
        "free", "held", "needs_accept", "needs_accept",
    ]  # fmt: skip


def test_taint_is_said_even_of_paths_without_flags() -> None:
    """D-6: `landing.unflag` does not vouch for what strangers wrote."""
    marks = FlagRules(unflag=("*",)).marks("/a.py", None, PLAIN, tainted=True)
    assert (marks.flags, marks.grade) == (("tainted",), "held")


@pytest.mark.parametrize(
    ("path", "named", "ignored", "stays"),
    [
        ("/src/__pycache__/a.pyc", [], True, True),
        ("/src/__pycache__/a.pyc", ["/src"], True, True),
        ("/src/__pycache__/a.pyc", ["/src/__pycache__"], True, False),
        ("/node_modules/x/y.js", ["/node_modules/x"], True, False),
        ("/node_modules/x/y.js", ["/"], True, True),
        ("/a.pyc", ["/a.pyc"], True, False),
        ("/src/a.py", [], False, False),
        ("/build/x", [], True, True),
        ("/build/x", ["/build"], True, False),
    ],
)
def test_caches_and_ignored_files_land_only_when_named(
    path: str, named: list[str], ignored: bool, stays: bool
) -> None:
    """WS-65, GI-7."""
    rule = Ignored(FlagRules().is_cache, _BuildIsIgnored(), None)
    assert (rule(path), rule.staying(named)(path, True)) == (ignored, stays)


def test_a_failed_turn_lands_nothing_and_review_lands_only_on_request() -> None:
    """WS-57."""
    landed = {
        (policy, moment)
        for policy in ("review", "turn", "step")
        for moment in ("step", "turn_done", "turn_failed", "turn_cancelled", "turn_interrupted")
        if lands_at(policy, moment)
    }
    assert landed == {("turn", "turn_done"), ("step", "step"), ("step", "turn_done")}
    with pytest.raises(InvalidArgument, match="review, turn or step"):
        policy_of("always")
