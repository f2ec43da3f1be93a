"""Review and landing from a chat (AS-25, AS-26, acceptance 7)."""

from typing import Any

import pytest
from support.chats import Chatting, Shown
from support.sessions import writes


async def changed(chat: Chatting, fake: Any, *files: tuple[str, str], text: str = "written") -> Shown:
    """Have a turn write files; return the summary that follows its answer."""
    before = len(chat.service.sent)
    over = [path for path, _ in files if (chat.home.project / path).is_file()]
    reads = [{"name": "read_file", "input": {"path": path}} for path in over]
    first, *more = [writes(path, content) for path, content in files]
    fake.script({"tools": [*reads, *first["tools"]]}, *more, {"text": text})
    await chat.service.say("write")
    return await chat.service.until(
        lambda: next((one for one in chat.service.sent[before:] if "changed**" in one.text), None)
    )


async def test_a_turn_with_changes_ends_with_a_summary_and_lands_at_a_press(
    chat: Chatting, fake: Any
) -> None:
    """AS-25, AS-26: counts per file, flagged paths first; landing says its id and offers Undo, which restores bytes."""
    (chat.home.project / "old.txt").write_bytes(b"one\r\ntwo\r\n")
    shown = await changed(chat, fake, ("a.txt", "1\n2\n3\n"), ("old.txt", "new\n"), (".envrc", "x\n"))
    lines = shown.text.splitlines()
    assert lines[0] == "**3 files changed** (+5 −2)"
    assert lines[1].startswith("- A ⚠ `.envrc` +1 −0 (") and lines[2] == "- A `a.txt` +3 −0"
    assert lines[3] == "- M `old.txt` +1 −2"
    assert shown.labels == ["Land", "Choose", "Diff", "Discard"]
    await chat.service.press(shown, "Land")  # the first press names the flagged path
    assert "`.envrc`" in shown.text and not (chat.home.project / "a.txt").exists()
    said = await chat.service.press(shown, "Land these, too")
    assert said.startswith("Landed 3 files (2 new, 1 changed) as l_")
    assert (chat.home.project / "old.txt").read_text() == "new\n"
    assert await chat.service.press(shown, "Undo") != "Expired"
    assert (chat.home.project / "old.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert not (chat.home.project / ".envrc").exists()


async def test_land_pressed_twice_lands_once_and_reports_the_same(chat: Chatting, fake: Any) -> None:
    """Acceptance 7, AS-21: a second press only reports the result."""
    shown = await changed(chat, fake, ("a.txt", "x\n"))
    data = shown.button("Land").data
    first = await chat.service.press_data(data, shown)
    second = await chat.service.press_data(data, shown)
    assert first == second and first.startswith("Landed 1 file")
    assert len(await chat.home.service.review.landings(str(chat.home.project))) == 1
    undo = shown.button("Undo").data
    one, two = await chat.service.press_data(undo, shown), await chat.service.press_data(undo, shown)
    assert one == two and one.startswith("Took l_")
    assert len(await chat.home.service.review.landings(str(chat.home.project))) == 2


async def test_a_stale_summary_lands_nothing_and_shows_what_there_is(chat: Chatting, fake: Any) -> None:
    """Acceptance 7, AS-25: the branch changed since."""
    old = await changed(chat, fake, ("a.txt", "x\n"))
    data = old.button("Land").data
    new = await changed(chat, fake, ("b.txt", "y\n"))
    before = len(chat.service.sent)
    assert "different by now" in await chat.service.press_data(data, old)
    assert list(chat.home.project.iterdir()) == []
    again = await chat.service.until(lambda: chat.service.sent[before:])
    assert "2 files changed" in again[0].text and new.text == again[0].text
    assert "different by now" in await chat.service.press_data(data, old)
    assert len(chat.service.sent) == before + 1
    assert (await chat.service.press(again[0], "Land")).startswith("Landed 2 files")


async def test_a_conflict_lands_nothing_and_the_agent_can_be_asked_to_merge(
    chat: Chatting, fake: Any
) -> None:
    """AS-26: the paths are listed; the agent gets the user's lines."""
    (chat.home.project / "a.txt").write_text("base\n")
    shown = await changed(chat, fake, ("a.txt", "agent\n"), ("b.txt", "b\n"))
    (chat.home.project / "a.txt").write_text("user\n")
    await chat.service.press(shown, "Land")  # the directory changed: a new summary
    shown = chat.service.sent[-1]
    assert "you changed it, too" in shown.text
    assert await chat.service.press(shown, "Land") == "Nothing landed."
    assert "`a.txt`" in shown.text and not (chat.home.project / "b.txt").exists()
    assert (chat.home.project / "a.txt").read_text() == "user\n"
    fake.script({"text": "merged"})
    await chat.service.press(shown, "Ask the agent to merge")
    await chat.service.wait_text("merged")
    asked = [m.content for m in await chat.home.service.messages("chat_1") if m.role == "user"]
    assert "- a.txt" in asked[-1] and "user" in asked[-1]


async def test_what_is_ticked_lands_and_the_rest_is_shown_again(chat: Chatting, fake: Any) -> None:
    """AS-26: Choose; more files than a page has."""
    files = [(f"f{n:02}.txt", f"{n}\n") for n in range(10)]
    shown = await changed(chat, fake, *files)
    await chat.service.press(shown, "Choose")
    assert shown.labels[:2] == ["☐ f00.txt", "☐ f01.txt"] and "›" in shown.labels
    assert await chat.service.press(shown, "Land 0") == "Tick what is to land first."
    await chat.service.press(shown, "f01.txt")
    await chat.service.press(shown, "›")
    await chat.service.press(shown, "f09.txt")
    await chat.service.press(shown, "f08.txt")
    await chat.service.press(shown, "f08.txt")  # and off again
    said = await chat.service.press(shown, "Land 2 files")
    assert said.startswith("Landed 2 files")
    assert sorted(path.name for path in chat.home.project.iterdir()) == ["f01.txt", "f09.txt"]
    await chat.service.wait_text("**8 files changed**")


async def test_discard_asks_first(chat: Chatting, fake: Any) -> None:
    """AS-25."""
    shown = await changed(chat, fake, ("a.txt", "x\n"))
    await chat.service.press(shown, "Discard")
    await chat.service.press(shown, "Back")
    assert shown.labels == ["Land", "Diff", "Discard"]
    await chat.service.press(shown, "Discard")
    assert "Discarded 1 file" in await chat.service.press(shown, "Discard all")
    assert (await chat.home.service.review.diff("chat_1"))["written"] == []


async def test_undo_of_files_that_were_edited_since_is_refused_with_their_paths(
    chat: Chatting, fake: Any
) -> None:
    """AS-26."""
    shown = await changed(chat, fake, ("a.txt", "x\n"))
    await chat.service.press(shown, "Land")
    (chat.home.project / "a.txt").write_text("mine\n")
    assert await chat.service.press(shown, "Undo") == "Nothing was changed."
    assert "`a.txt`" in shown.text and (chat.home.project / "a.txt").read_text() == "mine\n"


async def test_many_files_are_counted_and_the_diff_is_cut(chat: Chatting, fake: Any) -> None:
    """AS-25: 20, then a count."""
    await changed(chat, fake, *[(f"f{n:02}.txt", "x\n") for n in range(23)])
    await chat.service.until(lambda: any(one.buttons for one in chat.service.sent))
    whole = "".join(one.text for one in chat.service.sent)  # this chat takes short messages only
    assert whole.count("- A `f") == 20 and "… and 3 more" in whole
    shown = next(one for one in reversed(chat.service.sent) if one.buttons)
    before = len(chat.service.sent)
    await chat.service.press(shown, "Diff")
    said = "".join(one.text for one in chat.service.sent[before:])
    assert said.startswith("```diff\n") and "+x" in said


async def test_a_turn_that_changes_nothing_more_shows_no_second_summary(chat: Chatting, fake: Any) -> None:
    await changed(chat, fake, ("a.txt", "x\n"))
    before = len(chat.service.sent)
    fake.script({"text": "just words"})
    await chat.service.say("talk")
    await chat.service.wait_text("just words")
    fake.script({"text": "and more"})
    await chat.service.say("talk")
    await chat.service.wait_text("and more")
    assert [one.text for one in chat.service.sent[before:]] == ["just words", "and more"]


@pytest.mark.parametrize("command", ["/land", "/undo", "/discard", "/diff"])
async def test_commands_without_changes_say_so(chat: Chatting, command: str) -> None:
    """AS-15."""
    await chat.service.say(command)
    await chat.service.until(lambda: chat.service.sent)
    assert chat.service.sent[0].text == "Nothing was said in this chat yet."


async def test_land_lands_what_was_shown_and_undo_takes_it_back(chat: Chatting, fake: Any) -> None:
    """AS-15, AS-26: by commands."""
    await changed(chat, fake, ("a.txt", "x\n"))
    await chat.service.say("/land")
    await chat.service.until(
        lambda: (chat.home.project / "a.txt").exists() and "Landed" in chat.service.sent[-1].text
    )
    await chat.service.say("/undo")
    await chat.service.wait_text("Took l_")
    assert not (chat.home.project / "a.txt").exists()
    await chat.service.say("/undo")
    await chat.service.wait_text("no landing of this conversation")
    await chat.service.say("/diff a.txt")
    assert "+x" in (await chat.service.wait_text("```diff")).text
