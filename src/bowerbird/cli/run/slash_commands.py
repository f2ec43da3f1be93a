"""What each slash command does (UI-52).

Here: one function per command. Not here: reading lines, drawing of turns.
"""

from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bowerbird.cli.review.dialogue import discard, land, say_discarded, say_landed, say_undone, undo
from bowerbird.cli.run.export import exported, form_of, write_new
from bowerbird.cli.run.models import model_lines
from bowerbird.cli.run.prompt_screen import Leave
from bowerbird.cli.run.sessions import history_lines, session_row, turn_id_of
from bowerbird.cli.run.slash_lines import COMMANDS, Slash
from bowerbird.cli.terminal.drawing import coloured_diff, diff_lines
from bowerbird.cli.terminal.pager import show_paged
from bowerbird.cli.terminal.terminal import Ability, Terminal
from bowerbird.cli.terminal.text import count, harmless, money, plural, table, wrapped
from bowerbird.sessions.wishes import CommitWish, ToLand

if TYPE_CHECKING:
    from bowerbird.cli.run.chat import Chat

# What may be done while a turn runs; the rest waits for its end.
_ALWAYS = frozenset({"help", "cost", "context", "diff", "history", "show", "sessions", "quit", "exit"})

MOST_SESSIONS = 20  # that `/sessions` lists

INIT = (
    "Look through this project and write AGENTS.md at its top, for coding agents that begin here: what it "
    "is in two sentences, where things are, the exact commands that build, test and check it, and the "
    "conventions that the files themselves show. At most 60 lines, nothing that is true of every project. "
    "Improve an AGENTS.md that is there already; take over what still holds from CLAUDE.md, GEMINI.md or "
    ".cursorrules."
)
"""What `/init` sends; the file is written on the branch."""


async def run_slash(chat: "Chat", command: Slash) -> None:
    """Run one slash command; raises Leave, or what the command met."""
    if chat.screen.mode == "running" and command.name not in _ALWAYS:
        chat.screen.line(f"/{command.name} has to wait for the end of the turn (Ctrl+C stops it)", "yellow")
        return
    await _COMMANDS[command.name](chat, command.argument)


async def _help(chat: "Chat", _: str) -> None:
    await chat.custom.read()
    indent = max(map(len, COMMANDS)) + 3
    for name, text in chat.custom.menu.items():
        first, *more = wrapped(text, max(chat.screen.width - indent, 10))
        chat.screen.line(f"/{name} ".ljust(indent) + first)
        for line in more:
            chat.screen.line(" " * indent + line)
    for hint in (
        "@FILE: name a file. !COMMAND: run it on the branch yourself. #TEXT: remember it here.",
        "Alt+Enter: new line. Ctrl+R: earlier lines. Esc or Ctrl+C: stop the turn. Typing meanwhile queues.",
    ):
        chat.screen.line(hint, "dim")


async def _leave(chat: "Chat", _: str) -> None:
    raise Leave


async def _clear(chat: "Chat", _: str) -> None:
    await chat.open(None)
    chat.changed = []
    chat.screen.line("a new session begins with your next message; the old one is kept", "dim")


async def _compact(chat: "Chat", focus: str) -> None:
    await chat.compact(focus)
    await chat.refresh()
    chat.screen.line("the history is summarised before the next answer", "dim")


async def _model(chat: "Chat", name: str) -> None:
    if not name:
        for line in model_lines(await chat.models.get(), chat.current_model, chat.screen.width):
            chat.screen.line(line)
        return
    session = await chat.ensure_session()
    await chat.client.change(session["id"], {"model": name})
    await chat.refresh()
    assert chat.session is not None, "it was made"
    chat.screen.line(f"this session now runs on {chat.session['model']}")


