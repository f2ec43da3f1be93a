"""A directory full of traps: whatever is done in it, none of its programs runs on the host.

Each trap, when it runs, leaves a file named after it. What runs in the sandbox is no concern here: no command of
the agent runs in these stories.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.desk import Desk
from support.patience import HANG_S

MODULES = ("pip", "json", "typing", "asyncio", "mcp_server_time", "venv", "sitecustomize", "usercustomize")
PROGRAMS = (
    "git", "rg", "bwrap", "npx", "node", "npm", "uv", "less", "sh", "python3", "codex", "claude", "gemini", "systemctl",
)  # fmt: skip
KEYS = {
    "core.fsmonitor": "{0}", "core.sshCommand": "{0}", "core.pager": "{0}", "core.editor": "{0}",
    "core.hooksPath": "hooks", "core.gitProxy": "{0}", "core.askPass": "{0}", "core.alternateRefsCommand": "{0}",
    "credential.helper": "!{0}", "gpg.program": "{0}", "gpg.ssh.program": "{0}", "gpg.ssh.defaultKeyCommand": "{0}",
    "log.showSignature": "true", "commit.gpgSign": "true", "tag.gpgSign": "true", "diff.external": "{0}",
    "diff.x.textconv": "{0}", "diff.x.command": "{0}", "merge.x.driver": "{0}", "sequence.editor": "{0}",
    "uploadpack.packObjectsHook": "{0}", "interactive.diffFilter": "{0}", "trailer.x.command": "{0}",
    "trailer.x.cmd": "{0}", "alias.log": "!{0}", "alias.status": "!{0}", "pager.log": "{0}",
    "submodule.x.update": "!{0}", "gc.recentObjectsHook": "{0}", "lfs.extension.x.clean": "{0}",
    "remote.origin.vcs": "x", "remote.origin.uploadpack": "{0}", "remote.origin.url": "ext::{0}",
    "remote.origin.promisor": "true", "protocol.ext.allow": "always", "hook.x.command": "{0}",
    "hook.x.event": "pre-commit", "difftool.x.cmd": "{0}", "mergetool.x.cmd": "{0}", "diff.x.cachetextconv": "true",
}  # fmt: skip
FILTERS = {
    "filter.x.clean": "{0}",
    "filter.x.smudge": "{0}",
    "filter.x.process": "{0}",
    "filter.x.required": "true",
}
HOOKS = (
    "pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-index-change", "post-checkout",
    "reference-transaction", "fsmonitor-watchman",
)  # fmt: skip


class Traps:
    """The traps of one project. `sprung` names those that ran."""

    def __init__(self, project: Path, told: Path) -> None:
        self.project, self._told = project, told
        told.mkdir()

    @property
    def sprung(self) -> list[str]:
        return sorted(os.listdir(self._told))

    def git(self, *words: str) -> None:
        subprocess.run(["/usr/bin/git", *words], cwd=self.project, check=True, capture_output=True)

    def script(self, path: str, name: str) -> Path:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'#!/bin/sh\n: > "{self._told}/{name}"\n')
        file.chmod(0o755)
        return file

    def lay_files(self) -> None:
        for name in MODULES:
            package = self.project / name
            package.mkdir()
            for file in ("__init__.py", "__main__.py", "tool.py"):
                (package / file).write_text(f"open({str(self._told / ('module-' + name))!r}, 'w').close()\n")
        for name in PROGRAMS:
            for place in ("bin", "node_modules/.bin", ".venv/bin"):
                self.script(f"{place}/{name}", f"program-{name}")
        (self.project / "package.json").write_text('{"name": "x", "bin": {"server-files": "bin/npx"}}')
        (self.project / ".npmrc").write_text(
            f"script-shell={self.project}/bin/sh\nnode-options=--require ./x.js\n"
        )
        (self.project / ".envrc").write_text(f': > "{self._told}/envrc"\n')
        (self.project / "pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:9/\n")
        (self.project / ".pip").mkdir()

    def lay_git(self, *, filters: bool) -> None:
        self.git("init", "-q")
        self.git("config", "user.name", "Ann")
        self.git("config", "user.email", "ann@example.org")
        (self.project / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
        self.git("add", "a.txt", ".gitattributes")
        self.git("commit", "-q", "-m", "begin")
        self.git("checkout", "-q", "-b", "other")
        self.git("checkout", "-q", "-")
        for key, value in {**KEYS, **(FILTERS if filters else {})}.items():
            trap = self.script(f"traps/{key}", key)
            self.git("config", key, value.format(trap))
        for folder in (".git/hooks", "hooks"):
            for name in HOOKS:
                self.script(f"{folder}/{name}", f"hook-{name}")


@pytest.fixture
def trapped(desk: Desk) -> Traps:
    traps = Traps(desk.project, desk.home / "told")
    traps.lay_files()
    real = desk.environment["PATH"]
    absolute = [str(desk.project / place) for place in ("bin", "node_modules/.bin", ".venv/bin")]
    desk.environment["PATH"] = os.pathsep.join(["bin", "./node_modules/.bin", "", *absolute, real])
    desk.environment["PIP_INDEX_URL"] = "http://127.0.0.1:9/"
    desk.environment["npm_config_registry"] = "http://127.0.0.1:9/"
    return traps


def settings(desk: Desk, **given: Any) -> None:
    place = desk.home / ".bowerbird"
    place.mkdir(exist_ok=True)
    (place / "config.yaml").write_text(json.dumps(given))


def test_no_command_runs_a_program_of_the_directory(desk: Desk, trapped: Traps) -> None:
    for words in (
        ("doctor",), ("where",), ("model", "fetch"), ("model", "list"), ("agents", "list"), ("agents", "check"),
        ("agents", "install", "codex"), ("config", "check"), ("sessions",), ("skills", "list"), ("tools",), ("disk",),
        ("sandbox",), ("mcp", "list"),
    ):  # fmt: skip
        desk.run(*words)
    assert trapped.sprung == []


def test_servers_and_hooks_of_the_settings_run_nothing_of_the_directory(
    desk: Desk, trapped: Traps, written: Callable[[str, str], dict[str, Any]]
) -> None:
    python = str(Path(sys.executable).resolve())
    settings(
        desk,
        mcp_servers={
            "time": {"command": python, "args": ["-m", "mcp_server_time"], "start_timeout": 3},
            "files": {"command": "npx", "args": ["--yes", "--offline", "server-files", "."], "start_timeout": 3},
        },
        hooks={
            "before_tool": [f"{python} -m json.tool --help >/dev/null"], "turn_end": ["git --version"],
            "before_land": ["python3 -c 'import typing'"],
        },
    )  # fmt: skip
    desk.edit(written("b.txt", "b\n"))
    desk.ok("make b", "-q")
    desk.ok("diff")
    desk.ok("land", "--yes")
    desk.ok("undo")
    assert trapped.sprung == []


@pytest.mark.parametrize("client", ["server"], indirect=True)  # here the person's own git makes the commit
def test_git_of_a_server_runs_nothing_that_a_repository_names(
    desk: Desk, trapped: Traps, written: Callable[[str, str], dict[str, Any]]
) -> None:
    """With filters of its own the commit is refused; all else lands, is committed, shown and undone."""
    trapped.lay_git(filters=False)
    for commit in (("--commit",), ("--branch", "fix"), ()):
        desk.edit(written("a.txt", f"{commit}\n"), written(f"new{len(commit)}.txt", "new\n"))
        desk.ok("change it", "-q")
        desk.ok("diff")
        code, out, err = desk.run("land", "--yes", *commit)
        assert code == 0, (out, err)
        desk.run("undo", "--yes")
    assert trapped.sprung == []


@pytest.mark.parametrize("client", ["server"], indirect=True)
@pytest.mark.parametrize("key", ["filter.x.clean", "filter.x.smudge", "filter.x.process"])
def test_a_filter_of_a_repository_runs_at_no_server(
    desk: Desk, trapped: Traps, key: str, written: Callable[[str, str], dict[str, Any]]
) -> None:
    """The user edits the same file meanwhile, so that versions of it have to be told apart."""
    trapped.lay_git(filters=False)
    trapped.git("config", key, str(trapped.script(f"traps/{key}", key)))
    desk.edit(written("a.txt", "ONE\ntwo\nthree\n"))
    desk.ok("change it", "-q")
    (desk.project / "a.txt").write_text("one\ntwo\nTHREE\n")
    for commit in ("--commit",), ("--branch", "fix"):
        code, _, err = desk.run("land", "--yes", *commit)
        assert code != 0 and "filters" in err
    desk.ok("land", "--yes")
    assert trapped.sprung == [] and (desk.project / "a.txt").read_text() == "ONE\ntwo\nTHREE\n"


@pytest.mark.parametrize("client", ["server"], indirect=True)
def test_filters_of_the_user_s_own_configuration_refuse_no_commit(
    desk: Desk, tmp_path: Path, written: Callable[[str, str], dict[str, Any]]
) -> None:
    """As where git-lfs is installed, whose package writes into the system's configuration."""
    traps = Traps(desk.project, tmp_path / "told")
    traps.git("init", "-q")
    traps.git("config", "user.name", "Ann")
    traps.git("config", "user.email", "ann@example.org")
    (desk.project / ".gitattributes").write_text("*.txt filter=upper\n")
    traps.git("add", "-A")
    traps.git("commit", "-q", "-m", "begin")
    (desk.home / ".gitconfig").write_text('[filter "upper"]\n\tclean = tr a-z A-Z\n\trequired = true\n')
    desk.edit(written("b.txt", "b\n"))
    desk.ok("make b", "-q")
    desk.ok("land", "--yes", "--commit")
    shown = subprocess.run(
        ["/usr/bin/git", "show", "HEAD:b.txt"], cwd=desk.project, capture_output=True, check=True
    )
    assert shown.stdout == b"B\n" and (desk.project / "b.txt").read_text() == "b\n"


def test_a_landing_at_this_machine_without_a_commit_runs_nothing_that_a_repository_names(
    here: Desk, tmp_path: Path, written: Callable[[str, str], dict[str, Any]]
) -> None:
    traps = Traps(here.project, tmp_path / "told")
    traps.lay_git(filters=True)
    here.edit(written("a.txt", "A\n"), written("c.txt", "c\n"))
    here.ok("change it", "-q")
    here.ok("diff")
    here.ok("land", "--yes")
    here.ok("undo")
    assert traps.sprung == []


def test_started_as_a_module_it_takes_none_from_the_directory(here: Desk, tmp_path: Path) -> None:
    traps = Traps(here.project, tmp_path / "told")
    traps.lay_files()
    done = subprocess.run(
        [sys.executable, "-m", "bowerbird", "--version"], cwd=here.project, env=here.environment, timeout=HANG_S,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [
        name for name in traps.sprung if name not in ("module-sitecustomize", "module-usercustomize")
    ] == []
