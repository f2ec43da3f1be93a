"""Every command, found by walking the parser: help, JSON, exit codes, the manual's page (UI-41 … UI-50, UI-60)."""

from pathlib import Path
from typing import Any

import pytest
from support.desk import Desk

from bowerbird.cli.reference import OWN_EXITS, commands, page
from bowerbird.cli.terminal import exits
from bowerbird.cli.terminal.command_line import COMMANDS

ROOT = Path(__file__).parents[2]
ALL = dict(commands())
NO_JSON = {
    "rename": "its exit code says all",
    "delete": "its exit code says all",
    "agents install": "an installation with progress",
    "completion": "a shell script",
    "serve": "runs until it is stopped",
    "gateway": "runs until it is stopped",
    "subagents discard": "its exit code says all",
    "config init": "writes a file",
    "config schema": "is JSON",
    "model fetch": "a download with progress",
    "mcp add": "its exit code says all",
    "mcp remove": "its exit code says all",
    "mcp import": "its exit code says all",
    "mcp serve": "speaks a protocol",
    "mcp login": "its exit code says all",
    "mcp logout": "its exit code says all",
    "token revoke": "its exit code says all",
    "service install": "writes a file",
    "memory restore": "its exit code says all",
}


def options(command: Any) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


@pytest.mark.parametrize("name", ALL)
def test_each_command_explains_itself_and_refuses_what_it_does_not_know(name: str, here: Desk) -> None:
    code, out, err = here.run(*name.split(), "--help")
    assert code == 0 and not err and f"bowerbird {name}" in out
    code, out, err = here.run(*name.split(), "--nonsense")
    assert code == 2 and "--nonsense" in err and f"bowerbird {name} --help" in err and not out


def test_each_command_that_has_something_to_tell_tells_it_as_json() -> None:
    silent = {name for name, command in ALL.items() if "--json" not in options(command)}
    assert silent == set(NO_JSON)


def test_each_option_has_a_help_text() -> None:
    bare = [
        (name, parameter.name)
        for name, command in ALL.items()
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.help
    ]
    assert not bare


def test_the_manuals_page_is_made_of_the_commands() -> None:
    """Run `python -m bowerbird.cli.reference > docs/reference/commands.md`."""
    assert (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8") == page()


def test_each_exit_code_has_a_meaning() -> None:
    """UI-60."""
    codes = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert codes == set(exits.MEANINGS)
    assert {0, 1, 2, 3, 4, 5, 6, 78, 124, 130, 143} <= codes
    assert set(OWN_EXITS) <= set(ALL)


def test_a_prompt_is_told_from_every_command() -> None:
    assert {name.split()[0] for name in ALL} | {"complete-words"} == set(COMMANDS)


def test_the_list_of_commands_is_whole_on_80_columns(here):
    """UI-84: fourteen of its lines broke off in the middle of a sentence."""
    here.environment["COLUMNS"] = "80"
    lines = here.ok("--help").splitlines()
    assert [line for line in lines if line.endswith("...") and not line.startswith("Usage")] == []
    assert max(map(len, lines)) <= 80
