"""What each slash command does (UI-52).

Here: one function per command. Not here: reading lines, drawing of turns.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bowerbird.cli.chat_screen import Leave
from bowerbird.cli.choosing import HELP, Choosing, questions_of
from bowerbird.cli.drawing import coloured_diff, key_parameter
from bowerbird.cli.exits import USAGE, CliExit
from bowerbird.cli.marking import held_lines, to_accept
from bowerbird.cli.pager import show_paged
from bowerbird.cli.picking import branch_paths
from bowerbird.cli.review_dialogue import MARKS
from bowerbird.cli.review_shown import files_of, steps_of
from bowerbird.cli.slash import COMMANDS, Slash
from bowerbird.cli.text import age, count, harmless, money, one_line, plural, table, wrapped
from bowerbird.core.errors import LandingRefused
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import from_iso
from bowerbird.sessions.review import ToLand

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.cli.chat import Chat
    from bowerbird.sessions import SessionInfo

# What may be done while a turn runs; the rest waits for its end.
_ALWAYS = frozenset({"help", "cost", "context", "diff", "history", "show", "sessions", "quit", "exit"})

MOST_LISTED = 20


async def run_slash(chat: "Chat", command: Slash) -> None:
    """Run one slash command; raises Leave, or what the command met."""
    if chat.screen.mode == "running" and command.name not in _ALWAYS:
        chat.screen.line(f"/{command.name} has to wait for the end of the turn (Ctrl+C stops it)", "yellow")
        return
    await _COMMANDS[command.name](chat, command.argument)


async def _help(chat: "Chat", _: str) -> None:
    indent = max(map(len, COMMANDS)) + 3
    for name, text in COMMANDS.items():
        first, *more = wrapped(text, max(chat.screen.width - indent, 10))
        chat.screen.line(f"/{name}".ljust(indent) + first)
        for line in more:
            chat.screen.line(" " * indent + line)
    chat.screen.line(
        "Alt+Enter: new line. Ctrl+C: stop the turn. Typing during a turn queues the message.", "dim"
    )


async def _leave(chat: "Chat", _: str) -> None:
    raise Leave


async def _clear(chat: "Chat", _: str) -> None:
    await chat.open(None)
    chat.changed = []
    chat.screen.line("a new session begins with your next message; the old one is kept", "dim")


async def _compact(chat: "Chat", focus: str) -> None:
    session = await chat.ensure_session()
    await chat.application.sessions.set_flags(session.thread_id, {"compact": focus})
    await chat.refresh()
    chat.screen.line("the history is summarised before the next answer", "dim")


async def _model(chat: "Chat", name: str) -> None:
    if not name:
        present = chat.model if chat.session is None else str(chat.session.flags.get("model") or chat.model)
        chat.screen.line(present)
        return
    from bowerbird.app import choose_model

    chosen = choose_model(chat.application.loaded, name)
    session = await chat.ensure_session()
    await chat.application.sessions.set_flags(session.thread_id, {"model": chosen.name})
    await chat.refresh()
    chat.screen.line(f"this session now runs on {chosen.name}")


async def _history(chat: "Chat", argument: str) -> None:
    if chat.session is None:
        chat.screen.line("nothing was said yet", "dim")
        return
    number = int(argument.removeprefix("n=")) if argument.removeprefix("n=").isdigit() else 20
    records = await chat.application.sessions.history(chat.session.thread_id)
    for line in _history_lines(records, width=chat.screen.width, limit=number):
        chat.screen.line(line)


async def _resume(chat: "Chat", _: str) -> None:
    session = await chat.ensure_session()
    turn = await chat.application.sessions.resume(thread_id=session.thread_id)
    chat.watch_turn(turn.turn_id)


async def _cost(chat: "Chat", _: str) -> None:
    total = chat.story.total
    read = total.input_tokens + total.cache_read_tokens + total.cache_write_tokens
    here = f"here: {count(read)} in · {count(total.output_tokens)} out · {money(total.cost)}"
    chat.screen.line(here)
    if chat.session is not None:
        await chat.refresh()
        chat.screen.line(f"session: {money(chat.session.cost)} in {plural(chat.session.turns, 'turn')}")


async def _context(chat: "Chat", _: str) -> None:
    window = chat.application.maker.window_of(chat.story.model)
    used = chat.story.context_tokens
    chat.screen.line(f"{count(used)} of {count(window)} tokens ({round(100 * used / window)}%)")


async def _diff(chat: "Chat", argument: str) -> None:
    branch = await _branch(chat)
    paths = branch_paths(argument.split(), chat.workspace) or None
    patch = await to_thread(branch.unified, paths)
    if not patch:
        chat.screen.line("nothing is changed", "dim")
        return
    drawn = coloured_diff(patch, chat.shell.terminal.out)
    await chat.screen.lend(lambda: show_paged(chat.shell.terminal, drawn, patch))


async def _land(chat: "Chat", argument: str) -> None:
    words = argument.split()
    by_hunk = "--patch" in words
    branch = await _branch(chat)
    paths = branch_paths([word for word in words if word != "--patch"], chat.workspace) or None
    plan = await to_thread(branch.plan_landing, paths)
    entries = [row.record() for row in plan.entries if not row.ignored or paths]
    if not entries:
        chat.screen.line("nothing to land", "dim")
        return
    request: dict[str, Any] = {"paths": paths, "plan": plan.id, "accept": []}
    if by_hunk:
        diff = await to_thread(branch.diff, paths)
        choice = await _choose_hunks(chat, entries, diff.record())
        if choice.is_empty:
            chat.screen.line("nothing was chosen", "dim")
            return
        request = {"paths": list(choice.paths) or None, "hunks": list(choice.hunks) or None}
        request["accept"] = list(choice.accept)
    else:
        rows = [
            [MARKS.get(row["op"], "M"), harmless(row["path"].lstrip("/")), _drift_of(row)] for row in entries
        ]
        for line in table(rows[:MOST_LISTED], width=chat.screen.width):
            chat.screen.line(line)
        if len(rows) > MOST_LISTED:
            chat.screen.line(f"… and {len(rows) - MOST_LISTED} more: /diff shows all", "dim")
        request["accept"] = await _accept_flagged(chat, entries)
        if not await _yes(chat, f"land {plural(len(entries), 'change')}? [y/N] "):
            chat.screen.line("nothing landed", "dim")
            return
    try:
        bar = steps_of(chat.screen.show_step, len(entries), width=chat.screen.width)
        review, wanted = chat.application.sessions.review, ToLand(**request)
        landing = await review.land(_id(chat), wanted, actor="cli", door="cli", told=bar)
    except LandingRefused as refusal:
        chat.screen.line("nothing landed:", "red")
        for row in refusal.refused:
            chat.screen.line(f"  {harmless(row['path'].lstrip('/'))}: {row['reason']}", "red")
        return
    finally:
        chat.screen.show_step("")
    await chat.refresh()
    landed = plural(files_of(landing.record()["entries"]), "change")
    chat.screen.line(f"landed {landed} as {landing.id}; /undo takes it back", "green")


async def _accept_flagged(chat: "Chat", entries: list[dict[str, Any]]) -> list[str]:
    accepted: list[str] = []
    for line in held_lines(entries):
        chat.screen.line(line, "yellow")
    for path, reason in to_accept(entries, ()):
        chat.screen.line(f"{harmless(path)} is shown apart: {reason}", "yellow")
        if await _yes(chat, "accept it? [y/N] "):
            accepted.append(path)
    return accepted


async def _choose_hunks(chat: "Chat", entries: list[dict[str, Any]], diff: dict[str, Any]) -> Any:
    choosing = Choosing(questions_of(entries, diff))
    while (question := choosing.question) is not None:
        flags = f" [{', '.join(question.flags)}]" if question.flags else ""
        chat.screen.line(f"{question.op} {harmless(question.path.lstrip('/'))}{flags}", "bold")
        chat.screen.answer(coloured_diff(question.text + "\n", chat.shell.terminal.out))
        line = (
            (await chat.ask(f"({question.number}/{question.of}) land this? [y,n,a,d,q,?] ")).strip().lower()
        )
        if line[:1] in ("y", "n", "a", "d", "q"):
            choosing.answer(line[:1])  # pyright: ignore[reportArgumentType] - one of the answers
        else:
            chat.screen.line(HELP)
    return choosing.choice


async def _undo(chat: "Chat", argument: str) -> None:
    review, place = chat.application.sessions.review, str(chat.workspace)
    known = await review.landings(place)
    standing = [row.id for row in known if row.state == "done" and row.kind == "land"]
    wanted = argument or (standing[-1] if standing else "")
    if not wanted:
        chat.screen.line("nothing has landed here that could be taken back")
        return
    undone = await review.undo(place, wanted, actor="cli", door="cli")
    changed = plural(files_of(undone.record()["entries"]), "change")
    chat.screen.line(f"took {wanted} back ({changed})")
    await chat.refresh()


async def _discard(chat: "Chat", _: str) -> None:
    await _branch(chat)
    await chat.refresh()
    if not chat.changed:
        chat.screen.line("nothing to discard", "dim")
        return
    if not await _yes(chat, f"discard {plural(len(chat.changed), 'change')}? [y/N] "):
        return
    gone = await chat.application.sessions.review.discard(_id(chat))
    await chat.refresh()
    chat.screen.line(f"discarded; kept for 7 days as branch {gone.branch}", "green")


async def _fork(chat: "Chat", argument: str) -> None:
    session = await chat.ensure_session()
    number = int(argument) if argument.isdigit() else None
    turn_id = await _turn_id_of(chat.application, session, number)
    child = await chat.application.sessions.fork(session.thread_id, turn_id)
    await chat.open(child)
    chat.screen.line(f"you are now in {child.thread_id}, a copy; {session.thread_id} is kept as it was")


async def _sessions(chat: "Chat", _: str) -> None:
    found = await chat.application.sessions.list(workspace=str(chat.workspace), limit=20)
    for line in table([_session_row(session, every=False) for session in found], width=chat.screen.width):
        chat.screen.line(line)


async def _plan(chat: "Chat", _: str) -> None:
    await _set(
        chat, {"enable_plan_mode": True}, "plan mode is on: the agent looks and plans, and changes nothing"
    )


async def _execute(chat: "Chat", _: str) -> None:
    await _set(chat, {"enable_plan_mode": False}, "plan mode is off")


async def _teams(chat: "Chat", argument: str) -> None:
    on = _on_off(argument)
    if on is None:
        chat.screen.line("use /teams on or /teams off", "yellow")
        return
    said = "the agent may have teammates now" if on else "no teammates; living ones are shut down first"
    await _set(chat, {"enable_teams": on}, said)


async def _approval(chat: "Chat", argument: str) -> None:
    on = _on_off(argument)
    if on is None:
        chat.screen.line("use /approval on or /approval off", "yellow")
        return
    changes: dict[str, Any] = {"enable_approval": on} | ({} if not on else {"auto_approve": False})
    await _set(
        chat, changes, "every unsafe tool asks now" if on else "only effects outside the branch ask now"
    )


async def _thinking(chat: "Chat", argument: str) -> None:
    settings = chat.application.loaded.settings.agent
    flags = {} if chat.session is None else chat.session.flags
    if not argument:
        on = flags.get("enable_thinking", settings.thinking_enabled)
        chat.screen.line(f"thinking is {'on' if on else 'off'}")
    elif argument in ("high", "max"):
        await _set(
            chat, {"enable_thinking": True, "thinking_effort": argument}, f"thinking is on, {argument}"
        )
    elif (on := _on_off(argument)) is not None:
        await _set(chat, {"enable_thinking": on}, f"thinking is {'on' if on else 'off'}")
    else:
        chat.screen.line("use /thinking on, off, high or max", "yellow")


async def _show(chat: "Chat", argument: str) -> None:
    text = chat.story.results.get(int(argument)) if argument.isdigit() else None
    if text is None:
        chat.screen.line(f"there is no result {argument!r}; results are numbered from 1", "yellow")
        return
    drawn = harmless(text) + "\n"
    await chat.screen.lend(lambda: show_paged(chat.shell.terminal, drawn, drawn))


async def _set(chat: "Chat", changes: dict[str, Any], said: str) -> None:
    session = await chat.ensure_session()
    await chat.application.sessions.set_flags(session.thread_id, changes)
    await chat.refresh()
    chat.screen.line(said)


def _id(chat: "Chat") -> str:
    assert chat.session is not None, "it was made before"
    return chat.session.thread_id


async def _branch(chat: "Chat") -> Any:
    session = await chat.ensure_session()
    return await chat.application.sessions.branch(session.thread_id)


async def _yes(chat: "Chat", question: str) -> bool:
    return (await chat.ask(question)).strip().lower() in ("y", "yes")


def _on_off(argument: str) -> bool | None:
    return {"on": True, "off": False}.get(argument.strip().lower())


def _session_row(session: "SessionInfo", *, every: bool) -> list[str]:
    """Return a session's line as cells: id, state, age, cost, title."""
    idle = (datetime.now(UTC) - from_iso(session.updated_at)).total_seconds()
    cells = [session.thread_id, session.status, age(idle), money(session.cost)]
    if every:
        cells.append(harmless(session.workspace or "-"))
    return [*cells, one_line(session.title or "", 80)]


