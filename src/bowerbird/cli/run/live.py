"""`tail`, `send`, `cancel`, `approve`, `deny`: a session that another process or a server drives (UI-46).

Here: the commands. Not here: turns that are watched to their end (`run.py`).
"""

from bowerbird.cli.client.opening import with_client
from bowerbird.cli.client.protocol import Client, News, Row
from bowerbird.cli.terminal.exits import DONE, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import harmless_json
from bowerbird.cli.turn.answer import Answer
from bowerbird.cli.turn.asking import pending_lines, question_first
from bowerbird.core.errors import AlreadyAnswered, NoPendingRequest, SessionError
from bowerbird.core.events import ApprovalRequest
from bowerbird.sessions.live.hub import TurnMark


def tail(shell: Shell, *, session: str | None, after: int | None, json: bool, workspace: str | None) -> int:
    """Follow a session live until Ctrl+C, whoever drives it; a server that restarts is waited for.

    Args:
        after: first show what is on record after this place of the journal; None = only what comes.
    """

    async def work(client: Client) -> int:
        from bowerbird.cli.run.oneshot import OneShotSink
        from bowerbird.cli.terminal.drawing import MarkdownPainter
        from bowerbird.cli.turn.painter import TurnPainter
        from bowerbird.cli.turn.story import Story

        terminal = shell.terminal
        thread_id = await client.find(session)
        cursor = int((await client.show(thread_id, messages=False))["cursor"])
        if after is not None and not 0 <= after <= cursor:
            raise CliExit(USAGE, f"--after {after}: session {thread_id} has {cursor} records")
        markdown = MarkdownPainter(colour=terminal.out.colour, theme=client.preferences.theme)
        painter = TurnPainter(OneShotSink(terminal), Story(), markdown, has_show=False)
        there = f" on {client.where}" if client.is_server else ""
        first = f"following {thread_id}{there}; Ctrl+C ends that, and stops no turn"
        if not client.is_server:
            terminal.note(first)
        start = cursor if after is None else after
        async for news in client.follow(thread_id, start, lines=json, say=terminal.note):
            if client.is_server and first:
                terminal.note(first)  # now it is connected
                first = ""
            for line in news.lines:
                terminal.write(harmless_json(line) + "\n")
            if json:
                continue
            painter.news(news.published, news.todos)
            if (failed := _failure(news)) is not None:
                terminal.warn(f"the turn failed: {failed}", "red")
            if news.published is not None and isinstance(news.published.event, ApprovalRequest):
                for line in pending_lines(news.published.event):
                    terminal.warn(line, "yellow")
        return DONE

    return with_client(shell, workspace, work)


def _failure(news: News) -> str | None:
    event = news.published.event if news.published is not None else None
    return event.error.message if isinstance(event, TurnMark) and event.error is not None else None


def send(shell: Shell, *, session: str, text: str, json: bool) -> int:
    """Queue a message; whoever drives the session takes it, or the next that does."""
    if not text.strip():
        raise CliExit(USAGE, "the message is empty")

    async def work(client: Client) -> int:
        thread_id = await client.find(session)
        receipt = await client.send(thread_id, text)
        if json:
            return shell.json(receipt)
        shell.terminal.line(f"queued as {receipt['turn_id']}")
        if receipt["open_request"]:
            shell.terminal.warn(question_first(receipt["open_request"]), "yellow")
        alone = "" if client.is_server else (
            f"a running server takes it; without one: bowerbird resume {thread_id} · "
        )  # fmt: skip
        shell.terminal.note(f"{alone}watch it: bowerbird tail {thread_id}")
        return DONE

    return with_client(shell, None, work)


def cancel(shell: Shell, *, session: str, json: bool = False) -> int:
    """Stop the turn of a session, whoever drives it."""

    async def work(client: Client) -> int:
        thread_id = await client.find(session)
        try:
            turn_id = await client.cancel(thread_id)
        except SessionError as error:
            raise CliExit(USAGE, str(error)) from None
        if json:
            return shell.json({"turn_id": turn_id})
        shell.terminal.line(f"told {turn_id} to stop; finished work is kept")
        return DONE

    return with_client(shell, None, work)


def answer(shell: Shell, *, request: str, decision: str, feedback: str | None, json: bool = False) -> int:
    """Answer a pending request, `approve` or `deny`; `request` may be a session with one pending.

    A plan is rejected with the same word: `deny` says `reject` for it. A question is answered with words.
    """

    async def work(client: Client) -> int:
        found = await _pending(client, request)
        said = "reject" if found["kind"] == "plan" and decision == "deny" else decision
        answer = (
            _to_question(request, decision, feedback) if found["kind"] == "user" else Answer(said, feedback)
        )
        try:
            await client.answer(found["conversation_id"], found["request_id"], answer)
        except (AlreadyAnswered, NoPendingRequest) as error:
            raise CliExit(USAGE, str(error)) from None
        if json:
            return shell.json({"request_id": found["request_id"], "decision": said})
        shell.terminal.line("approved" if decision == "approve" else "denied")
        return DONE

    return with_client(shell, None, work)


def _to_question(request: str, decision: str, words: str | None) -> Answer:
    """Return the answer to a question of the agent; raises CliExit where it lacks words."""
    if decision == "deny":
        return Answer("deny", words)
    if not (words or "").strip():
        raise CliExit(
            USAGE, f'the agent asks a question: bowerbird approve {request} --feedback "your answer"'
        )
    return Answer(str(words))


async def _pending(client: Client, request: str) -> Row:
    """Return the question called `request`, or the only one of a session; raises CliExit."""
    waiting = await client.pending()
    if request.startswith("r_"):
        fitting = [row for row in waiting if row["request_id"] == request]
    else:
        thread_id = await client.find(request)
        fitting = [row for row in waiting if row["conversation_id"] == thread_id]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise CliExit(USAGE, f"no pending request: {request} waits for no answer")
    ids = ", ".join(str(row["request_id"]) for row in fitting)
    raise CliExit(USAGE, f"{request} has several pending requests; name one: {ids}")
