"""`state export` destroys nothing and exports no wrong, empty database (reliability 4, team 2, server 14)."""

import json
import shutil
from pathlib import Path

import pytest
from support.desk import Desk


@pytest.fixture
def said(here: Desk) -> Desk:
    """A here with one session in the database that commands read."""
    here.fake.script({"text": "Hello!"})
    assert here.run("run", "hi")[0] == 0
    return here


def test_force_replaces_no_directory_of_a_strangers(said: Desk) -> None:
    """Reliability 4: `state export p --force` deleted thesis.tex and all of p."""
    thesis = said.home / "p" / "thesis.tex"
    thesis.parent.mkdir()
    thesis.write_text("years of work")
    code, _, err = said.run("state", "export", str(thesis.parent), "--force")
    assert code != 0 and "thesis.tex" in err
    assert [path.name for path in thesis.parent.iterdir()] == ["thesis.tex"]
    assert thesis.read_text() == "years of work"


@pytest.mark.parametrize("flags", [(), ("--force",)])
def test_a_project_is_not_replaced_by_its_export(said: Desk, flags: tuple[str, ...]) -> None:
    code, _, err = said.run("state", "export", ".", *flags)
    assert code != 0 and err
    assert (said.project / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_the_directory_one_stands_in_is_not_pulled_away(said: Desk) -> None:
    empty = said.home / "empty"
    empty.mkdir()
    code, _, err = said.run("state", "export", ".", cwd=empty)
    assert code != 0 and "where this command runs" in err
    assert empty.exists()


@pytest.mark.parametrize(
    "plant", ["notes.txt", "journal/notes.txt", "blobs/README", "sessions/more/x.jsonl", ".git/HEAD"]
)
def test_an_export_that_holds_something_else_is_kept(said: Desk, plant: str) -> None:
    out = said.home / "out"
    said.ok("state", "export", str(out))
    (out / plant).parent.mkdir(parents=True, exist_ok=True)
    (out / plant).write_text("mine")
    code, _, err = said.run("state", "export", str(out), "--force")
    assert code != 0 and "no export wrote" in err
    assert (out / plant).read_text() == "mine"


def test_a_link_is_not_followed(said: Desk) -> None:
    out, link = said.home / "out", said.home / "link"
    said.ok("state", "export", str(out))
    link.symlink_to(out)
    assert said.run("state", "export", str(link), "--force")[0] != 0
    assert link.is_symlink() and (out / "conversations.json").exists()


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "before there was a mark"])
def test_an_earlier_export_is_replaced(said: Desk, *, marked: bool) -> None:
    out = said.home / "out"
    said.ok("state", "export", str(out))
    if not marked:
        (out / "bowerbird-export.json").unlink()
    said.ok("state", "export", str(out), "--force")
    assert (out / "bowerbird-export.json").exists()
    assert [path.name for path in said.home.iterdir() if "out" in path.name] == ["out"]


def test_an_export_of_nothing_is_an_error_and_makes_nothing(here: Desk) -> None:
    """Team 2: "0 sessions with 0 records written", exit 0, and a new, empty database."""
    nowhere = here.home / "nowhere"
    code, _, err = here.run("--data-dir", str(nowhere), "state", "export", str(here.home / "out"))
    assert code != 0 and "nothing" in err and str(nowhere) in err
    assert not nowhere.exists() and not (here.home / "out").exists()


def test_an_export_of_a_database_without_sessions_is_an_error(here: Desk) -> None:
    here.ok("sessions")
    code, _, err = here.run("state", "export", str(here.home / "out"))
    assert code != 0 and "no session" in err
    assert not (here.home / "out").exists()


@pytest.mark.parametrize("by", ["environment", "config.yaml", ".env"])
def test_state_and_token_read_the_database_of_the_server_of_the_directory(said: Desk, by: str) -> None:
    """Team 2: with DATABASE_URL set, `token` used the server's database and `state` an empty other one."""
    served = said.home / "served"
    shutil.move(said.home / ".bowerbird" / "data", served)
    url = f"sqlite:///{served}/agent.db"
    here = said.home / "server"
    here.mkdir()
    if by == "environment":
        said.environment["DATABASE_URL"] = url
    else:
        said.ok("config", "init", cwd=here)  # makes it a server's directory (D-17)
    if by == ".env":
        (here / ".env").write_text(f"DATABASE_URL={url}\n")
    elif by == "config.yaml":
        (here / "config.yaml").write_text(f"store:\n  url: {url}\n")
    code, _, err = said.run("token", "create", "ann", cwd=here)
    assert code == 0 and str(served) in err, "it says which database"
    report = json.loads(said.ok("state", "export", str(said.home / "out"), "--json", cwd=here))
    assert report["sessions"] == 1
    _, _, err = said.run("state", "export", str(said.home / "more"), cwd=here)
    assert str(served) in err


def test_another_command_says_that_the_server_reads_another_database(said: Desk) -> None:
    """Server 14: with a dead URL `run` wrote SQLite and nobody knew."""
    said.environment["DATABASE_URL"] = "postgresql://ann:secret@127.0.0.1:1/birds"
    for command in (("sessions",), ("doctor",), ("run", "hi")):
        _, _, err = said.run(*command)
        assert "127.0.0.1:1/birds" in err and "DATABASE_URL" in err and "secret" not in err, command
    _, _, err = said.run("config", "show", "--origin")
    assert "agent.db" in err and "--command" in err


def test_nothing_is_said_where_there_is_one_database(said: Desk) -> None:
    for command in (("sessions",), ("state", "export", str(Path(said.home) / "out"))):
        assert "server of this directory" not in said.run(*command)[2]
        assert "in this directory reads" not in said.run(*command)[2]
