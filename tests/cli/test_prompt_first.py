"""The prompt stands before the records are open, and whatever is typed meanwhile is right (UI-51, D-14)."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S, patience
from support.terminals import Terminal, clean_environment

pytestmark = pytest.mark.timeout(patience(120))

HELD = """
import json, os, sys

def hold(event, arguments):
    if event == "exec" and getattr(arguments[0], "co_filename", "").endswith("bowerbird/app/application.py"):
        with open(os.environ["IMPORTED"], "w") as file:
            json.dump(sorted(sys.modules), file)
        open(os.environ["HOLD"]).close()  # until the test opens the other end

sys.addaudithook(hold)
from bowerbird.cli.main import main
main()
"""
NOT_BEFORE_THE_PROMPT = (
    "sqlalchemy aiosqlite aiohttp alembic httpx rich mcp markdown_it pygments bowerbird.store.store "
    "bowerbird.store.journal bowerbird.sessions.service bowerbird.sessions.review bowerbird.sandbox "
    "bowerbird.agent bowerbird.tools bowerbird.workspace bowerbird.providers bowerbird.app.parts"
)
MOST_OWN = 130
"""Own modules of a prompt; 476 when all was opened before it."""


class Held:
    """An interactive session whose records do not open before `release`."""

    def __init__(self, place: Path, fake: FakeModels) -> None:
        self.project = place / "project"
        self.project.mkdir()
        self.hold, self.imported = place / "hold", place / "imported"
        os.mkfifo(self.hold)
        self.environment = clean_environment(
            place, ANTHROPIC_API_KEY="sk-ant-0123456789", ANTHROPIC_BASE_URL=fake.anthropic_url,
            HOLD=str(self.hold), IMPORTED=str(self.imported),
        )  # fmt: skip

    @contextmanager
    def prompt(self) -> Iterator[Terminal]:
        """Start it and wait for its prompt, with which nothing is open yet."""
        command = [sys.executable, "-c", HELD]
        with Terminal([], cwd=self.project, environment=self.environment, command=command) as terminal:
            terminal.wait_for("lists commands.")
            terminal.wait_for(">")
            terminal.wait_for("new session")
            yield terminal

    def release(self) -> None:
        """Let the records open."""
        self.hold.open("w").close()


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as made:
        yield made


@pytest.fixture
def held(tmp_path: Path, fake: FakeModels) -> Held:
    return Held(tmp_path, fake)


def test_a_line_that_is_typed_before_the_records_are_open_is_answered(held: Held, fake: FakeModels) -> None:
    """UI-51: the prompt does not wait for what it does not need; the line does."""
    fake.script({"text": "an early bird"})
    with held.prompt() as terminal:
        terminal.send("hello\r")
        terminal.wait_for("> hello")
        assert "an early bird" not in terminal.text
        held.release()
        terminal.wait_for("an early bird")
        terminal.send("\x04")
        assert terminal.wait() == 0
    imported = json.loads(held.imported.read_text())
    early = NOT_BEFORE_THE_PROMPT.split()
    assert [name for name in imported for no in early if name == no or name.startswith(f"{no}.")] == []
    assert len([name for name in imported if name.startswith("bowerbird")]) < MOST_OWN
    history = next((held.project.parent / ".bowerbird").rglob("cli_history"))
    assert "+hello" in history.read_text(), "typed lines are kept from the first session on"


@pytest.mark.parametrize("keys", ["\x04", "\x03\x03"], ids=["ctrl-d", "ctrl-c twice"])
def test_leaving_before_the_records_are_open_is_quiet(held: Held, keys: str) -> None:
    """UI-57: nothing was made, and nothing is said of it."""
    with held.prompt() as terminal:
        before = terminal.text
        for key in keys:
            terminal.send(key)
            if key == "\x03" and "leaves" not in terminal.text:
                terminal.wait_for("again leaves")
        held.release()
        assert terminal.wait(HANG_S) == 0
        assert terminal.is_restored()
        said = terminal.text.removeprefix(before)
    assert "Traceback" not in said and "rror" not in said
    assert "continue with" not in said


@pytest.mark.parametrize("typed", ["", "hello\r"], ids=["nothing typed", "a line typed"])
def test_records_that_cannot_be_opened_end_the_prompt_in_plain_words(held: Held, typed: str) -> None:
    """UI-63: the same words and the same code as where the prompt had waited."""
    data = held.project.parent / ".bowerbird"
    data.mkdir(mode=0o700)
    with held.prompt() as terminal:
        for database in (data / "agent.db", data / "data" / "agent.db"):
            if database.parent.is_dir():
                database.write_bytes(b"this is no database" * 1000)
        if typed:
            terminal.send(typed)
            terminal.wait_for("> hello")
        held.release()
        assert terminal.wait() not in (0, None)
        assert terminal.is_restored()
        said = "".join(terminal.text.split())  # a long path is broken into lines anywhere
        assert "bowerbird:/" in said and "agent.db" in said
        assert "Traceback" not in terminal.text
