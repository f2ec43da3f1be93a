"""One turn without a prompt line: watch it, answer what it asks, print the result (UI-56 … UI-60).

Here: the run of one turn and its three output forms. Not here: input, sessions, drawing.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bowerbird.cli.asking import approve_within_policy, ask_person
from bowerbird.cli.drawing import MarkdownPainter
from bowerbird.cli.exits import TIMEOUT, code_of_turn
from bowerbird.cli.painter import TurnPainter
from bowerbird.cli.run_options import RunOptions
from bowerbird.cli.shell import Shell
from bowerbird.cli.story import Story
from bowerbird.cli.terminal import Spinner, Terminal
from bowerbird.cli.text import cost_line, cut, plural
from bowerbird.cli.watching import Ask, Watch
from bowerbird.core.errors import TurnRunning
from bowerbird.core.events import ApprovalRequest
from bowerbird.core.threads import to_thread
from bowerbird.sessions.live.hub import Published, TurnMark

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.cli.wire_events import WireEvents
    from bowerbird.sessions.values import SessionInfo, TurnInfo
    from bowerbird.workspace import FileDiff

_FRAME_S = 0.1


def who_answers(options: RunOptions) -> Ask | None:
    """Return who answers questions of a one-shot run: the person at the terminal, `--yes`, or nobody."""
    if options.yes:
        return approve_within_policy
    if sys.stdin.isatty() and sys.stderr.isatty() and options.form == "text":
        return _ask_at_terminal
    return None


async def _ask_at_terminal(request: ApprovalRequest) -> tuple[str, str | None] | None:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output.defaults import create_output

    prompt: PromptSession[str] = PromptSession(output=create_output(stdout=sys.stderr))

    def say(text: str) -> None:
        sys.stderr.write(text + "\n")

    return await ask_person(request, say, prompt.prompt_async)


class OneShotSink:
    """Draws on the two streams; a status line while something runs."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._spinner: Spinner | None = None

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

    def doing(self, action: str) -> None:
        """Set the status."""
        if not action:
            self._spinner = None
            self._terminal.clear_status()
        elif self._spinner is None or self._spinner.action != action:
            self._spinner = Spinner.of(action)

    def pending(self, text: str) -> None:
        """An unfinished block is shown when it is finished."""

    def worker(self, handle: str, doing: str) -> None:
        """Say that a subagent begins; its end is a line of its own."""
        if doing:
            self._terminal.note(
                cut(f"    ▸ {doing}", self.width) if self._terminal.err.cursor else f"    {doing}", "dim"
            )

    async def animate(self) -> None:
        """Move the spinner until cancelled."""
        while True:
            if self._spinner is not None:
                self._terminal.status(self._spinner.frame())
            await asyncio.sleep(_FRAME_S)


