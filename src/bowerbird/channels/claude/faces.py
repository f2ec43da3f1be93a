"""How the mode of Claude Code looks in a chat (AS-59, AS-60). Pure.

Here: lists with buttons, its help, its state in words. Not here: what buttons and commands do
(`mode.py`).
"""

import time
from collections.abc import Sequence

from bowerbird.channels.cards import Face, Option
from bowerbird.channels.claude.states import ClaudeState
from bowerbird.channels.review.summary import plain, plural, quoted
from bowerbird.gateway.claude_code import ClaudeAnswer
from bowerbird.gateway.claude_projects import Project, Talk

PAGE = 6
LABEL_CHARS = 48
MODELS = ("opus", "sonnet", "haiku")

HELP = """**Claude Code**: what you write goes to it. Besides:
`cc:model [opus|sonnet|haiku|ID]` – the model
`cc:effort [low|medium|high]` – how hard it thinks
`cc:compact` – summarise the conversation
`cc:clear` – begin a new conversation
`cc:resume PREFIX` – go on with another one
`cc:project NAME` – another project
`cc:memory` – the project's CLAUDE.md
`cc:status`, `cc:cost`, `cc:doctor` – how it stands
/stop ends what runs, `/cc exit` leaves."""


def project_list(found: Sequence[Project], page: int, user: str) -> Face:
    """Return a page of projects."""
    if not found:
        return Face("No project of Claude Code is known here (`claude_code.projects_dir`).")
    shown, page, pages = _page(found, page)
    rows: list[Sequence[Option]] = [
        (Option(f"{_cut(one.label)} · {age(one.mtime)}", "project", one.name, user),) for one in shown
    ]
    rows += _turning(page, pages, "page", user)
    rows.append((Option("Leave", "leave", who=user),))
    return Face(f"**Which project?** {plural(len(found), 'project')}{_which(page, pages)}", rows)


def talk_list(project: Project, found: Sequence[Talk], page: int, total: int, user: str) -> Face:
    """Return a page of a project's conversations."""
    pages = max(1, -(-total // PAGE))
    lines = [f"**{quoted(project.label)}**: which conversation?{_which(page, pages)}"]
    rows: list[Sequence[Option]] = []
    for number, talk in enumerate(found, page * PAGE + 1):
        branch = f" · `{quoted(talk.branch)}`" if talk.branch else ""
        lines.append(f"{number}. {plain(talk.title)}\n   {age(talk.mtime)} · {talk.count} lines{branch}")
        rows.append((Option(f"{number}. {_cut(talk.title)}", "talk", talk.session_id, user),))
    rows += _turning(page, pages, "talks", user)
    rows.append((Option("New", "new", who=user), Option("Projects", "projects", who=user)))
    rows.append((Option("Leave", "leave", who=user),))
    return Face("\n".join(lines), rows)


def entered(state: ClaudeState, where: str, user: str) -> Face:
    """Return what is said when the mode begins."""
    begins = "It goes on where it was." if state.active_session_id else "Your next message begins one."
    here = f"You talk with Claude Code in `{quoted(state.active_project_path)}` now. {begins}"
    text = f"{here}\n\n{where}\n\n`cc:help` says what else there is."
    return Face(text, ((Option("Leave", "leave", who=user),),))


def status_text(state: ClaudeState, running: bool) -> str:
    """Return a state in words."""
    lines = [
        f"Project: `{quoted(state.active_project_path)}`",
        f"Conversation: {state.active_session_id or 'a new one'}",
        f"Model: {state.active_model or 'its own'}",
        f"Effort: {state.active_effort or 'its own'}",
        "It is working." if running else "It waits for you.",
    ]
    return "\n".join(lines)


def answer_text(answer: ClaudeAnswer) -> str:
    """Return an answer as it is shown, with what was not permitted."""
    if not answer.text:
        return ""
    lines = [f"**That failed.** {answer.text}" if answer.is_error and not answer.timed_out else answer.text]
    if answer.denied:
        lines.append("\n**It was not permitted to use:**")
        lines += [f"- `{quoted(one)}`" for one in answer.denied]
    return "\n".join(lines)


def compacted_text(answer: ClaudeAnswer) -> str:
    """Return what a compaction did, with its tokens before and after."""
    if answer.is_error:
        return answer_text(answer)
    if not answer.text:
        return ""
    before, after = ("not told" if count is None else f"{count:,}" for count in answer.tokens)
    return f"Compacted. Tokens before: {before}, after: {after}."


def age(mtime: float) -> str:
    """Return how long ago something was."""
    seconds = max(0.0, time.time() - mtime)
    for size, unit in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def _page(found: Sequence[Project], page: int) -> tuple[Sequence[Project], int, int]:
    pages = max(1, -(-len(found) // PAGE))
    page = min(max(page, 0), pages - 1)
    return found[page * PAGE : (page + 1) * PAGE], page, pages


def _turning(page: int, pages: int, verb: str, user: str) -> list[Sequence[Option]]:
    turns = [("‹", page - 1), ("›", page + 1)]
    options = [Option(label, verb, str(to), user) for label, to in turns if 0 <= to < pages]
    return [options] if options else []


def _which(page: int, pages: int) -> str:
    return f" (page {page + 1} of {pages})" if pages > 1 else ""


def _cut(text: str) -> str:
    flat = "".join(char if char.isprintable() else " " for char in text)
    return flat if len(flat) <= LABEL_CHARS else f"{flat[: LABEL_CHARS - 1]}…"
