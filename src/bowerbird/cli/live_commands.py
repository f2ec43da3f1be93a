"""`tail`, `send`, `cancel`, `approve`, `deny`: a session that another process drives (UI-46).

Here: the commands over the shared store. Not here: turns driven by this process (`run_command.py`).
"""

import json as json_text
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.cli.asking import pending_lines
from bowerbird.cli.exits import DONE, USAGE, CliExit
from bowerbird.cli.picking import pick_session
from bowerbird.cli.review_commands import opened
from bowerbird.cli.shell import Shell
from bowerbird.core.errors import NoPendingRequest, SessionError
from bowerbird.core.events import ApprovalRequest

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.sessions.live.hub import Published


def tail(shell: Shell, *, session: str | None, after: int | None, json: bool, workspace: str | None) -> int:
    """Follow a session live until Ctrl+C, whoever drives it.

    Args:
        after: first show what is on record after this place of the journal; None = only what comes.
    """

    async def work(application: "Application", directory: Path) -> int:
        found = await pick_session(application.sessions, session, directory)
        if after is not None and not 0 <= after <= found.last_seq:
            raise CliExit(USAGE, f"--after {after}: session {found.thread_id} has {found.last_seq} records")
        theme = application.loaded.settings.cli.theme
        start = found.last_seq if after is None else after
        show = _json_lines(shell, found.thread_id, start) if json else _painted(shell, theme)
        shell.terminal.note(f"following {found.thread_id}; Ctrl+C ends that, and stops no turn")
        async for published in application.sessions.follow(found.thread_id, start):
            show(published)
        return DONE

    return opened(shell, workspace, work)


def _json_lines(shell: Shell, thread_id: str, after: int) -> "Callable[[Published], None]":
    from bowerbird.cli.wire_events import WireEvents

    wire = WireEvents(thread_id, after)

    def show(published: "Published") -> None:
        for line in wire.lines(published):
            shell.terminal.write(line + "\n")

    return show


def _painted(shell: Shell, theme: str) -> "Callable[[Published], None]":
    from bowerbird.cli.drawing import MarkdownPainter
    from bowerbird.cli.oneshot import OneShotSink
    from bowerbird.cli.painter import TurnPainter
    from bowerbird.cli.story import Story

    markdown = MarkdownPainter(colour=shell.terminal.out.colour, theme=theme)
    painter = TurnPainter(OneShotSink(shell.terminal), Story(), markdown)

    def show(published: "Published") -> None:
        painter.show(published)
        if isinstance(published.event, ApprovalRequest):
            for line in pending_lines(published.event):
                shell.terminal.warn(line, "yellow")

    return show


def send(shell: Shell, *, session: str, text: str, json: bool) -> int:
    """Queue a message; the process that drives the session takes it, or the next that does."""

    async def work(application: "Application", _: Path) -> int:
        found = await application.sessions.get(session)
        receipt = await application.sessions.submit(found.thread_id, text, door="cli")
        if json:
            data = {"inbox_id": receipt.inbox_id, "turn_id": receipt.turn_id, "position": receipt.position}
            shell.terminal.write(json_text.dumps(data) + "\n")
            return DONE
        shell.terminal.line(f"queued as {receipt.turn_id}")
        shell.terminal.note(
            f"a running server takes it; without one: bowerbird resume {found.thread_id} · "
            f"watch it: bowerbird tail {found.thread_id}"
        )
        return DONE

    return opened(shell, None, work)


def cancel(shell: Shell, *, session: str, json: bool = False) -> int:
    """Stop the turn of a session, whichever process drives it."""

    async def work(application: "Application", _: Path) -> int:
        found = await application.sessions.get(session)
        try:
            turn_id = await application.sessions.cancel(found.thread_id)
        except SessionError as error:
            raise CliExit(USAGE, str(error)) from None
        if json:
            shell.terminal.write(json_text.dumps({"turn_id": turn_id}) + "\n")
        else:
            shell.terminal.line(f"told {turn_id} to stop; what it finished stays")
        return DONE

    return opened(shell, None, work)


def answer(shell: Shell, *, request: str, decision: str, feedback: str | None, json: bool = False) -> int:
    """Answer a pending request, `approve` or `deny`; `request` may be a session with one pending.

    A plan is rejected with the same word: `deny` says `reject` for it.
    """

    async def work(application: "Application", _: Path) -> int:
        by_request = request.startswith("r_")
        thread_id = None if by_request else (await application.sessions.get(request)).thread_id
        try:
            request_id, said = await _said(application, request if by_request else None, thread_id, decision)
            await application.sessions.answer(
                request if by_request else None, said, thread_id=thread_id, feedback=feedback, by="cli"
            )
        except NoPendingRequest as error:
            raise CliExit(USAGE, str(error)) from None
        if json:
            shell.terminal.write(json_text.dumps({"request_id": request_id, "decision": said}) + "\n")
        else:
            shell.terminal.line("approved" if decision == "approve" else "denied")
        return DONE

    return opened(shell, None, work)


async def _said(
    application: "Application", request: str | None, thread_id: str | None, decision: str
) -> tuple[str, str]:
    """Return the request's id and the word that answers a question of its kind."""
    from bowerbird.sessions.inbox.answers import find_request

    _, found = await find_request(application.store, request, thread_id)
    return found.id, "reject" if found.kind == "plan" and decision == "deny" else decision