async def _history(chat: "Chat", argument: str) -> None:
    if chat.session is None:
        chat.screen.line("nothing was said yet", "dim")
        return
    word = argument.removeprefix("n=")
    number = None if word == "all" else int(word) if word.isdigit() else 20
    messages = await chat.client.messages(chat.session["id"])
    for line in history_lines(messages, width=chat.screen.width, limit=number):
        chat.screen.line(line)


async def _resume(chat: "Chat", _: str) -> None:
    session = await chat.ensure_session()
    chat.watch_turn(await chat.client.resume(session["id"]))


async def _cost(chat: "Chat", _: str) -> None:
    total = chat.story.total
    read = total.input_tokens + total.cache_read_tokens + total.cache_write_tokens
    here = f"here: {count(read)} in · {count(total.output_tokens)} out · {money(total.cost)}"
    chat.screen.line(here)
    if chat.session is not None:
        await chat.refresh()
        turns = plural(len(await chat.client.turns(chat.session["id"])), "turn")
        chat.screen.line(f"session: {money(chat.session['cost'])} in {turns}")


async def _context(chat: "Chat", _: str) -> None:
    session = await chat.ensure_session()
    window, used = int(session["context_window"]), chat.context_tokens
    chat.screen.line(f"{count(used)} of {count(window)} tokens ({round(100 * used / window)}%)")


async def _diff(chat: "Chat", argument: str) -> None:
    session = await chat.ensure_session()
    patch = await chat.client.patch(session["id"], chat.client.paths(argument.split()) or None)
    if not patch:
        chat.screen.line("nothing is changed", "dim")
        return
    drawn = coloured_diff(patch, chat.shell.terminal.out)
    await chat.screen.lend(lambda: show_paged(chat.shell.terminal, drawn, patch))


class ChatReview:
    """The review at the prompt: questions and results above it, answers on its line."""

    prefix = "/"
    can_ask = True

    def __init__(self, chat: "Chat") -> None:
        self._chat = chat

    @property
    def width(self) -> int:
        """See `Screen`."""
        return self._chat.screen.width

    @property
    def stream(self) -> Ability:
        """See `Screen`."""
        return self._chat.shell.terminal.out

    def warn(self, text: str, style: str = "") -> None:
        """See `Screen`."""
        self._chat.screen.line(text, style)

    def tell(self, text: str, style: str = "") -> None:
        """See `Screen`."""
        self._chat.screen.line(text, style)

    def note(self, text: str) -> None:
        """See `Screen`."""
        self._chat.screen.line(text, "dim")

    def draw(self, text: str) -> None:
        """See `Screen`."""
        self._chat.screen.answer(text)

    async def page(self, drawn: str, plain: str) -> None:
        """See `Screen`."""
        await self._chat.screen.lend(lambda: show_paged(self._chat.shell.terminal, drawn, plain))

    def step(self, bar: str) -> None:
        """See `Screen`."""
        self._chat.screen.show_step(bar)

    async def ask(self, question: str) -> str | None:
        """See `Screen`."""
        return await self._chat.ask(question)


async def _land(chat: "Chat", argument: str) -> None:
    given, has_message, message = f" {argument} ".partition(" -m ")
    words = given.split()
    on = next((word for before, word in pairwise(words) if before == "--branch"), None)
    commit = None
    if on or has_message or "--commit" in words:
        commit = CommitWish(message.strip() or None, branch=on)
    session = await chat.ensure_session()
    given = [word for word in words if word not in ("--patch", "--include", "--commit", "--branch", on)]
    included = {word for before, word in pairwise(words) if before == "--include"}
    paths = chat.client.paths([word for word in given if word not in included]) or None
    screen = ChatReview(chat)
    wanted = ToLand(paths=paths, include=chat.client.paths(sorted(included)), commit=commit)
    outcome = await land(screen, chat.client, session["id"], wanted, patch="--patch" in words)
    await chat.refresh()
    say_landed(screen, outcome)


