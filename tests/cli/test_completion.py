"""Shell completion: which words are offered, and that the shells take the scripts (UI-49)."""

import shutil
import subprocess
from pathlib import Path

import pytest

from bowerbird.cli.completing import candidates
from bowerbird.cli.terminal.command_line import Anywhere
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.terminal import Terminal

ZSH = """
compdef() { : }
compadd() { shift 2; print -l -- "$@" }
_files() { print files }
bowerbird() { print -l land landings }
fpath=($1)
autoload -Uz _bowerbird
words=(bowerbird la) CURRENT=2
_bowerbird
"""


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        pytest.param("--mo", ["--model"], id="a-flag-where-run-is-meant"),
        pytest.param("token ", ["create", "list", "revoke"], id="what-stands-below-a-command"),
        pytest.param("mcp lo", ["login", "logout"], id="some-of-it"),
        pytest.param("token create --ro", ["--role"], id="a-flag-of-it"),
    ],
)
def test_every_command_and_its_flags_are_offered(line: str, offered: list[str]):
    assert candidates(Shell(Anywhere(), Terminal()), line.split(" ")) == offered


def test_zsh_completes_at_the_first_tab(tmp_path: Path, script_of: dict[str, str]):
    """It loads the file at that Tab, and what the file does then is all that happens."""
    (tmp_path / "_bowerbird").write_text(script_of["zsh"], encoding="utf-8")
    zsh = shutil.which("zsh")
    if zsh is None:
        assert '== _bowerbird ]]; then _bowerbird "$@"' in script_of["zsh"]
        return
    done = subprocess.run(
        [zsh, "-f", "-c", ZSH, "zsh", str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["land", "landings"], done.stderr


@pytest.fixture
def script_of(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The script of each shell, as the command prints it."""
    from bowerbird.cli.completing import completion

    scripts: dict[str, str] = {}
    for name in ("bash", "zsh", "fish"):
        completion(Shell(Anywhere(), Terminal()), name=name)
        scripts[name] = capsys.readouterr().out
    return scripts
