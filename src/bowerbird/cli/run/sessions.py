"""`sessions`, `show`, `rename`, `delete`, `fork` (UI-42, UI-45), of this machine or a server.

Here: printing of sessions; their JSON is REST's. Not here: finding them (`client/`), what
they are (`sessions`).
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from bowerbird.cli.client.opening import with_client
from bowerbird.cli.client.protocol import Client, Row
from bowerbird.cli.run.watching import open_request
from bowerbird.cli.terminal.drawing import key_parameter
from bowerbird.cli.terminal.exits import DONE, USAGE, CliExit, ended_as, how_it_ended, why_it_ended
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import (
    age,
    cost_line,
    cut,
    harmless,
    money,
    one_line,
    plural,
    table,
    wrapped,
)
from bowerbird.core.events import CUT_SHORT
from bowerbird.core.timestamps import from_iso

if TYPE_CHECKING:
    from bowerbird.cli.run.chat import Chat

LONGEST_TITLE = 500
MOST_FOUND = 100
ROOM_FOR_PROMPT = 6
"""Lines of a screen that a transcript leaves: two of the head, the changed files, the prompt, the status."""
_NARROW = 60  # columns, with which all cells of a list leave nothing for titles
# A turn that no process drives now, of a terminal that was closed or a server that stopped: `resume` goes on.
_STATES = {"queued": "unfinished"}


def sessions(shell: Shell, *, every: bool, grep: str | None, json: bool, workspace: str | None) -> int:
    """List sessions: of this directory, or all; the most recently used first.

    Args:
        grep: only those with these words, said or in the title, each with where they stand.
    """
    if grep is not None and not grep.strip():
        raise CliExit(USAGE, "--grep needs words to look for")

    async def work(client: Client) -> int:
        found = await client.sessions(every=every, words=grep or "")
        if json:
            return shell.json(found)
        terminal, wide = shell.terminal, every or client.is_server
        rows = table(
            [session_row(row, every=wide, width=terminal.width) for row in found], width=terminal.width
        )
        for row, line in zip(found, rows, strict=True):
            terminal.line(line)
            if (place := row.get("found")) is not None:
                terminal.line(f"    {cut(_place_line(place), terminal.width - 4)}", "dim")
        if not found:
            what = "session" if grep is None else f"session with {grep!r}"
            where = "" if wide else f" works on {client.where}; --all lists those of other directories"
            terminal.note(f"no {what}{where}")
        elif grep is not None and len(found) >= MOST_FOUND:
            terminal.note(f"the newest {MOST_FOUND}; more words find fewer")
        return DONE

    return with_client(shell, workspace, work)


def _place_line(place: Row) -> str:
    return ("> " if place["role"] == "user" else "") + one_line(str(place["text"]))


def session_row(row: Row, *, every: bool, width: int = 80) -> list[str]:
    """Return a session's line as cells: id, state, age, cost, changed files, title.

    Args:
        every: also the name of its directory.
        width: of the terminal; a narrow one has room for the id, a state that wants somebody, and the title.
    """
    idle = (datetime.now(UTC) - from_iso(row["updated_at"])).total_seconds()
    status = _state_word(row)
    if width < _NARROW:
        return [str(row["id"]), "" if status == "done" else status, one_line(row["title"] or "", 80)]
    cells = [str(row["id"]), status, age(idle), money(row["cost"]), plural(row["changed_files"], "file")]
    if every:
        cells.append(harmless(row["workspace"] or "-"))
    return [*cells, one_line(row["title"] or "", 80)]


def _state_word(row: Row) -> str:
    if row["pending_approval"]:
        return "asking"
    if row["status"] == "waiting" and row["pending"] is None:
        return "expired"  # a question that nobody answered in time
    if row["status"] == "done" and row["stop_reason"] in CUT_SHORT:
        return "stopped"  # by a limit
    return _STATES.get(row["status"], str(row["status"]))


def show(shell: Shell, *, session: str | None, json: bool, workspace: str | None) -> int:
    """Show one session: what was said, its changes."""

    async def work(client: Client) -> int:
        thread_id = await client.find(session)
        found = await client.show(thread_id, messages=json)
        if json:
            return shell.json(found)
        terminal = shell.terminal
        terminal.line(f"{found['id']}  {one_line(found['title'] or 'untitled')}", "bold")
        every = await client.turns(thread_id)
        turns, last = plural(len(every), "turn"), every[-1]["stop_reason"] if every else None
        model = f" · {found['model']}" if found["model"] else ""
        where = harmless(found["workspace"] or "no directory")
        status = _STATES.get(found["status"], found["status"])
        status = ended_as(last, failed=False) if status == "done" and last in CUT_SHORT else status
        terminal.line(f"{status} · {turns} · {money(found['cost'])}{model} · {where}")
        for line in history_lines(await client.messages(thread_id), width=terminal.width):
            terminal.line(line)
        terminal.line(f"{plural(changed_files(found), 'file')} changed on the branch")
        return DONE

    return with_client(shell, workspace, work)


def history_lines(messages: Sequence[Row], *, width: int, limit: int | None = None) -> list[str]:
    """Return a dialogue as lines: `>` the person, the model's words, tools by name.

    Args:
        limit: the newest so many messages; None = all.
    """
    blocks: list[list[str]] = []
    for message in messages if limit is None else messages[-limit:]:
        lines = harmless(str(message["content"])).splitlines()
        if message["role"] == "user":
            blocks.append(["", *(f"> {line}" for line in lines)])
            continue
        calls = [
            f"  · {one_line(str(call['tool']))} {key_parameter(call['input'])}"
            for call in message["tool_calls"]
        ]
        blocks.append([*(f"  {line}" for line in lines), *(cut(call, width) for call in calls)])
    return [line for block in blocks for line in block]


def last_lines(messages: Sequence[Row], *, width: int, height: int) -> list[str]:
    """Return the end of a dialogue as far as it fits a screen, with the way to the rest. Pure."""
    lines = [part for line in history_lines(messages, width=width) for part in wrapped(line, width) or [""]]
    if len(lines) <= height:
        return lines
    return ["… what was said before: /history all", *lines[len(lines) - height + 1 :]]


async def show_past(chat: "Chat") -> None:
    """Show where a session that is resumed stands: a screen of what was said last, and what is not over."""
    if chat.session is None:
        return
    height = max(get_terminal_size().lines - ROOM_FOR_PROMPT, 5)
    messages = await chat.client.messages(chat.session["id"])
    for line in last_lines(messages, width=chat.screen.width, height=height):
        chat.screen.line(line)
    chat.say_changed()
    await _go_on(chat, chat.session)


async def _go_on(chat: "Chat", session: Row) -> None:
    """Show the turns that were not over when this terminal came, but for one that runs elsewhere."""
    thread_id, is_server = session["id"], chat.client.is_server
    for row in await chat.client.turns(thread_id):
        asked, state = None, row["state"]
        if state == "waiting":
            asked = open_request(await chat.client.turn(thread_id, row["turn_id"]))
        elif state == "running" and session["status"] == "running":
            where = "on the server" if is_server else "in another terminal"
            chat.screen.line(f"a turn runs {where}; follow it with: bowerbird tail {thread_id}", "yellow")
        if asked is not None or (state in ("queued", "running") and session["status"] != "running"):
            chat.watch_turn(row["turn_id"], asked)
            chat.elsewhere |= {row["turn_id"]} if asked is not None or is_server else set()


def say_end(chat: "Chat", turn: Row, session: Row) -> None:
    """Say how a turn has ended, what it took, and what is changed now."""
    screen = chat.screen
    if turn["error"]:
        screen.line(f"{how_it_ended(turn['stop_reason'])}: {turn['error'].get('message')}", "red")
        screen.line("/resume tries again from where it stopped", "dim")
    elif why := why_it_ended(turn["stop_reason"]):
        screen.line(f"stopped: {why}", "yellow")
        if turn["stop_reason"] in CUT_SHORT:
            screen.line('say "go on", and it continues with what is known', "dim")
    window, changed = int(session["context_window"]), changed_files(session)
    seen = cost_line(chat.story.usage, context=chat.context_tokens, window=window, changed=changed)
    screen.line(seen, "dim")
    chat.say_changed()


def rename(shell: Shell, *, session: str, title: str) -> int:
    """Give a session another title."""
    if not title.strip():
        raise CliExit(USAGE, "the title is empty")
    if len(title) > LONGEST_TITLE:
        raise CliExit(USAGE, f"the title has {len(title)} characters; {LONGEST_TITLE} is the most")

    async def work(client: Client) -> int:
        await client.change(await client.find(session), {"title": title})
        return DONE

    return with_client(shell, None, work)


def delete(shell: Shell, *, session: str, yes: bool) -> int:
    """Delete a session and its branch; both can be restored for 7 days."""
    from bowerbird.cli.review.commands import TerminalScreen
    from bowerbird.cli.review.dialogue import confirmed

    async def work(client: Client) -> int:
        thread_id = await client.find(session)
        title = (await client.show(thread_id, messages=False))["title"] or ""
        question = f"Delete session {thread_id} ({one_line(title, 60)})?"
        if not yes and not await confirmed(TerminalScreen(shell), question):
            raise CliExit(USAGE, "nothing was deleted; --yes deletes without asking")
        await client.delete(thread_id)
        shell.terminal.line(f"deleted session {thread_id}")
        return DONE

    return with_client(shell, None, work)


def fork(shell: Shell, *, session: str | None, turn: int | None, json: bool, workspace: str | None) -> int:
    """Copy a session with its files as they were at the end of a turn."""

    async def work(client: Client) -> int:
        thread_id = await client.find(session)
        made = await client.fork(thread_id, await turn_id_of(client, thread_id, turn))
        if json:
            return shell.json({"conversation_id": made})
        shell.terminal.line(made)
        shell.terminal.note(f'go on there with: bowerbird --resume={made} "…"')
        return DONE

    return with_client(shell, workspace, work)


async def turn_id_of(client: Client, thread_id: str, number: int | None) -> str | None:
    """Return the id of turn `number` of a session, None for the last; raises CliExit for an unknown one."""
    if number is None:
        return None
    turns = await client.turns(thread_id)
    found = next((turn for turn in turns if turn["n"] == number), None)
    if found is None:
        there = f"its turns are {turns[0]['n']} to {turns[-1]['n']}" if turns else "it has none"
        raise CliExit(USAGE, f"session {thread_id} has no turn {number}; {there}")
    return str(found["turn_id"])


def changed_files(session: Row | None) -> int:
    """Return how many files a session's branch changes, as its review shows them."""
    return 0 if session is None else int(session["changed_files"])


def status_line(session: Row | None, model: str, changed: int) -> str:
    """Return the line under the prompt: what is changed, the model, and, where there is room, the id."""
    small = " · local, small model" if model.startswith("local:") else ""
    if session is None:
        return f" new session · {model}{small}"
    mode = " · plan mode" if session["enable_plan_mode"] else ""
    return f" {plural(changed, 'file')} changed{mode} · {session['model'] or model}{small} · {session['id']}"
