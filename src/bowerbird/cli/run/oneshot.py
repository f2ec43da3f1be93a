"""One turn without a prompt line: watch it, answer what it asks, print the result (UI-56 … UI-60).

Here: the run of one turn and its three output forms. Not here: input, sessions, drawing.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from bowerbird.cli.client.protocol import Client, News, Row
from bowerbird.cli.run.watching import Ask, Watch, open_request
from bowerbird.cli.terminal.drawing import MarkdownPainter
from bowerbird.cli.terminal.exits import APPROVAL, TIMEOUT, CliExit, code_of_turn, how_it_ended, why_it_ended
from bowerbird.cli.terminal.run_options import RunOptions
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.terminal import Spinner, Terminal
from bowerbird.cli.terminal.text import cost_line, cut, harmless_json, plural
from bowerbird.cli.turn.answer import Answer
from bowerbird.cli.turn.asking import question_first
from bowerbird.cli.turn.painter import TurnPainter
from bowerbird.cli.turn.story import Story
from bowerbird.core.events import ApprovalRequest

_FRAME_S = 0.1


def who_answers(options: RunOptions, terminal: Terminal) -> Ask | None:
    """Return who answers questions of a one-shot run: the person at the terminal, `--yes`, or nobody."""
    if options.yes:
        from bowerbird.cli.turn.asking import approve_within_policy

        return approve_within_policy
    if sys.stdin.isatty() and sys.stderr.isatty() and options.form == "text":
        return partial(_ask_at_terminal, terminal)
    return None


async def _ask_at_terminal(terminal: Terminal, request: ApprovalRequest) -> Answer | None:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output.defaults import create_output

    from bowerbird.cli.turn.dialogue import ask_person

    prompt: PromptSession[str] = PromptSession(output=create_output(stdout=sys.stderr))

    async def read(question: str, text: str) -> str:
        return await prompt.prompt_async(question, default=text)

    return await ask_person(request, terminal.warn, read, terminal.width)


class OneShotSink:
    """Draws on the two streams; a status line while something runs."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._spinner: Spinner | None = None
        self._calls: dict[str, tuple[Spinner, str]] = {}

    @property
    def width(self) -> int:
        """Columns now."""
        return self._terminal.width

    def answer(self, text: str) -> None:
        """Show a drawn block on standard output."""
        self._terminal.write(text)

    def line(self, text: str, style: str = "") -> None:
        """Show a line on standard error."""
        self._terminal.note(text, style)

    def warn(self, text: str) -> None:
        """Show a line on standard error, quiet or not."""
        self._terminal.warn(text, "yellow")

    def doing(self, action: str) -> None:
        """Set the status."""
        if not action:
            self._spinner = None
            self._calls.clear()
            self._terminal.clear_status()
        elif self._spinner is None or self._spinner.action != action:
            self._spinner = Spinner.of(action)

    def pending(self, text: str) -> None:
        """An unfinished block is shown when it is finished."""

    def running(self, call: str, what: str, last: str = "") -> None:
        """Show a call that runs in the status line, with the last line of its output."""
        if what:
            began = self._calls[call][0] if call in self._calls else Spinner.of(what)
            self._calls[call] = (began, last)
        else:
            self._calls.pop(call, None)

    def worker(self, handle: str, doing: str) -> None:
        """Say that a subagent begins; its end is a line of its own."""
        if doing:
            self._terminal.note(
                cut(f"    ▸ {doing}", self.width) if self._terminal.err.cursor else f"    {doing}", "dim"
            )

    async def animate(self) -> None:
        """Move the spinner until cancelled."""
        while True:
            if self._calls:
                spinner, last = next(iter(self._calls.values()))
                room = self.width - 1
                frame = spinner.frame(width=room * 2 // 3 if last else room)
                self._terminal.status(f"{frame} · {last}" if last else frame)
            elif self._spinner is not None:
                self._terminal.status(self._spinner.frame())
            await asyncio.sleep(_FRAME_S)


class OneShot:
    """Runs one turn of a session for the command line.

    Args:
        shell: streams. client: whom to ask. options: of the command.
        ask: answers questions; None = nobody, so that what would ask is denied.
    """

    def __init__(self, shell: Shell, client: Client, options: RunOptions, ask: Ask | None) -> None:
        self._terminal = shell.terminal
        self._client = client
        self._options = options
        self._is_attended = ask is not None
        if ask is None and client.is_server:
            ask = self._deny
        self._ask = None if ask is None else self._without_status(ask)
        self._sink = OneShotSink(shell.terminal)
        self._story = Story()
        self._usage: Mapping[str, Any] | None = None
        self._denied: list[str] = []
        self._timeout = options.timeout or client.preferences.timeout_s

    async def _deny(self, request: ApprovalRequest) -> Answer | None:
        """Answer what a server asks where nobody sits; in this process it is denied before it is asked.

        A plan, a question or an effect waits for whoever comes: an answer of ours would be a person's word.
        """
        if request.kind == "budget":
            self._terminal.warn(f"stopped: {request.text}", "red")
            return Answer("stop")
        if request.kind != "approval":
            return None
        self._denied += [str(tool.get("name")) for tool in request.tools]
        return Answer("deny", "nobody can answer here")

    def _without_status(self, ask: Ask) -> Ask:
        """Have nothing move on the screen while a person is asked."""

        async def asked(request: ApprovalRequest) -> Answer | None:
            self._sink.doing("")
            answer = await ask(request)
            self._sink.doing("thinking")
            return answer

        return asked

    async def run(self, thread_id: str, send: Callable[[], Awaitable[Row]]) -> int:
        """Send what begins a turn and watch that; returns the exit code."""

        async def begin() -> str:
            await self._client.drive(thread_id)
            receipt = await send()
            if receipt["open_request"]:
                await self._question_first(thread_id, receipt["open_request"])
            return str(receipt["turn_id"])

        return await self._watched(thread_id, begin)

    async def _question_first(self, thread_id: str, request_id: str) -> None:
        """Put an older question to the person at the terminal: the message waits for its answer."""
        if self._ask is None or not self._is_attended or self._options.yes:
            raise CliExit(APPROVAL, question_first(request_id))
        self._terminal.warn("a question of before is open; the message waits for its answer", "yellow")
        turn = next(t for t in await self._client.turns(thread_id) if t["state"] == "waiting")
        await self._answer_pending(thread_id, turn, self._ask)

    async def go_on(self, thread_id: str, turn: Row) -> int:
        """Resume `turn` and watch it; returns the exit code."""
        client = self._client

        async def begin() -> str:
            is_left = turn["state"] == "failed" or turn["stop_reason"] == "disconnected"
            if is_left or (turn["state"] == "running" and not client.is_server):
                # Said before it is driven: a person's resume is no further death of the turn.
                await client.resume(thread_id)
            await client.drive(thread_id)
            if turn["state"] == "waiting" and self._ask is not None:
                await self._answer_pending(thread_id, turn, self._ask)
            return str(turn["turn_id"])

        return await self._watched(thread_id, begin)

    async def _answer_pending(self, thread_id: str, turn: Row, ask: Ask) -> None:
        request = open_request(await self._client.turn(thread_id, turn["turn_id"]))
        if request is None:
            return
        answer = await ask(request)
        if answer is not None:
            await self._client.answer(thread_id, request.id, answer)

    async def _watched(self, thread_id: str, begin: Callable[[], Awaitable[str]]) -> int:
        before = await self._client.show(thread_id, messages=False)
        is_json = self._options.form != "text"
        watch = Watch(self._client, thread_id, int(before["cursor"]), lines=is_json, say=self._terminal.note)
        animation = asyncio.create_task(self._sink.animate())
        self._sink.doing("starting")
        turn_id = ""
        try:
            async with asyncio.timeout(self._timeout):
                await watch.begin()
                turn_id = await begin()
                show = self._show()
                turn = await watch.turn(turn_id, show, self._ask)
                while self._is_attended and (following := await watch.following(turn)) is not None:
                    turn = await watch.turn(following, show, self._ask)
        except TimeoutError:
            self._sink.doing("")
            await self._stopped(thread_id, turn_id, f"stopped after {self._timeout:g} s (--timeout)")
            return TIMEOUT
        except BaseException as error:
            self._sink.doing("")
            quietly = isinstance(error, BrokenPipeError)  # a closed pipe ends quietly
            if turn_id:
                await asyncio.shield(self._stopped(thread_id, turn_id, "" if quietly else "stopped"))
            raise
        finally:
            animation.cancel()
            await asyncio.gather(animation, return_exceptions=True)
            self._terminal.clear_status()
            await watch.aclose()
        return await self._finish(thread_id, turn)

    async def _stopped(self, thread_id: str, turn_id: str, how: str) -> None:
        """Stop the turn, which can be resumed."""
        if turn_id:
            await self._client.leave(thread_id, turn_id)
        if how:
            self._terminal.warn(f"{how}; continue with: bowerbird resume {thread_id}", "yellow")

    def _show(self) -> Callable[[News], None]:
        terminal = self._terminal
        drawn = terminal.out.is_terminal and self._options.form == "text"
        theme = self._client.preferences.theme
        markdown = MarkdownPainter(colour=terminal.out.colour, theme=theme) if drawn else None
        painter = TurnPainter(self._sink, self._story, markdown, quiet=self._options.quiet, has_show=False)

        def show(news: News) -> None:
            self._usage = news.usage or self._usage
            if self._options.form == "stream-json":
                for line in news.lines:
                    terminal.write(harmless_json(line) + "\n")
                if news.published is not None:
                    self._story.add(news.published)
                return
            painter.news(news.published, news.todos)

        return show

    # ------------------------------------------------------------ the end

    async def _finish(self, thread_id: str, turn: Row) -> int:
        after = await self._client.show(thread_id, messages=False)
        changed = await self._changed(thread_id)
        answers = turn["state"] == "done" or turn["stop_reason"] == "plan"
        text = str(turn["text"]) if answers else ""
        form = self._options.form
        if form == "json":
            result = await self._result(thread_id, turn, text, changed, after)
            self._terminal.json(result, indent=None)
        elif form == "text" and not self._terminal.out.is_terminal and text:
            self._terminal.write(text if text.endswith("\n") else text + "\n")
        self._sum_up(thread_id, turn, int(after["changed_files"]), int(after["context_window"]))
        denied = bool(self._story.denied or self._denied) and not self._is_attended
        return code_of_turn(turn["state"], turn["stop_reason"], denied_last=denied)

    async def _changed(self, thread_id: str) -> list[dict[str, str]]:
        changes = await self._client.diff(thread_id)
        rows = [{"path": row["path"], "status": _status(row)} for row in changes["written"]]
        rows += [{"path": path, "status": "deleted"} for path in changes["deleted"]]
        return sorted(rows, key=lambda row: row["path"])

    async def _result(
        self, thread_id: str, turn: Row, text: str, changed: list[dict[str, str]], after: Row
    ) -> dict[str, Any]:
        import msgspec

        from bowerbird.core.wire import TurnUsage

        usage = self._usage
        if usage is None:
            counted = TurnUsage.of(self._story.usage, self._story.context_tokens, plan_mode=False)
            usage = msgspec.to_builtins(counted)
        return {
            "conversation_id": thread_id,
            "turn_id": turn["turn_id"],
            "state": turn["state"],
            "stop_reason": turn["stop_reason"],
            "answer": text,
            "changed": changed,
            "landing_id": await self._landing_id(turn, after),
            "usage": usage,
            "error": turn["error"],
        }

    async def _landing_id(self, turn: Row, after: Row) -> str | None:
        """Return the landing that the branch's policy made in this turn."""
        if after["branch"] is None or after["workspace"] is None:
            return None
        for row in await self._client.landings():
            if row["branch"] == after["branch"]["id"]:
                return str(row["id"]) if row["at"] >= (turn["started_at"] or "") else None
        return None

    def _sum_up(self, thread_id: str, turn: Row, changed: int, window: int) -> None:
        terminal = self._terminal
        if turn["error"]:
            terminal.warn(f"{how_it_ended(turn['stop_reason'])}: {turn['error'].get('message')}", "red")
        elif turn["state"] == "done" and (why := why_it_ended(turn["stop_reason"])):
            terminal.warn(f"stopped: {why}", "yellow")
            terminal.warn(f'continue with: bowerbird run --resume={thread_id} "go on"')
        denied = [*self._story.denied, *self._denied]
        if denied and not self._is_attended:
            names = ", ".join(sorted(set(denied)))
            terminal.warn(
                f"denied, because nobody could be asked: {names}. Run it at a terminal, or with --yes.",
                "yellow",
            )
        if turn["state"] in ("failed", "waiting"):
            terminal.warn(f"continue with: bowerbird resume {thread_id}")
        context = self._story.context_tokens or int((self._usage or {}).get("last_input_tokens") or 0)
        terminal.note(cost_line(self._story.usage, context=context, window=window, changed=changed), "dim")
        if changed:
            terminal.note(
                f"{plural(changed, 'file')} changed on the branch: bowerbird diff {thread_id} · "
                f"bowerbird land {thread_id} · bowerbird discard {thread_id}"
            )


def _status(row: Row) -> str:
    if row.get("renamed_from"):
        return "renamed"
    return "created" if row["kind"] == "create" else "modified"
