"""GI-12, GI-13: what commands see of the user's Git configuration, in both tiers (finding 9)."""

import subprocess
from pathlib import Path
from typing import Literal

import pytest
from support.sandboxes import bench_of

from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace.git.shown_values import about_content, config_text

USERS = """\
[user]
    name = Ann
    email = ann@home.test
    signingKey = s3cret
[core]
    excludesFile = {home}/ignored
    fsmonitor = /bin/false
    hooksPath = {home}/hooks
    editor = /bin/false
[init]
    defaultBranch = trunk
[alias]
    s = status --short
    run = !cat /etc/passwd
[diff]
    algorithm = histogram
    external = /bin/false
[pull]
    rebase
[credential]
    helper = store
[http]
    extraHeader = s3cret
[url "https://ann:s3cret@example.org/"]
    insteadOf = ex:
[includeIf "gitdir:{home}/ws/"]
    path = {home}/work
[include]
    path = {home}/missing
"""


@pytest.mark.parametrize("tier", ["overlay", "copy"])
async def test_values_about_content_are_the_users_and_nothing_else_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tier: Literal["overlay", "copy"]
):
    (tmp_path / "gitconfig").write_text(USERS.format(home=tmp_path))
    (tmp_path / "ignored").write_text("*.mine\n")
    (tmp_path / "work").write_text("[user]\n    email = ann@work.test\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    async with bench_of(tmp_path, {"a.txt": "a\n"}, settings=SandboxSettings(tier=tier), needs=tier) as bench:
        subprocess.run(["git", "init", "-q", "-b", "trunk", bench.root], check=True)
        subprocess.run(["git", "-C", bench.root, "config", "user.name", "Ann of here"], check=True)
        ran = await bench.sandbox.run(
            "git add . && git commit -qm one && git log --format='%an %ae' && touch x.mine y && git s && "
            "git init -q new && git -C new branch --show-current && "
            "git config diff.algorithm && git config --global core.eol lf && git config core.eol"
        )
        assert ran.output == ("Ann of here ann@work.test\n?? y\ntrunk\nhistogram\nlf\n"), (
            "the repository's own name is stronger; the conditional include and the ignored names hold"
        )
        shown = (await bench.sandbox.run("git config -l")).output.lower()
        for secret in ("s3cret", "passwd", "/bin/", "hooks", "credential", "include", "insteadof"):
            assert secret not in shown, shown


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("user.name", "Ann", True),
        ("user.signingkey", "ABC", False),
        ("core.autocrlf", "input", True),
        ("core.excludesfile", "~/.ignore", False),  # given as content, under a path of ours
        ("core.attributesfile", "~/.attributes", False),
        ("core.fsmonitor", "/bin/watch", False),
        ("core.hookspath", "/hooks", False),
        ("core.sshcommand", "ssh -i key", False),
        ("core.pager", "less", False),
        ("core.editor", "vi", False),
        ("core.worktree", "/", False),
        ("core.gitproxy", "x", False),
        ("commit.gpgsign", "true", False),
        ("gpg.program", "gpg", False),
        ("init.defaultbranch", "trunk", True),
        ("init.templatedir", "/t", False),
        ("alias.lg", "log --graph", True),
        ("alias.x", "!rm -rf .", False),
        ("alias.x", "  !sh", False),
        ("alias.x", "-c http.extraHeader=s3cret fetch", False),
        ("alias.x", "-c core.sshCommand=x fetch", False),
        ("alias.x", "fetch https://ann:pw@example.org", False),
        ("diff.algorithm", "histogram", True),
        ("diff.external", "x", False),
        ("diff.orderfile", "/o", False),
        ("diff.word.xfuncname", "^x", True),
        ("diff.word.textconv", "x", False),
        ("diff.word.command", "x", False),
        ("merge.conflictstyle", "zdiff3", True),
        ("merge.tool", "meld", False),
        ("merge.mine.driver", "x", False),
        ("merge.mine.name", "x", False),  # Git stops at a driver that has a name and no program
        ("filter.lfs.smudge", "git-lfs smudge", False),
        ("credential.helper", "store", False),
        ("credential.https://a.test.username", "ann", False),
        ("url.https://ann:pw@a.test/.insteadof", "a:", False),
        ("http.extraheader", "s3cret", False),
        ("http.proxy", "http://ann:pw@p", False),
        ("include.path", "/x", False),
        ("remote.origin.url", "https://ann:pw@a.test", False),
        ("sendemail.smtppass", "s3cret", False),
        ("safe.directory", "/x", False),
        ("maintenance.repo", "/x", False),
    ],
)
def test_each_kind_of_value_is_shown_or_not(key: str, value: str, shown: bool):
    assert about_content([(key, value)]) == ([(key, value)] if shown else [])


@pytest.mark.parametrize("value", ['a "b" \\ c', " spaces ", "# ; x", "two\nlines\tx", "", "é"])
def test_values_are_read_as_they_were_written(tmp_path: Path, value: str):
    (tmp_path / "config").write_text(config_text([("alias.x", value), ('diff.a "b".xfuncname', value)]))
    for key in ("alias.x", 'diff.a "b".xfuncname'):
        words = ["git", "config", "--file", str(tmp_path / "config"), "--null", key]
        assert subprocess.run(words, capture_output=True, check=True).stdout.decode() == f"{value}\0"
