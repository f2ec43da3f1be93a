"""`bowerbird init DIR` and `service install`: from nothing to a server (AS-64, AS-66)."""

import json
import shutil
import stat
import subprocess

import pytest
from support.terminals import Terminal

FILES = {
    "config.yaml", ".env", ".gitignore", "workspace/IDENTITY.md", "workspace/AGENT.md", "workspace/MEMORY.md",
    "workspace/skills",
}  # fmt: skip


def contents(directory):
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_second_init_writes_nothing_and_secrets_are_the_users_alone(here):
    """AS-64, acceptance 15."""
    made = json.loads(here.ok("init", "bot", "--yes", "--json"))
    assert set(made["written"]) == FILES and not made["kept"]
    bot = here.project / "bot"
    before = contents(bot)
    for name in (".env", "config.yaml"):
        assert stat.S_IMODE((bot / name).stat().st_mode) == 0o600, name
    assert "ANTHROPIC_API_KEY=\n" in (bot / ".env").read_text()
    assert "sk-planted" not in (bot / ".env").read_text()  # what the environment has is not written down
    again = json.loads(here.ok("init", "bot", "--yes", "--json"))
    assert not again["written"] and set(again["kept"]) == FILES and contents(bot) == before


def test_what_is_there_stays_and_links_are_not_followed(here):
    """AS-64: existing files are never changed."""
    bot, outside = here.project / "bot", here.project / "outside"
    bot.mkdir()
    (bot / ".gitignore").write_text("mine\n")
    (bot / ".env").symlink_to(outside)
    made = json.loads(here.ok("init", "bot", "--yes", "--json"))
    assert set(made["kept"]) == {".gitignore", ".env"}
    assert (bot / ".gitignore").read_text() == "mine\n" and not outside.exists()


def test_a_dry_run_and_a_run_without_a_person_write_nothing(here):
    """AS-64."""
    _, _, said = here.run("init", "bot", "--yes", "--dry-run")
    assert "config.yaml: would be written" in said
    code, _, said = here.run("init", "bot")
    assert code == 2 and "--yes" in said
    assert not (here.project / "bot").exists()


def test_the_directory_serves_as_it_is(here):
    """AS-64: its settings are in force there, and every one of them is read."""
    here.ok("init", "bot", "--yes")
    code, out, said = here.run("config", "check", "--config", "bot/config.yaml", "--env-file", "bot/.env")
    assert code == 0, (out, said)


def test_questions_are_asked_and_a_key_is_not_shown(here):
    """AS-64: provider, key, channel, bot token, time zone."""
    environment = {k: v for k, v in here.environment.items() if not k.startswith("ANTHROPIC")}
    with Terminal(["init", "bot"], cwd=here.project, environment=environment, columns=300) as terminal:
        terminal.wait_for("Provider [anthropic]:")
        terminal.send("nobody\r")
        terminal.wait_for("is none of")
        terminal.send("openai\r")
        terminal.wait_for("OPENAI_API_KEY")
        terminal.send("sk-typed-by-hand\r")
        terminal.wait_for("Chat channel")
        terminal.send("telegram\r")
        terminal.wait_for("BotFather")
        terminal.send("123:typed\r")
        terminal.wait_for("Time zone")
        terminal.send("Europe/Rome\r")
        terminal.wait_for("bowerbird channels pair telegram")
        assert terminal.wait() == 0
        assert "sk-typed" not in terminal.text and "123:typed" not in terminal.text
    bot = here.project / "bot"
    assert "OPENAI_API_KEY=sk-typed-by-hand\nTELEGRAM_BOT_TOKEN=123:typed\n" in (bot / ".env").read_text()
    settings = (bot / "config.yaml").read_text()
    assert "name: openai" in settings and "timezone: Europe/Rome" in settings and "sk-typed" not in settings
    code, out, said = here.run("config", "check", "--config", "bot/config.yaml", "--env-file", "bot/.env")
    assert code == 0, (out, said)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
def test_the_unit_is_one_that_systemd_takes(here, tmp_path):
    """AS-66."""
    odd = here.project / "a dir 100%"
    odd.mkdir()
    unit = here.ok("service", "install", "--dry-run", cwd=odd)
    for line in ("Restart=on-failure", "KillMode=mixed", "TimeoutStopSec=15", "RestrictNamespaces=no"):
        assert line in unit
    file = tmp_path / "bowerbird.service"
    file.write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
    )
    mine = [line for line in done.stderr.splitlines() if "bowerbird.service" in line]
    assert not mine, mine
