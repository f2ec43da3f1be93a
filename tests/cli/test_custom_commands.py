"""Commands that are Markdown files, at the prompt of each client (UI-76, UI-85)."""

import asyncio

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from support.desk import Desk

from bowerbird.cli.run.completer import LineCompleter
from bowerbird.skills.commands import custom_commands, filled, parse_command
from bowerbird.skills.skill import SkillProblem

REVIEW = r"""---
description: "reviews some files \e]0;owned\a"
arguments: "[paths]"
tools: [read_file, grep]
---
Review $ARGUMENTS with care. !`touch ran.txt` @a.txt
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory, models, servers, client):
    models.reset()
    with Desk(tmp_path_factory.mktemp("custom"), models, servers if client == "server" else None) as made:
        for top, name, text in (
            (made.project, "review.md", REVIEW),
            (made.project, "help.md", "hidden behind the built-in one"),
            (made.project, "both.md", "of the directory"),
            (made.project, "Broken Name.md", "no command"),
            (made.home, "both.md", "of the person"),
            (made.home, "strong.md", "---\nmodel: anthropic:claude-strong\n---\nThink hard."),
        ):
            place = top / ".bowerbird/commands"
            place.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        for name, text in (
            ("commands/web/fix.md", "---\nargument-hint: N\nmodel: haiku\n---\nFix issue $1 well."),
            ("commands/ship.md", "of the command"),
            ("skills/ship/SKILL.md", "---\ndisable-model-invocation: true\n---\nShip it now."),
            ("skills/ship/notes.md", "no command"),
            ("commands/both.md", "of another agent"),
        ):
            (made.project / ".claude" / name).parent.mkdir(parents=True, exist_ok=True)
            (made.project / ".claude" / name).write_text(text)
        yield made


@pytest.fixture(scope="module")
def chat(table):
    with table.terminal(columns=100) as terminal:
        terminal.wait_for("/help lists commands.")
        terminal.wait_for(">")
        yield terminal


def last_message(desk) -> str:
    return "\n".join(block["text"] for block in desk.fake.requests[-1]["messages"][-1]["content"])


def test_custom_commands_are_in_the_help_and_the_menu(table, chat):
    """UI-76: escapes of a description stay text; a built-in command keeps its name."""
    chat.send("/help\r")
    chat.wait_for("/review")
    chat.wait_for("reviews some files")
    chat.wait_for("Alt+Enter")
    assert b"\x1b]0;owned" not in chat.raw and "hidden behind" not in chat.text
    chat.send("/revi")
    chat.wait_for("reviews some files")
    chat.send("\x03")


async def test_a_command_that_is_typed_before_it_was_read_is_offered_all_the_same():
    """UI-74, UI-76: the prompt is on the screen before the files are read; the menu stayed empty until the next key."""
    commands, known = {"help": "", "resume": ""}, asyncio.Event()

    async def none():
        raise AssertionError("nobody asked for these")

    completer = LineCompleter(lambda: commands, list, none, none, known)
    offered = completer.get_completions_async(Document("/re"), CompleteEvent())
    assert (await anext(offered)).text == "resume"
    later = asyncio.ensure_future(anext(offered))
    commands["review"] = "reviews files"
    known.set()
    assert (await later).text == "review"
    assert [rest.text async for rest in offered] == []


def test_a_command_is_text_for_the_model_and_runs_nothing(table, chat):
    """UI-76: neither a command nor a mention in a workspace's file is acted on, what a person adds is."""
    table.fake.script({"text": "Looks fine."})
    chat.send("/review src/ now\r")
    chat.wait_for("Looks fine.")
    chat.wait_for("ctx ·")
    said = last_message(table)
    assert "Review src/ now with care. !`touch ran.txt` @a.txt" in said
    assert "Use only these tools: read_file, grep." in said and "attachment" not in said
    assert "changed: /diff" not in chat.text and not (table.project / "ran.txt").exists()


