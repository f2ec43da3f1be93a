"""`bowerbird "PROMPT"`, `run`, `resume`, `comment` and `tail` over a server (UI-41, UI-46, UI-58 … UI-60).

Here: one turn that a server runs, watched and answered from this terminal; following. Not here: requests
(`remote.py`), frames (`remote_events.py`).
"""

import asyncio
import json as json_text
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from bowerbird.cli.asking import pending_lines
from bowerbird.cli.comment_command import read_place
from bowerbird.cli.drawing import MarkdownPainter
from bowerbird.cli.exits import DONE, INTERRUPTED, TIMEOUT, USAGE, CliExit, code_of_turn
from bowerbird.cli.oneshot import OneShotSink, who_answers
from bowerbird.cli.painter import TurnPainter
from bowerbird.cli.remote import Server, no_workspace
from bowerbird.cli.remote_events import Frames, Late, follow
from bowerbird.cli.run_command import message_of, with_input
from bowerbird.cli.run_options import RunOptions
from bowerbird.cli.shell import Shell
from bowerbird.cli.story import Story
from bowerbird.cli.text import count, money, plural
from bowerbird.core import wire
from bowerbird.core.events import ApprovalRequest
from bowerbird.sessions.live.hub import Published, SessionEvent, TurnMark

LONGEST_RUN_S = 1800.0
_UNKNOWN_THERE = ("no_memory", "max_turns", "land", "max_cost")
_NOBODY = "nobody can answer here"


def tail(shell: Shell, *, session: str | None, after: int | None, json: bool, workspace: str | None) -> int:
    """Follow a session of the server live until Ctrl+C; a restart of the server is waited for."""
    no_workspace(workspace)
    server = Server.of(shell)
    thread_id = server.session(session)
    cursor = int(server.get(server.place(thread_id))["cursor"])
    if after is not None and not 0 <= after <= cursor:
        raise CliExit(USAGE, f"--after {after}: session {thread_id} has {cursor} records")
    first = f"following {thread_id} on {server.url}; Ctrl+C ends that, and stops no turn"
    shown = _Shown(shell, thread_id, draws=not json)
    start = cursor if after is None else after
    for received in follow(server, thread_id, start, shell.terminal.note, first=first):
        if json:
            shell.terminal.write(received.text + "\n")
            continue
        event = shown.show(received.frame)
        if isinstance(event, ApprovalRequest):
            for line in pending_lines(event):
                shell.terminal.warn(line, "yellow")
    return DONE


def run(shell: Shell, **values: Any) -> int:
    """Run one turn on the server: `bowerbird --server URL "PROMPT"`."""
    options = with_input(shell, RunOptions(**values))
    if options.prompt is None and options.attachment is None:
        raise CliExit(
            USAGE,
            "over a server one prompt is one command: give it, or talk in the browser",
        )
    for name in _UNKNOWN_THERE:
        if getattr(options, name):
            raise CliExit(USAGE, f"--{name.replace('_', '-')} is the server's own setting; leave it out")
    server = Server.of(shell)
    thread_id = _session(server, options)
    return _watched(shell, server, options, thread_id, "/messages", {"content": message_of(options)})


def resume(
    shell: Shell,
    *,
    session: str | None,
    output: str,
    quiet: bool,
    timeout: float | None,
    yes: bool,
    workspace: str | None,
) -> int:
    """Go on with a failed turn on the server."""
    no_workspace(workspace)
    options = RunOptions(output=output, quiet=quiet, timeout=timeout, yes=yes)
    server = Server.of(shell)
    return _watched(shell, server, options, server.session(session), "/resume", None)


