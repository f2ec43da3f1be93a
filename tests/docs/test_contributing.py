"""A stranger's test: each change that CONTRIBUTING names one file for is made in that file alone, in a copy of
the source, and then works through the command (issue 2, point 7)."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.patience import patience

ROOT = Path(__file__).parent.parent.parent

NEW_TOOL = '''
async def count_words(text: str) -> int:
    """Count the words of a text.

    Args:
        text: The text.
    """
    return len(text.split())


def think_tools'''


def named_file(change: str) -> str:
    """The one file that the table of CONTRIBUTING names for a change."""
    [row] = re.findall(rf"^\| {change}[^|]*\|([^|]*)\|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    return re.findall(r"`(src/[^`]*\.py)`", row)[0]


def edited(copy: Path, change: str, old: str, new: str) -> None:
    file = copy / named_file(change)
    text = file.read_text()
    assert text.count(old) == 1, (
        f"{old!r} is no longer in {file.name}: tell this test how the change is made now"
    )
    file.write_text(text.replace(old, new))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    target = tmp_path / "copy"
    shutil.copytree(ROOT / "src", target / "src", ignore=shutil.ignore_patterns("__pycache__", "ui"))
    return target


@pytest.fixture
def fake() -> Any:
    with FakeModels() as server:
        yield server


def test_each_of_the_four_changes_takes_the_one_file_that_is_named(
    copy: Path, fake: FakeModels, tmp_path: Path
) -> None:
    row = f'        Preset("acme", "openai", "{fake.openai_url}", "ACME_API_KEY"),\n'
    edited(copy, "add a model provider", '        Preset("local",', row + '        Preset("local",')
    edited(copy, "add a tool", "\ndef think_tools", NEW_TOOL)
    edited(
        copy,
        "add a tool",
        'return [Tool(think, effect="read")]',
        'return [Tool(think), Tool(count_words, effect="read")]',
    )
    edited(copy, "change the compaction rule", "FULL_RESULTS = 3", "FULL_RESULTS = 1")
    edited(
        copy,
        "change what lands without asking",
        'Row("lockfile", "package-lock.json',
        'Row("login", "precious.txt", "ours"), Row("lockfile", "package-lock.json',
    )
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    (project / "a.txt").write_text("long line of text\n" * 10)
    read = {"tools": [{"name": "read_file", "input": {"path": "a.txt"}}]}
    write = {"name": "write_file", "input": {"path": "precious.txt", "content": "x"}}
    counted = {"name": "count_words", "input": {"text": "a b c"}}
    fake.script(read, read, {"tools": [counted, write]}, {"text": "done"})
    environment = {
        "HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(copy / "src"),
        "ACME_API_KEY": "key-of-acme-0123",
    }  # fmt: skip

    def bowerbird(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "bowerbird", *arguments], cwd=project, env=environment, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=patience(18),
        )  # fmt: skip

    ran = bowerbird("--model", "acme:model-1", "count the words")
    assert ran.returncode == 0, ran.stderr
    assert fake.headers[0]["authorization"] == "Bearer key-of-acme-0123"
    assert fake.requests[0]["model"] == "model-1"
    last = [message["content"] for message in fake.requests[-1]["messages"] if message["role"] == "tool"]
    assert last[0] == "[Previous: used read_file]" and '{"result":3}' in last
    landed = bowerbird("land", "--yes")
    assert "precious.txt: flagged: login" in landed.stdout + landed.stderr
    assert not (project / "precious.txt").exists()


def test_every_law_names_tests_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| (\d+) [^|]*\| ([^|]*)\|", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 11))
    for _, named in rows:
        places = re.findall(r"`(tests/[^`]*)`", named)
        assert places
        for place in places:
            file, _, name = place.partition("::")
            assert not name or f"def {name}(" in (ROOT / file).read_text(), place
            assert (ROOT / file).is_file(), place