async def _undo(chat: "Chat", argument: str) -> None:
    words = argument.split()
    wanted = next((word for word in words if word not in ("--force", "--commit")), None)
    screen = ChatReview(chat)
    outcome = await undo(screen, chat.client, wanted, force="--force" in words, commit="--commit" in words)
    await chat.refresh()
    say_undone(screen, outcome)


async def _discard(chat: "Chat", _: str) -> None:
    session, screen = await chat.ensure_session(), ChatReview(chat)
    gone = await discard(screen, chat.client, session["id"], yes=False)
    await chat.refresh()
    if gone is not None:
        say_discarded(screen, session["id"], gone)


async def _fork(chat: "Chat", argument: str) -> None:
    session = await chat.ensure_session()
    number = int(argument) if argument.isdigit() else None
    before = session["id"]
    child = await chat.client.fork(before, await turn_id_of(chat.client, before, number))
    await chat.open(child)
    chat.screen.line(f"you are now in {child}, a copy; {before} is kept as it was")


async def _sessions(chat: "Chat", _: str) -> None:
    found = await chat.client.sessions(every=False)
    listed = found[:MOST_SESSIONS]
    rows = [session_row(session, every=chat.client.is_server, width=chat.screen.width) for session in listed]
    for line in table(rows, width=chat.screen.width):
        chat.screen.line(line)
    if len(found) > len(listed):
        chat.screen.line(f"{len(found) - len(listed)} more: bowerbird sessions", "dim")


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
    said = "the agent may have teammates now" if on else "teams are off; active teammates are shut down first"
    await _set(chat, {"enable_teams": on}, said)


async def _approval(chat: "Chat", argument: str) -> None:
    on = _on_off(argument)
    if on is None:
        chat.screen.line("use /approval on or /approval off", "yellow")
        return
    said = "every unsafe tool now asks first" if on else "only effects outside the branch now ask first"
    await _set(chat, {"enable_approval": on}, said)


_THINKING = {None: "as the model does by itself", True: "on", False: "off"}


async def _thinking(chat: "Chat", argument: str) -> None:
    if not argument:
        on = (await chat.ensure_session())["enable_thinking"]
        chat.screen.line(f"thinking is {_THINKING[on]}")
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
    diff, width = chat.story.diffs.get(int(argument)), chat.screen.width
    if diff is None:
        drawn = harmless(text) + "\n"
    else:
        lines = diff_lines(diff, width=width, rest="/diff", limit=None)
        drawn = "".join(Terminal.styled(line, style, chat.shell.terminal.out) + "\n" for line, style in lines)
    await chat.screen.lend(lambda: show_paged(chat.shell.terminal, drawn, drawn))


async def _export(chat: "Chat", argument: str) -> None:
    if chat.session is None:
        chat.screen.line("nothing was said yet", "dim")
        return
    thread_id = str(chat.session["id"])
    name = argument or f"conversation-{thread_id}.md"
    write_new(name, await exported(chat.client, thread_id, form_of(name)))
    chat.screen.line(f"written: {name}")


async def _init(chat: "Chat", _: str) -> None:
    await chat.send(INIT)


async def _set(chat: "Chat", changes: dict[str, Any], said: str) -> None:
    session = await chat.ensure_session()
    await chat.client.change(session["id"], changes)
    await chat.refresh()
    chat.screen.line(said)


def _on_off(argument: str) -> bool | None:
    return {"on": True, "off": False}.get(argument.strip().lower())


_COMMANDS: dict[str, Callable[["Chat", str], Awaitable[None]]] = {
    "help": _help, "clear": _clear, "compact": _compact, "model": _model, "history": _history,
    "resume": _resume, "cost": _cost, "diff": _diff, "land": _land, "undo": _undo, "discard": _discard,
    "fork": _fork, "sessions": _sessions, "plan": _plan, "execute": _execute, "teams": _teams,
    "approval": _approval, "thinking": _thinking, "context": _context, "export": _export,
    "init": _init, "show": _show, "quit": _leave,
    "exit": _leave,
}  # fmt: skip