def comment(
    shell: Shell,
    *,
    place: str,
    text: str,
    session: str | None,
    old: bool,
    output: str,
    quiet: bool,
    timeout: float | None,
    yes: bool,
    workspace: str | None,
) -> int:
    """Comment on lines of a session's changes on the server; the turn that answers is watched."""
    no_workspace(workspace)
    at = read_place(place)
    if not text.strip():
        raise CliExit(USAGE, "the comment is empty")
    options = RunOptions(output=output, quiet=quiet, timeout=timeout, yes=yes)
    server = Server.of(shell)
    remark = {
        "path": "/" + at.path.removeprefix("./").lstrip("/"),
        "side": "old" if old else "new",
        "line": at.first,
        "end_line": None if at.last == at.first else at.last,
        "text": text,
    }
    return _watched(shell, server, options, server.session(session), "/comments", {"comments": [remark]})


def _watched(shell: Shell, server: Server, options: RunOptions, thread_id: str, path: str, body: Any) -> int:
    """Send what begins a turn and watch it to its end; returns the exit code."""
    shell.terminal.quiet = options.quiet
    start = int(server.get(server.place(thread_id))["cursor"])
    turn = _Turn(shell, server, options, thread_id)
    with _ended_by_signal():
        return turn.run(path, body, start)


def _session(server: Server, options: RunOptions) -> str:
    """Return the conversation to talk in: a named one, else one made now."""
    if options.resume is not None:
        return server.session(options.resume)
    asked = {
        "preset": options.preset, "model": options.model, "workspace": options.workspace,
        "enable_approval": options.approval, "enable_thinking": options.thinking,
        "thinking_effort": options.thinking_effort, "enable_plan_mode": options.plan or None,
        "enable_teams": options.teams or None,
    }  # fmt: skip
    body = {name: value for name, value in asked.items() if value is not None}
    return str(server.ask("POST", "/api/chat", body)["conversation_id"])


