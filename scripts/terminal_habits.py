"""Stories of what people who come from other agents expect at the terminal (UI-70 … UI-82).

Here: the stories and what is typed in them. Not here: the stage (`terminal_stage.py`), playing them
(`terminal_stories.py`), the stories of a conversation as such (`terminal_talks.py`).
"""

import re

from terminal_stage import EDITS, Stage, call, story

REVIEW = """---
description: reviews files before a release
arguments: "[paths]"
---
Review $ARGUMENTS. List what could break for users, worst first.
"""
HOOKS = """hooks:
  before_tool:
    - command: "echo 'no pushes on a Friday' >&2; exit 2"
      tools: [bash]
"""
GIT = (
    "git init -qb main . && git config user.name Ann && git config user.email ann@example.org && "
    "git add -A && git commit -qm start"
)


def in_git(stage: Stage) -> None:
    """Make a repository of the project."""
    stage.shell(f"{GIT}; clear")


@story("inline", rows=44)
def inline(stage: Stage) -> None:
    """UI-70: the lines of an edit, a running command, a failed one, parallel calls in order."""
    stage.fake.script(
        {"text": "Two reads and an edit.", "tools": [
            call("read_file", path="notes.txt"), call("read_file", path="report.py"), EDITS[0],
        ]},
        {"tools": [call("bash", command="for n in 1 2 3; do echo step $n; sleep 0.5; done; exit 3")]},
        {"text": "The command failed."},
    )  # fmt: skip
    stage.chat()
    stage.type("change one value, then run the steps")
    stage.until("step 2")
    stage.snap("while the command runs")
    stage.ended("The command failed.", "1 file changed: ")
    stage.snap("after it")


@story("always", rows=44)
def always(stage: Stage) -> None:
    """UI-71: an approval shows what is approved; always makes a rule; it is listed and taken back."""
    stage.fake.script(
        {"tools": [EDITS[0]]},
        {"tools": [call("bash", command="git status --short")]},
        {"tools": [call("bash", command="git status -b")]},
        {"text": "Done."},
    )
    in_git(stage)
    stage.chat("--approval")
    stage.type("change one value")
    stage.until("answer>")
    stage.snap("an edit asks")
    stage.type("y")
    stage.until("git status --short")
    stage.type("?")
    stage.until("everything for the rest")
    stage.snap("a command asks; ?")
    stage.type("a")
    stage.ended("Done.", "1 file changed: ")
    stage.snap("always: the second git status does not ask")
    stage.key("C-d")
    stage.until("--resume=")
    stage.shell("bowerbird permissions; bowerbird permissions --remove 1; bowerbird permissions")
    stage.snap("permissions")


@story("resumed", rows=40)
def resumed(stage: Stage) -> None:
    """UI-72: resume shows the last screen of the session."""
    stage.fake.script({"tools": EDITS[:1]}, {"text": "One value is 33 now."})
    stage.shell("bowerbird 'change one value'")
    stage.type("clear; bowerbird resume")
    stage.until("One value is 33 now.", "1 file changed: ")
    stage.snap("resume")


@story("mention")
def mention(stage: Stage) -> None:
    """UI-73, UI-74: @ with its menu, ! with its output, # into the memory."""
    stage.fake.script({"text": "It makes forty items."})
    stage.chat()
    stage.type("what does @rep", enter=False)
    stage.until("report.py")
    stage.snap("@ completes")
    stage.key("Tab")
    stage.type("do?")
    stage.ended("It makes forty items.")
    stage.snap("what was named goes along")
    stage.type("!wc -l notes.txt && touch made")
    stage.until("3 notes.txt")
    stage.type("#we indent with tabs")
    stage.until("memory")
    stage.snap("! and #")


@story("picker")
def picker(stage: Stage) -> None:
    """UI-75: /model lists what is usable; a wrong name is corrected."""
    stage.type("unset ANTHROPIC_BASE_URL")  # else the names are those of somebody's own server
    stage.chat()
    stage.type("/model")
    stage.until("change with /model")
    stage.snap("/model")
    stage.type("/model claude-sonet-4-5")
    stage.until("is not known")
    stage.snap("a wrong name")


