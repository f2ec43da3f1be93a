"""The manual's console blocks are what happens: each page is typed into a shell in a fresh home.

Besides, every `bowerbird` line of a block that is not run (`sh`) is one that the command understands, and every
block of settings loads (UI-47, UI-63).
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from ruamel.yaml import YAML
from support.fake_models import FakeModels
from support.patience import patience
from support.walks import is_as_shown, typed_on, walk

from bowerbird.cli.parser import application_of
from bowerbird.cli.terminal.command_line import Anywhere, join_optional_values, read_command_line
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.terminal import Terminal
from bowerbird.config import Settings, load_settings

DOCS = Path(__file__).resolve().parents[2] / "docs"
README = DOCS.parent / "README.md"
PAGES = [page for page in sorted(DOCS.glob("*.md")) if "```console\n" in page.read_text(encoding="utf-8")]
SECTIONS = set(Settings.model_fields)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A tool call of the model."""
    return {"name": name, "input": arguments}


TOTAL = "def total(basket):\n    return sum(PRICES[name] for name in basket)\n"
CHEAPER = """def total(basket):
    full = sum(PRICES[name] for name in basket)
    return full * 9 // 10 if len(basket) >= 10 else full
"""
TEST = (
    "from till import total\n\n\ndef test_ten_pieces_cost_less():\n    assert total(['roll'] * 10) == 540\n"
)
CI = "on: push\n"
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "coming-from.md": [
        {"tools": [call("edit_file", path="numbers.txt", old="five", new="FIVE")]},
        {"text": "Done."},
    ],
    "evaluating.md": [
        {"tools": [call("bash", command="echo 'print(\"hello\")' > hello.py")]},
        {"text": "It prints hello."},
    ],
    "first-steps.md": [
        {"tools": [call("read_file", path="till.py")]},
        {"text": "It adds up the prices of a basket, in cents: a roll is 60, a loaf 420."},
        {"tools": [
            call("edit_file", path="till.py", old=TOTAL, new=CHEAPER),
            call("write_file", path="test_till.py", content=TEST),
        ]},
        {"tools": [call("bash", command="python3 -Bc 'from test_till import *; test_ten_pieces_cost_less()'")]},
        {"text": "From ten pieces on, 10 % is taken off. A test says so, and it passes."},
        {"tools": [call("edit_file", path="till.py", old="420", new="450")]},
        {"text": "A loaf is 4.50 now."},
    ],
    "permissions.md": [
        {"tools": [call("bash", command="git push")]},
        {"text": "I may not push."},
        {"tools": [
            call("write_file", path="notes.md", content="hello\n"),
            call("write_file", path=".github/workflows/ci.yml", content=CI),
        ]},
        {"text": "A note and a workflow."},
    ],
    "recipes.md": [
        {"text": "`total` trusts its input: an unknown name ends it with a KeyError."},
        {"tools": [call("write_file", path="CHANGES.md", content="- 10 % off from ten pieces on\n")]},
        {"text": "CHANGES.md is up to date."},
    ],
}  # fmt: skip


@pytest.mark.timeout(patience(70))
@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_a_page_s_commands_print_what_it_shows(page, tmp_path):
    """Issue 13, point 7: each path was walked literally, and stays so."""
    with FakeModels() as fake:
        fake.script(*ANSWERS.get(page.name, [{"text": "Hello."}]))
        walked = walk(page.read_text(encoding="utf-8"), tmp_path, fake)
    assert len(walked) == len(typed_on(page.read_text(encoding="utf-8")))
    for typed, printed in walked:
        assert is_as_shown(typed.shown, printed), f"$ {typed.command}\nprints\n{printed}"


def sh_lines() -> Iterator[tuple[str, str]]:
    """The command lines of blocks that are not run, by page."""
    for page in (README, *sorted(DOCS.rglob("*.md"))):
        for block in re.findall(
            r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            for line in block.replace("\\\n", " ").splitlines():
                yield page.name, line


def bowerbird_calls(line: str) -> Iterator[list[str]]:
    """The arguments of each `bowerbird` in a line."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.commenters, lexer.whitespace_split = "#", True
        words = list(lexer)
    except ValueError:
        return  # a line of a text of several lines
    here: list[str] | None = None
    for word in [*words, ";"]:
        if here is not None and not set(word) - set("();<>|&"):
            yield [w for w in here if not w.isdigit() or here[0] != "2"]
            here = None
        elif here:
            here.append(word)
        elif word == "bowerbird" or word.endswith("/bin/bowerbird"):
            here = []  # and `docker compose exec bowerbird bowerbird …` begins at the second
        elif here is not None:
            here.append(word)


def test_every_command_line_of_the_manual_is_understood():
    """What a page tells people to type has commands and options that exist."""
    shell = Shell(Anywhere(), Terminal())
    root = typer.main.get_command(application_of(shell))
    wrong: list[str] = []
    seen = 0
    for page, line in sh_lines():
        for arguments in bowerbird_calls(line):
            seen += 1
            try:
                rest = join_optional_values(read_command_line(arguments).arguments)
                if rest and rest[0] != "--version":
                    understand(root, list(rest))
            except Exception as error:  # noqa: BLE001 - whatever the parser says of it is what a reader would be told
                wrong.append(f"{page}: {line.strip()}: {error}")
    assert not wrong, "\n".join(wrong)
    assert seen > 100


def understand(command: Any, arguments: list[str]) -> None:
    """Parse `arguments` down to the command that would run; raises what its parser says."""
    while hasattr(command, "commands"):
        name, *arguments = arguments
        command = command.commands[name]
    command.make_context(command.name, arguments)


def settings_blocks() -> Iterator[Any]:
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for number, block in enumerate(
            re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE), 1
        ):
            if set(YAML(typ="safe").load(block)) <= SECTIONS:
                yield pytest.param(block, id=f"{page.name}-{number}")


@pytest.mark.parametrize("block", list(settings_blocks()))
def test_settings_on_a_page_load_without_a_complaint(block, tmp_path):
    (tmp_path / "config.yaml").write_text(block)
    (tmp_path / "config.yaml").chmod(0o600)
    loaded = load_settings(
        kind="serve",
        env=dict.fromkeys(re.findall(r"\$\{(\w+)\}", block), "x" * 20),
        cwd=tmp_path,
        home=tmp_path,
        config_path="config.yaml",
    )
    assert not loaded.warnings