def _history_lines(records: Any, *, width: int, limit: int | None = None) -> list[str]:
    """Return the dialogue of a journal as lines: `>` the person, tools by name, the model's words.

    Args:
        limit: the newest so many messages; None = all.
    """
    from bowerbird.core.events import AssistantStep, UserStep
    from bowerbird.sessions.journal.events_as_records import events_of

    blocks: list[list[str]] = []
    for _, event in events_of(records):
        if isinstance(event, UserStep):
            blocks.append(["", *(f"> {line}" for line in harmless(event.message.text).splitlines())])
        elif isinstance(event, AssistantStep):
            said = [f"  {line}" for line in harmless(event.message.text).splitlines()]
            calls = [f"  · {use.name} {key_parameter(use.input)}" for use in event.message.tool_uses]
            blocks.append(said + calls)
    from bowerbird.cli.text import cut

    chosen = blocks if limit is None else blocks[-limit:]
    return [cut(line, width) if line.startswith("  · ") else line for block in chosen for line in block]


async def _turn_id_of(application: "Application", session: "SessionInfo", number: int | None) -> str | None:
    """Return the id of turn `number` of a session, None for the last; raises CliExit for an unknown one."""
    if number is None:
        return None
    turns = await application.sessions.turns(session.thread_id)
    found = next((turn for turn in turns if turn.n == number), None)
    if found is None:
        numbers = ", ".join(str(turn.n) for turn in turns) or "none"
        raise CliExit(USAGE, f"session {session.thread_id} has no turn {number}; there are: {numbers}")
    return found.turn_id


def _drift_of(row: dict[str, Any]) -> str:
    notes = {"mergeable": "edited since: will be merged", "conflict": "CONFLICT", "same": "already there"}
    return notes.get(row["drift"], "")


_COMMANDS: dict[str, Callable[["Chat", str], Awaitable[None]]] = {
    "help": _help, "clear": _clear, "compact": _compact, "model": _model, "history": _history,
    "resume": _resume, "cost": _cost, "diff": _diff, "land": _land, "undo": _undo, "discard": _discard,
    "fork": _fork, "sessions": _sessions, "plan": _plan, "execute": _execute, "teams": _teams,
    "approval": _approval, "thinking": _thinking, "context": _context, "show": _show, "quit": _leave,
    "exit": _leave,
}  # fmt: skip