@story("custom", rows=40)
def custom(stage: Stage) -> None:
    """UI-76: a Markdown file is a command."""
    place = stage.project / ".bowerbird" / "commands"
    place.mkdir(parents=True)
    (place / "review.md").write_text(REVIEW)
    stage.fake.script({"text": "Nothing would break."})
    stage.chat()
    stage.type("/rev", enter=False)
    stage.until("reviews files")
    stage.snap("the menu")
    stage.type("iew report.py")
    stage.ended("Nothing would break.")
    stage.snap("sent")


@story("hook", rows=40)
def hook(stage: Stage) -> None:
    """UI-77: a hook forbids a tool, and doctor lists it."""
    settings = stage.home / ".bowerbird" / "config.yaml"
    settings.parent.mkdir()
    settings.write_text(HOOKS)
    settings.chmod(0o600)
    stage.fake.script({"tools": [call("bash", command="git push")]}, {"text": "I may not push today."})
    stage.shell("bowerbird 'push it'; bowerbird doctor | grep -A2 hook")
    stage.snap("a hook forbids")


@story("commit", rows=40)
def commit(stage: Stage) -> None:
    """UI-78: landing as a commit, its undo, and a commit on another branch."""
    in_git(stage)
    stage.fake.script({"tools": EDITS}, {"text": "Three values and a module."})
    stage.shell("bowerbird -q 'change some values'")
    stage.shell(
        "bowerbird land --yes -m 'Other values' && git log --oneline --stat | head -12 && git status -s"
    )
    stage.snap("land -m")
    stage.shell("bowerbird undo --commit && git log --oneline")
    stage.snap("undo --commit")
    stage.shell("bowerbird land --yes --branch fix/values; git log --oneline --all; git status -s")
    stage.snap("land --branch")


@story("instructions", rows=40)
def instructions(stage: Stage) -> None:
    """UI-79: /init writes AGENTS.md on the branch."""
    stage.fake.script(
        {"tools": [call("write_file", path="AGENTS.md", content="# Agents\n\nRun `python report.py`.\n")]},
        {"text": "AGENTS.md says how to run it."},
    )
    stage.chat()
    stage.type("/init")
    stage.ended("AGENTS.md says how to run it.", "1 file changed: ")
    stage.snap("/init")


@story("exported", rows=40)
def exported(stage: Stage) -> None:
    """UI-80: a whole conversation as one file."""
    stage.fake.script({"tools": EDITS[:1]}, {"text": "One value is 33 now."})
    stage.chat()
    stage.type("change one value")
    stage.ended("One value is 33 now.", "1 file changed: ")
    stage.type("/export talk.html")
    stage.until("written")
    stage.snap("/export")
    stage.key("C-d")
    stage.until("--resume=")
    stage.shell("bowerbird export | head -30")
    stage.snap("export as Markdown")


@story("notified", rows=16)
def notified(stage: Stage) -> None:
    """UI-81: a turn of more than 10 s has ended while the person looks elsewhere; what is sent."""
    stage.fake.script({"text": "All ten are checked.", "ttft_s": 10.5})
    sent = stage.home / "sent"
    stage.chat()
    stage.tmux("pipe-pane", f"cat > {sent}")
    stage.type("check the ten files")
    stage.type("\x1b[O", enter=False)  # as a terminal tells that its window has lost the focus
    stage.ended("All ten are checked.")
    told = re.findall(rb"\x1b\](?:9|777);.*?\x1b\\|\x07", sent.read_bytes())
    stage.snap("after it")
    stage.captures.append("".join(f"the terminal was sent {each!r}\n" for each in told))


@story("search", columns=100)
def search(stage: Stage) -> None:
    """UI-82: sessions are found by what was said."""
    stage.fake.answer(lambda _body, n: {"text": ["The invoice of March is paid.", "Hello."][n % 2]})
    stage.shell("bowerbird -q 'which invoice is open?'; bowerbird -q 'say hello'")
    stage.shell("bowerbird sessions; echo; bowerbird sessions --grep 'invoice march'")
    stage.snap("sessions --grep")
