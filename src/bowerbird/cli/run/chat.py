"""The interactive session: lines in, turns out (UI-52 … UI-57).

Here: what a typed line does in each state, and the life of the turns of one terminal. Not
here: keys and drawing (`prompt_screen.py`, `turn/painter.py`), slash commands (`slash_commands.py`).
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bowerbird.cli.client.opening import Opening
from bowerbird.cli.client.protocol import Client, News, Row
from bowerbird.cli.run.completer import LineCompleter
from bowerbird.cli.run.custom import CustomCommands
from bowerbird.cli.run.mentions import BranchNames, attached
from bowerbird.cli.run.models import ChoosableModels
from bowerbird.cli.run.own_commands import TypedCommands, remember, run_typed
from bowerbird.cli.run.prompt_screen import ChatScreen, Leave
from bowerbird.cli.run.questions import answered
from bowerbird.cli.run.sessions import changed_files, say_end, show_past, status_line
from bowerbird.cli.run.slash_lines import Command, Fact, Refused, Said, Slash, read_line
from bowerbird.cli.run.watching import Watch, open_request, stop_turn
from bowerbird.cli.terminal.drawing import MarkdownPainter
from bowerbird.cli.terminal.error_text import sentence
from bowerbird.cli.terminal.exits import DONE, CliExit, ended_as
from bowerbird.cli.terminal.run_options import RunOptions
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import harmless, one_line, plural, short_path
from bowerbird.cli.turn.asking import is_early_answer
from bowerbird.cli.turn.painter import TurnPainter
from bowerbird.cli.turn.story import Story
from bowerbird.core.errors import BowerbirdError
from bowerbird.core.events import ApprovalRequest, UserStep
from bowerbird.core.tasks import Tasks


async def chat(shell: Shell, opening: Opening, options: RunOptions) -> int:
    """Talk with an agent until the person leaves; everything is kept.

    A new session's prompt comes before its client is open; one that is resumed begins with what was said.
    """
    talk = Chat(shell, opening, options)
    if options.resume is not None:
        await talk.open(await (await talk.opened()).session_for(options))
    try:
        await talk.converse()
    finally:
        await talk.aclose()
    return DONE


class Chat:
    """One terminal and the session it talks to; owned by the task that reads lines.

    Attributes:
        client: what a line works with, from the first line on.
        session: as REST shows it, None until the first message makes one.
        model: what sessions without a model of their own run on. markdown: draws it.
        elsewhere: turns that do not need this terminal.
    """

    client: Client

    def __init__(self, shell: Shell, opening: Opening, options: RunOptions) -> None:
        self.shell = shell
        self.options = options
        self.model = opening.model
        self.session: Row | None = None
        self.story = Story()
        self.changed: list[str] = []
        self.names = BranchNames(self._names)
        self.models = ChoosableModels(self.opened)
        custom = self.custom = CustomCommands(self)
        liked = opening.preferences
        self.screen = ChatScreen(
            shell.terminal,
            history_file=liked.history_file,
            vi_mode=liked.vi_mode,
            on_stop=self._stop_key,
            completer=LineCompleter(
                lambda: custom.menu, lambda: self.changed, self.names.get, self.models.get, custom.known
            ),
            notify=liked.notify,
        )
        self.screen.status = self._status
        self.commands = TypedCommands(self.screen)
        self.markdown = MarkdownPainter(colour=shell.terminal.out.colour, theme=liked.theme)
        self._painter = TurnPainter(self.screen, self.story, self.markdown, quiet=options.quiet)
        self._watch: Watch | None = None
        self._turns: asyncio.Queue[str] = asyncio.Queue()
        self._coming: set[str] = set()  # turns that are shown, or will be
        self._sending = asyncio.Lock()
        self._last_shown = 0
        self._worker: asyncio.Task[None] | None = None
        self._waiting_answer: asyncio.Future[str] | None = None
        self._stopping = False
        self._queued: dict[str, str] = {}
        self._inbox: dict[str, str] = {}
        self._asked: dict[str, ApprovalRequest | None] = {}
        self.elsewhere: set[str] = set()
        self._shown = ""
        self._opening = opening
        self._context_tokens = 0
        self._background = Tasks("slash commands")

    # ------------------------------------------------------------ life

    async def open(self, thread_id: str | None) -> None:
        """Begin with a session, or with one that the first message will make."""
        self.session = None
        self.story = Story()
        self._painter = TurnPainter(self.screen, self.story, self.markdown, quiet=self.options.quiet)
        await self._end_watch()
        if thread_id is not None:
            await self._use(thread_id)

    async def opened(self) -> Client:
        """Return the client, once it is open; raises what keeps it from opening."""
        self.client = await self._opening.client()
        return self.client

    async def _names(self) -> list[str]:
        client = await self.opened()
        return await client.names(None if self.session is None else self.session["id"])

    async def _open_behind_the_prompt(self) -> None:
        await self.screen.shown.wait()
        try:
            await self.opened()
        except Exception as error:  # whatever it is, nothing can be done here: `converse` raises it
            raise Leave from error
        await self.custom.read()

    async def converse(self) -> None:
        """Read lines until the person leaves; raises what keeps the client from opening."""
        from bowerbird import __version__

        where = harmless(short_path(self._opening.where, str(Path.home())))
        said = [f"bowerbird {__version__}", self.model, where]
        self.screen.line(" · ".join(filter(None, said)), "bold")
        self.screen.line("Changes stay on a branch until you /land them. /help lists commands.", "dim")
        await show_past(self)
        self._in_background(self._open_behind_the_prompt())
        with self.screen.held():
            while True:
                self._opening.refuse()
                try:
                    line = await self.screen.read()
                    if await self.screen.carried_out(self._line(self.screen.prompt, line)):
                        self._stop_key()
                except Leave:
                    await self.screen.drained()
                    self._opening.refuse()
                    return
                except (BowerbirdError, CliExit) as error:
                    self.screen.line(f"{harmless(str(error))}", "red")

    async def aclose(self) -> None:
        """Stop what runs (a turn stays resumable) and say how to come back."""
        is_turning = self._is_turning
        await self._background.cancel()
        await self._end_watch()
        if self.session is not None:
            terminal, thread_id = self.shell.terminal, self.session["id"]
            if is_turning and self._shown in self.elsewhere:
                terminal.warn(f"the turn is not over; go on with: bowerbird resume {thread_id}", "dim")
            elif is_turning:
                await self.client.leave(thread_id, self._shown)
                terminal.warn(f"the turn was stopped; continue with: bowerbird resume {thread_id}")
            else:
                terminal.warn(f"continue with: bowerbird --resume={thread_id}", "dim")

    async def _use(self, thread_id: str) -> None:
        """Make a session the one that is talked to, driven and watched."""
        self.session = await self.client.show(thread_id, messages=False)
        await self.refresh()
        await self.client.drive(thread_id)
        self._watch = Watch(self.client, thread_id, int(self.session["cursor"]), say=self.screen.line)
        await self._watch.begin()
        self._begin_showing()

    async def _end_watch(self) -> None:
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        self._turns = asyncio.Queue()
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.aclose()

    # ------------------------------------------------------------ lines

    async def _line(self, prompt: str, line: str) -> None:
        is_message = self.screen.mode == "running" and isinstance(self._read(line), Said)
        if line.strip() and not is_message:  # a message that waits is shown as queued, then above its answer
            if self.screen.mode == "idle":
                self.screen.line("")
            self.screen.echo(prompt, line)
        if self._waiting_answer is not None:
            self._waiting_answer.set_result(line)
            self._waiting_answer = None
            return
        if not line.strip():
            if self.screen.mode == "feedback":
                self.screen.mode = "idle"
            return
        await self.opened()
        said = self._read(line)
        if isinstance(said, Refused):
            await self.custom.read()  # it may be a file that was written just now
            said = self._read(line)
        if isinstance(said, Refused):
            self.screen.line(said.message, "yellow")
        elif isinstance(said, Slash) and said.name in self.custom:
            self._in_background(self.custom.send(said))
        elif isinstance(said, Slash):
            from bowerbird.cli.run.slash_commands import run_slash

            # In a task of its own: it may ask, and its answer is the next line.
            self._in_background(run_slash(self, said))
        elif isinstance(said, Command):
            self._in_background(run_typed(self, said.line))
        elif isinstance(said, Fact):
            self._in_background(remember(self, said.text))
        elif self.commands.running:
            self.commands.hold(said.text)
        elif self._plans() and is_early_answer(said.text):
            # Sent, it would be feedback to the plan and pay for another one.
            self.screen.line(f"{said.text!r} was not sent: no question is open", "yellow")
        else:
            await self.send(said.text)

    def _read(self, line: str) -> Said | Slash | Command | Fact | Refused:
        return read_line(line, self.custom.menu.keys())

    def _plans(self) -> bool:
        is_planning = self.session is not None and bool(self.session["enable_plan_mode"])
        return self.screen.mode == "running" and is_planning

    async def send(self, text: str, *, named_in: str | None = None) -> str:
        """Send a message: it starts a turn, or waits for the one that runs; return the turn.

        Args:
            named_in: what the person typed of it, where names after an @ count; None = all.
        """
        session = await self.ensure_session()
        message = await attached(self.client, session["id"], self.names, text, named_in)
        if message.said:
            self.screen.line(f"goes along: {', '.join(message.said)}", "dim")
        pictures = self.screen.pictures.named_in(text)
        async with self._sending:
            receipt = await self.client.send(session["id"], self.commands.attached(message.text), pictures)
            self.commands.sent()
            turn_id = str(receipt["turn_id"])
            self._inbox[turn_id] = str(receipt["inbox_id"])
            if self.screen.mode == "running":
                self.screen.queued.append(one_line(text, 100))
                self._queued[turn_id] = text
            elif receipt["open_request"]:
                await self._question_first(session["id"])
            self.watch_turn(turn_id)
        return turn_id

    async def _question_first(self, thread_id: str) -> None:
        """Put an older question again: what was said waits for its answer."""
        self.screen.line("This waits: a question of before is open.", "yellow")
        for turn in await self.client.turns(thread_id):
            if turn["state"] == "waiting":
                asked = open_request(await self.client.turn(thread_id, turn["turn_id"]))
                self.watch_turn(str(turn["turn_id"]), asked)

    async def ensure_session(self) -> Row:
        """Return the session, made now when there is none yet."""
        if self.session is None:
            await self._use(await self.client.session_for(replace(self.options, resume=None)))
        assert self.session is not None, "it was made"
        return self.session

    def watch_turn(self, turn_id: str, asked: ApprovalRequest | None = None) -> None:
        """Show a turn, beginning with what it asks already, once those before it have ended."""
        self.elsewhere.discard(turn_id)
        self._begin_showing()
        if asked is None and turn_id in self._coming:
            return
        self._asked[turn_id] = asked
        self._coming.add(turn_id)
        self._turns.put_nowait(turn_id)
        if self.screen.mode in ("idle", "feedback"):  # from now on Ctrl+C is for it
            self.screen.mode = "running"

    def _begin_showing(self) -> None:
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._show_turns(), name="chat turns")
            self._worker.add_done_callback(self._worker_ended)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        async def framed() -> None:
            try:
                await work
            except Leave:
                self.screen.leave()
            except (BowerbirdError, CliExit, OSError) as error:
                self.screen.line(harmless(str(error)), "red")

        self._background.spawn(framed())

    # ------------------------------------------------------------ turns

    async def _next_turn(self) -> str:
        """Return the next turn to show: one of this terminal, or one that another door begins."""
        assert self._watch is not None
        ours = asyncio.ensure_future(self._turns.get())
        theirs = asyncio.ensure_future(self._watch.begun(self._is_new))
        try:
            await asyncio.wait({ours, theirs}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            theirs.cancel()
            await asyncio.gather(theirs, return_exceptions=True)
            if not ours.done():
                ours.cancel()
        if ours.done() and not ours.cancelled():
            return ours.result()
        turn_id = theirs.result()
        self._coming.add(turn_id)
        self.elsewhere.add(turn_id)
        return turn_id

    async def _is_new(self, turn: Row) -> bool:
        """Whether nobody has shown this turn, or will; news of one that has been shown may come late."""
        async with self._sending:  # what is sent from here begins before its receipt comes
            if turn["turn_id"] in self._coming:
                return False
        return turn["n"] > self._last_shown or turn["state"] in ("queued", "running")

    async def _show_turns(self) -> None:
        while True:
            turn_id = self._shown = await self._next_turn()
            self.screen.mode = "running"
            self.screen.doing("starting")
            self.screen.notifier.begin()
            self.story.begin_turn()
            self._painter.begin()
            if (queued := self._queued.pop(turn_id, None)) is not None:
                self.screen.queued.pop(0)
                self.screen.line("")
                self.screen.echo("> ", queued)
            assert self._watch is not None
            asked = self._asked.pop(turn_id, None)
            turn = await self._watch.turn(turn_id, self._show, partial(answered, self), asked)
            self._inbox.pop(turn_id, None)
            self.screen.doing("")
            await self.custom.ended(turn_id)
            await self._ended(turn)
            following = await self._watch.following(turn)
            self._coming.discard(turn_id)
            if following is not None and self._turns.empty():
                self.watch_turn(following)

    def _show(self, news: News) -> None:
        if news.usage is not None:
            self._context_tokens = int(news.usage.get("last_input_tokens") or 0)
        published = news.published
        if published is not None and published.turn_id == self._shown and self._shown in self.elsewhere:
            said = published.event
            if isinstance(said, UserStep) and not said.steer:
                self.screen.line("")
                self.screen.echo("> ", said.message.text)
        self._painter.news(news.published, news.todos)

    @property
    def context_tokens(self) -> int:
        """How much of the context the last answer took, as far as it is known."""
        return self.story.context_tokens or self._context_tokens

    async def compact(self, focus: str) -> None:
        """Have the history summarised before the next answer."""
        await self.client.compact((await self.ensure_session())["id"], focus)

    async def _ended(self, turn: Row) -> None:
        await self.refresh()
        assert self.session is not None, "its turn has ended"
        self._last_shown = int(turn["n"])
        say_end(self, turn, self.session)
        told = self.session["title"] or "the turn", ended_as(turn["stop_reason"], failed=bool(turn["error"]))
        self.screen.notifier.tell(": ".join(told))
        self.screen.mode, self._stopping = "feedback" if self._stopping else "idle", False
        self.screen.redraw()

    def say_changed(self) -> None:
        """Say how many files the branch has changed."""
        if count := changed_files(self.session):
            self.screen.line(f"{plural(count, 'file')} changed: /diff · /land · /discard")

    def _worker_ended(self, worker: "asyncio.Task[None]") -> None:
        self._coming.clear()
        if not worker.cancelled() and (error := worker.exception()) is not None:
            self.screen.line(sentence(error), "red")
            self.screen.mode = "idle"

    async def refresh(self) -> None:
        """Read the session and its changed paths anew."""
        self.names.forget()
        if self.session is None:
            return
        self.session = await self.client.show(self.session["id"], messages=False)
        self.changed = sorted(path.lstrip("/") for path in await self.client.changed(self.session["id"]))

    @property
    def _is_turning(self) -> bool:
        return bool(self._coming)

    def _stop_key(self) -> None:
        """Ctrl+C in a turn: stop it, then ask for feedback; at a command's question: it is given up."""
        waiting, self._waiting_answer = self._waiting_answer, None
        if waiting is not None and self._is_turning:
            waiting.set_result("")
        elif waiting is not None:
            waiting.cancel()
            self.screen.line("stopped; nothing was done", "yellow")
        self.commands.stop()
        if self.session is None or self._stopping or not self._is_turning:
            return
        self._stopping = True
        self.screen.doing("stopping")
        inbox_id = self._inbox.get(self._shown)
        thread_id, say = self.session["id"], self.screen.warn
        self._in_background(stop_turn(self.client, thread_id, self._shown, inbox_id, say))

    # ------------------------------------------------------------ questions

    async def ask(self, question: str, text: str = "") -> str:
        """Return the line that answers `question`, begun as `text`; "" when the turn was stopped instead."""
        mode = self.screen.mode
        self.screen.mode, self.screen.question = "asking", question
        self.screen.redraw()
        self._waiting_answer = asyncio.get_running_loop().create_future()
        if text:
            self.screen.begin_line(text)
        try:
            return await self._waiting_answer
        finally:
            self._waiting_answer = None
            self.screen.question = ""
            self.screen.mode = mode

    @property
    def stopping(self) -> bool:
        """Whether the turn is being stopped: nobody is asked any more."""
        return self._stopping

    @property
    def current_model(self) -> str:
        """What the next turn runs on."""
        return self.model if self.session is None else str(self.session["model"] or self.model)

    def _status(self) -> str:
        return status_line(self.session, self.model, changed_files(self.session))