@pytest.mark.parametrize(
    ("typed", "sent"),
    [("/fix 12", "Fix issue 12 well."), ("/ship", "Ship it now."), ("/both", "of the person")],
)
def test_commands_and_skills_for_claude_code_are_typed_like_ones_own(table, chat, typed, sent):
    """The model that one of them names is another program's; a skill wins over a command."""
    table.fake.script({"text": f"done with {typed}"})
    chat.send(f"{typed}\r")
    chat.wait_for(f"done with {typed}")
    chat.wait_for("ctx ·")
    assert sent in last_message(table) and table.fake.requests[-1]["model"] != "haiku"


def test_the_persons_own_command_wins(table, chat):
    """UI-76: a repository cannot take the name of a command of yours."""
    table.fake.script({"text": "Which one?"})
    chat.send("/both of them\r")
    chat.wait_for("Which one?")
    chat.wait_for("ctx ·")
    assert last_message(table).startswith("of the person\n\nArguments: of them")


def test_a_commands_model_answers_its_turn_alone(table, chat):
    """UI-76."""
    table.fake.script({"text": "Thought."}, {"text": "As before."})
    chat.send("/strong\r")
    chat.wait_for("Thought.")
    chat.wait_for("ctx ·")
    assert table.fake.requests[-1]["model"] == "claude-strong"
    chat.send("go on\r")
    chat.wait_for("As before.")
    chat.wait_for("ctx ·")
    assert table.fake.requests[-1]["model"] != "claude-strong"


def commands_in(top, count, body="x"):
    place = top / ".bowerbird/commands"
    place.mkdir(parents=True)
    for n in range(count):
        (place / f"c{n:05}.md").write_text(body)


def test_the_501st_command_is_one_like_the_first(tmp_path):
    """UI-76: those after the 200th were unknown, silently."""
    commands_in(tmp_path, 501)
    assert [command.body for command in custom_commands(tmp_path, None)] == ["x"] * 501


def test_a_command_that_the_bounds_leave_out_is_named_and_says_so(tmp_path, monkeypatch):
    """UI-76."""
    monkeypatch.setattr("bowerbird.skills.commands.MOST", 3)
    commands_in(tmp_path / "many", 5)
    found = custom_commands(tmp_path / "many", None)
    assert [command.body for command in found] == ["x", "x", "x", "", ""]
    assert "not read" in found[-1].description and not found[0].description.startswith("not read")
    monkeypatch.undo()
    commands_in(tmp_path / "long", 300, "y" * 60_000)
    found = custom_commands(tmp_path / "long", None)
    assert len(found) == 300 and found[0].body and "16 MB" in found[-1].description


def test_a_command_that_was_not_read_is_not_sent(here):
    """UI-76: it says why, and nothing goes to the model."""
    commands_in(here.project, 2_001)
    with here.terminal() as chat:
        chat.wait_for("lists commands")
        chat.send("/c02000\r")
        chat.wait_for("not read: a directory of commands has at most 2,000 files")
    assert here.fake.request_count == 0


def test_places_are_filled_once():
    """UI-76: what a person types is no template."""
    assert filled("$1, $2, $ARGUMENTS", "$ARGUMENTS b") == "$ARGUMENTS, b, $ARGUMENTS b"
    assert filled("$3|$ARGUMENTSX", "a") == "|$ARGUMENTSX"


@pytest.mark.parametrize("data", [b"", b"---\nmodel: [\n---\nx", b"---\n- a\n---\nx", b"x" * 70_000])
def test_what_is_no_command_is_refused(data):
    """UI-76."""
    with pytest.raises(SkillProblem):
        parse_command("a", data)


def test_a_link_out_of_the_workspace_shows_nobodys_files(tmp_path):
    """UI-76: neither the directory nor a file may lead out."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    one, two = tmp_path / "one", tmp_path / "two"
    (one / ".bowerbird").mkdir(parents=True)
    (one / ".bowerbird/commands").symlink_to(outside)
    (two / ".bowerbird/commands").mkdir(parents=True)
    (two / ".bowerbird/commands/linked.md").symlink_to(outside / "secret.md")
    assert custom_commands(one, None) == [] and custom_commands(two, None) == []