@contextmanager
def _ended_by_signal() -> Generator[None]:
    """Have SIGTERM and SIGHUP end the command as they do a local one: the turn is stopped first."""

    def stop(number: int, _: object) -> None:
        raise CliExit(128 + number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Shown:
    """Draws a server's frames as a local turn is drawn."""

    def __init__(self, shell: Shell, thread_id: str, *, draws: bool, answers: bool = True) -> None:
        terminal = shell.terminal
        self.frames, self.story = Frames(), Story()
        self._thread_id = thread_id
        markdown = MarkdownPainter(colour=terminal.out.colour) if answers else None
        sink = OneShotSink(terminal)
        self._painter = TurnPainter(sink, self.story, markdown, quiet=terminal.quiet) if draws else None

    def show(self, frame: wire.ServerFrame) -> SessionEvent | None:
        """Draw one frame; return its event."""
        if isinstance(frame, wire.TodoUpdate) and self._painter is not None:
            self._painter.todos(frame.todos)
        event = self.frames.event(frame)
        if event is None:
            return None
        published = Published(self._thread_id, frame.turn_id, None, event)
        if self._painter is not None:
            self._painter.show(published)
        else:
            self.story.add(published)
        return event


@dataclass(slots=True)
class _Turn:
    """One turn on the server, from its message to its end."""

    shell: Shell
    server: Server
    options: RunOptions
    thread_id: str
    denied: list[str] = field(default_factory=list[str])

    def run(self, path: str, body: Any, start: int) -> int:
        """Send what begins the turn, watch it, print the result; returns the exit code."""
        receipt = self.server.ask("POST", self.server.place(self.thread_id, path), body)
        turn_id = str(receipt["turn_id"])
        form, terminal = self.options.form, self.shell.terminal
        draws, limit = form == "text", self.options.timeout or LONGEST_RUN_S
        shown = _Shown(self.shell, self.thread_id, draws=draws, answers=draws and terminal.out.is_terminal)
        ends_at = time.monotonic() + limit
        end: TurnMark | None = None
        error: wire.Error | None = None
        try:
            for text, frame in follow(self.server, self.thread_id, start, terminal.note, ends_at=ends_at):
                if form == "stream-json":
                    terminal.write(text + "\n")
                event = shown.show(frame)
                if isinstance(event, ApprovalRequest):
                    self._answer(event)
                if frame.turn_id != turn_id:
                    continue
                error = frame if isinstance(frame, wire.Error) else error
                if isinstance(event, TurnMark) and event.stop_reason is not None:
                    end = event
                    break
        except Late:
            return self._stopped(f"stopped after {limit:g} s (--timeout)", TIMEOUT)
        except KeyboardInterrupt:
            return self._stopped("stopped", INTERRUPTED)
        except (CliExit, BrokenPipeError):
            self._cancel()
            raise
        assert end is not None, "following ends only by a turn's end or an error"
        return self._finish(turn_id, end, shown, error)

    def _stopped(self, how: str, code: int) -> int:
        self._cancel()
        self.shell.terminal.warn(f"{how}; the session is {self.thread_id}", "yellow")
        return code

    def _cancel(self) -> None:
        with suppress(CliExit):  # the server is gone, or the turn has ended
            self.server.ask("POST", self.server.place(self.thread_id, "/cancel"))

    def _answer(self, request: ApprovalRequest) -> None:
        ask = who_answers(self.options)
        if ask is None:
            self.denied += [str(tool.get("name")) for tool in request.tools] or [request.kind]
            said = {"plan": "reject", "budget": "stop"}.get(request.kind, "deny")
            answer: tuple[str, str | None] | None = (said, _NOBODY)
        else:
            answer = asyncio.run(_asked(ask, request))
        if answer is not None:
            body = {"decision": answer[0], "feedback": answer[1]}
            self.server.ask("POST", f"/api/approvals/{request.id}", body)

    def _finish(self, turn_id: str, end: TurnMark, shown: _Shown, error: wire.Error | None) -> int:
        terminal, usage = self.shell.terminal, shown.frames.usage
        changed = self._changed()
        state, text = "failed" if error else end.state, self._answer_text(turn_id)
        if self.options.form == "json":
            result = {
                "conversation_id": self.thread_id,
                "turn_id": turn_id,
                "state": state,
                "stop_reason": end.stop_reason,
                "answer": text,
                "changed": changed,
                "landing_id": None,
                "usage": usage,
                "error": error and {"type": error.code, "message": error.message},
            }
            terminal.write(json_text.dumps(result, ensure_ascii=False) + "\n")
        elif self.options.form == "text" and not terminal.out.is_terminal and text:
            terminal.write(text if text.endswith("\n") else text + "\n")
        if error:
            terminal.warn(f"the turn failed: {error.message}", "red")
        if self.denied:
            names = ", ".join(sorted(set(self.denied)))
            terminal.warn(f"denied, because nobody could be asked: {names}", "yellow")
        read, written = (count(int(usage.get(name) or 0)) for name in ("input_tokens", "output_tokens"))
        terminal.note(
            f"{read} in · {written} out · {money(usage.get('cost'))} · {plural(len(changed), 'file')} changed"
            f" · session {self.thread_id}",
            "dim",
        )
        return code_of_turn(state, end.stop_reason, denied_last=bool(self.denied))

    def _changed(self) -> list[dict[str, str]]:
        changes = self.server.get(self.server.place(self.thread_id, "/diff"))
        rows = [
            {"path": row["path"], "status": "created" if row["kind"] == "create" else "modified"}
            for row in changes["written"]
        ]
        rows += [{"path": path, "status": "deleted"} for path in changes["deleted"]]
        return sorted(rows, key=lambda row: row["path"])

    def _answer_text(self, turn_id: str) -> str:
        messages = self.server.get(self.server.place(self.thread_id))["messages"]
        said = [m["content"] for m in messages if m["turn_id"] == turn_id and m["role"] == "assistant"]
        return said[-1] if said else ""


async def _asked(ask: Callable[[ApprovalRequest], Any], request: ApprovalRequest) -> Any:
    return await ask(request)