class OneShot:
    """Runs one turn of a session for the command line.

    Args:
        shell: streams. application: open. options: of the command.
        ask: answers questions; None = nobody, so that what would ask is denied.
    """

    def __init__(
        self, shell: Shell, application: "Application", options: RunOptions, ask: Ask | None
    ) -> None:
        self._terminal = shell.terminal
        self._application = application
        self._options = options
        self._ask = None if ask is None else self._without_status(ask)
        self._sink = OneShotSink(shell.terminal)
        self._story = Story()
        self._wire: WireEvents | None = None
        self._timeout = options.timeout or application.loaded.settings.cli.timeout

    def _without_status(self, ask: Ask) -> Ask:
        """Have nothing move on the screen while a person is asked."""

        async def asked(request: ApprovalRequest) -> tuple[str, str | None] | None:
            self._sink.doing("")
            answer = await ask(request)
            self._sink.doing("thinking")
            return answer

        return asked

    async def run(self, session: "SessionInfo", text: str) -> int:
        """Send `text` and watch its turn; returns the exit code."""

        async def begin() -> str:
            await self._application.drive(session.thread_id)
            receipt = await self._application.sessions.submit(session.thread_id, text, door="cli")
            return receipt.turn_id

        return await self._watched(session, begin)

    async def go_on(self, session: "SessionInfo", turn: "TurnInfo") -> int:
        """Resume `turn` and watch it; returns the exit code."""

        async def begin() -> str:
            if turn.state in ("failed", "running"):
                # Said before it is driven: a person's resume is no further death of the turn (SE-23).
                with contextlib.suppress(TurnRunning):  # another process drives it: watch it there
                    await self._application.sessions.resume(turn.turn_id)
            await self._application.drive(session.thread_id)
            if turn.state == "waiting" and self._ask is not None:
                await self._answer_pending(session, self._ask)
            return turn.turn_id

        return await self._watched(session, begin)

    async def _answer_pending(self, session: "SessionInfo", ask: Ask) -> None:
        from bowerbird.sessions.journal.events_as_records import events_of

        records = await self._application.sessions.history(session.thread_id)
        requests = [event for _, event in events_of(records) if isinstance(event, ApprovalRequest)]
        answer = await ask(requests[-1]) if requests else None
        if answer is not None:
            decision, feedback = answer
            await self._application.sessions.answer(requests[-1].id, decision, feedback=feedback, by="cli")

    async def _watched(self, session: "SessionInfo", begin: Callable[[], Any]) -> int:
        sessions = self._application.sessions
        watch = Watch(sessions, session.thread_id, session.last_seq)
        animation = asyncio.create_task(self._sink.animate())
        self._sink.doing("starting")
        turn_id = ""
        try:
            await watch.begin()
            async with asyncio.timeout(self._timeout):
                turn_id = await begin()
                show = self._show(session)
                turn = await watch.turn(turn_id, show, self._ask)
                while self._ask is not None and (following := await watch.following(turn)) is not None:
                    turn = await watch.turn(following, show, self._ask)
        except TimeoutError:
            self._sink.doing("")
            await self._say_stopped(session, f"stopped after {self._timeout:g} s (--timeout)")
            return TIMEOUT
        except BaseException as error:
            self._sink.doing("")
            if turn_id and not isinstance(error, BrokenPipeError):  # a closed pipe ends quietly
                await asyncio.shield(self._say_stopped(session, "stopped"))
            raise
        finally:
            animation.cancel()
            await asyncio.gather(animation, return_exceptions=True)
            self._terminal.clear_status()
            await watch.aclose()
        return await self._finish(session, turn)

    async def _say_stopped(self, session: "SessionInfo", how: str) -> None:
        self._terminal.warn(f"{how}; go on with: bowerbird resume {session.thread_id}", "yellow")

    def _show(self, session: "SessionInfo") -> Callable[[Published], None]:
        if self._options.form == "stream-json":
            from bowerbird.cli.wire_events import WireEvents

            self._wire = WireEvents(session.thread_id, session.last_seq)
            return self._show_json
        terminal = self._terminal
        drawn = terminal.out.is_terminal and self._options.form == "text"
        theme = self._application.loaded.settings.cli.theme
        markdown = MarkdownPainter(colour=terminal.out.colour, theme=theme) if drawn else None
        return TurnPainter(self._sink, self._story, markdown, quiet=self._options.quiet).show

    def _show_json(self, published: Published) -> None:
        self._story.add(published)
        if isinstance(published.event, TurnMark) and published.event.has_stopped:
            return  # with the branch's files, at the very end
        self._write_lines(published)

    def _write_lines(self, published: Published, **end: Any) -> None:
        assert self._wire is not None, "lines are written while a turn is shown as JSON"
        for line in self._wire.lines(published, **end):
            self._terminal.write(line + "\n")

    # ------------------------------------------------------------ the end

    async def _finish(self, session: "SessionInfo", turn: "TurnInfo") -> int:
        changed = await self._changed(session)
        text = await self._answer_text(session, turn)
        form = self._options.form
        if form == "json":
            result = await self._result(session, turn, text, changed)
            self._terminal.write(json.dumps(result, ensure_ascii=False) + "\n")
        elif form == "stream-json":
            self._end_of_stream(session, turn, changed)
        elif not self._terminal.out.is_terminal and text:
            self._terminal.write(text if text.endswith("\n") else text + "\n")
        self._sum_up(session, turn, changed)
        denied = bool(self._story.denied) and self._ask is None
        return code_of_turn(turn.state, turn.stop_reason, denied_last=denied)

    async def _changed(self, session: "SessionInfo") -> list[dict[str, str]]:
        branch = await self._application.sessions.branch(session.thread_id)
        changes = await to_thread(branch.diff)
        rows = [{"path": row.path, "status": _status(row)} for row in changes.written]
        rows += [{"path": path, "status": "deleted"} for path in changes.deleted]
        return sorted(rows, key=lambda row: row["path"])

    async def _answer_text(self, session: "SessionInfo", turn: "TurnInfo") -> str:
        end = self._story.end
        if end is not None and end.text:
            return end.text
        if turn.stop_reason == "plan":
            return self._story.plan
        from bowerbird.core.events import AssistantStep
        from bowerbird.sessions.journal.events_as_records import events_of

        records = await self._application.sessions.history(session.thread_id)
        steps = [e for r, e in events_of(records) if r.turn == turn.turn_id and isinstance(e, AssistantStep)]
        return steps[-1].message.text if steps and turn.state == "done" else ""

    async def _result(
        self, session: "SessionInfo", turn: "TurnInfo", text: str, changed: list[dict[str, str]]
    ) -> dict[str, Any]:
        import msgspec

        from bowerbird.core.wire import TurnUsage

        usage = TurnUsage.of(self._story.usage, self._story.context_tokens, plan_mode=False)
        return {
            "conversation_id": session.thread_id,
            "turn_id": turn.turn_id,
            "state": turn.state,
            "stop_reason": turn.stop_reason,
            "answer": text,
            "changed": changed,
            "landing_id": await self._landing_id(session, turn),
            "usage": msgspec.to_builtins(usage),
            "error": turn.error,
        }

    async def _landing_id(self, session: "SessionInfo", turn: "TurnInfo") -> str | None:
        """Return the landing that the branch's policy made in this turn."""
        if session.workspace is None:
            return None
        every = await self._application.sessions.review.landings(session.workspace)
        made = [landing for landing in every if landing.branch == session.branch_id]
        newest = made[-1] if made else None
        is_new = newest is not None and newest.at >= (turn.started_at or "")
        return newest.id if newest is not None and is_new else None

    def _end_of_stream(self, session: "SessionInfo", turn: "TurnInfo", changed: list[dict[str, str]]) -> None:
        mark = self._story.end or TurnMark(
            turn.state, stop_reason=turn.stop_reason, snapshot=turn.snapshot_id
        )
        files = [{"name": row["path"].rsplit("/", 1)[-1], "path": row["path"]} for row in changed]
        published = Published(session.thread_id, turn.turn_id, None, mark)
        self._write_lines(published, files=files, changed=len(changed))

    def _sum_up(self, session: "SessionInfo", turn: "TurnInfo", changed: list[dict[str, str]]) -> None:
        terminal = self._terminal
        if turn.error:
            terminal.warn(f"the turn failed: {turn.error.get('message')}", "red")
        if self._story.denied and self._ask is None:
            names = ", ".join(sorted(set(self._story.denied)))
            terminal.warn(
                f"denied, because nobody could be asked: {names}. Run it at a terminal, or with --yes.",
                "yellow",
            )
        if turn.state in ("failed", "waiting"):
            terminal.warn(f"go on with: bowerbird resume {session.thread_id}")
        window = self._application.maker.window_of(self._story.model)
        usage = self._story.usage
        terminal.note(
            cost_line(usage, context=self._story.context_tokens, window=window, changed=len(changed)), "dim"
        )
        if changed:
            short = session.thread_id
            terminal.note(
                f"{plural(len(changed), 'file')} changed on the branch: "
                f"bowerbird diff {short} · bowerbird land {short} · bowerbird discard {short}"
            )


def _status(row: "FileDiff") -> str:
    if row.renamed_from:
        return "renamed"
    return "created" if row.kind == "create" else "modified"
