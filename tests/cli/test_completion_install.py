"""Completion put where a shell looks for it (UI-49)."""

import subprocess
from pathlib import Path

import pytest
from support.desk import Desk


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", ".local/share/bash-completion/completions/bowerbird"),
        ("zsh", ".local/share/zsh/site-functions/_bowerbird"),
        ("fish", ".config/fish/completions/bowerbird.fish"),
    ],
)
def test_the_script_is_put_where_the_shell_finds_it(tmp_path, models, shell, place):
    """UI-49: of the shell that is named, or the one that is used; a second time changes nothing."""
    with Desk(tmp_path, models, None) as desk:
        script = desk.ok("completion", shell)
        desk.environment = {**desk.environment, "SHELL": f"/usr/bin/{shell}"}
        for _ in range(2):
            code, out, err = desk.run("completion", "--install")
            assert (code, out) == (0, "") and place in err
        assert (desk.home / place).read_text() == script


def test_an_unknown_shell_is_said(tmp_path, models):
    with Desk(tmp_path, models, None) as desk:
        desk.environment = {**desk.environment, "SHELL": ""}
        code, _, err = desk.run("completion", "--install")
        assert code == 2 and "choose bash, zsh or fish" in err


def test_a_place_that_cannot_be_written_is_named(tmp_path, models):
    with Desk(tmp_path, models, None) as desk:
        (desk.home / ".config").write_text("a file")
        code, _, err = desk.run("completion", "fish", "--install")
        assert code == 1 and ".config" in err and "Traceback" not in err


def test_bash_completes_with_what_was_installed(tmp_path, models):
    with Desk(tmp_path, models, None) as desk:
        desk.ok("completion", "bash", "--install")
        script = desk.home / ".local/share/bash-completion/completions/bowerbird"
        done = subprocess.run(
            ["bash", "-c", f"source {script} && complete -p bowerbird"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "_bowerbird" in done.stdout and Path(script).stat().st_mode & 0o777 == 0o644
