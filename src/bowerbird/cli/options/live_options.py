"""The options of `tail`, `send`, `cancel`, `approve`, `deny` (UI-46).

Here: names, types and help. Not here: what the commands do (`run/live.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

_Id = Annotated[
    str | None, Argument(metavar="ID", help="Session, or 4 characters of it; default: newest here.")
]
_NeededId = Annotated[str, Argument(metavar="ID", help="Session, or at least 4 characters of its id.")]
_Request = Annotated[
    str, Argument(metavar="REQUEST", help="Request, or the session that has one pending request.")
]
_Json = Annotated[bool, Option("--json", help="Write JSON.")]


def add_live_commands(application: typer.Typer, call: Callable[..., int]) -> None:
    """Register the commands; `call(module, function, **options)` runs one."""

    @application.command("tail")
    def tail(  # pyright: ignore[reportUnusedFunction] - registered
        session: _Id = None,
        after: Annotated[
            int | None, Option("--after", metavar="N", help="Begin after record N of the journal.")
        ] = None,
        json: Annotated[bool, Option("--json", help="One event per line.")] = False,
        workspace: Annotated[
            str | None, Option("-w", "--workspace", help="Directory; default: the current one.")
        ] = None,
    ) -> int:
        """Follow a session live, whoever drives it."""
        return call("run.live", "tail", session=session, after=after, json=json, workspace=workspace)

    @application.command("send")
    def send(session: _NeededId, text: Annotated[str, Argument(metavar="TEXT")], json: _Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Queue a message for a session that a server drives."""
        return call("run.live", "send", session=session, text=text, json=json)

    @application.command("cancel")
    def cancel(session: _NeededId, json: _Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Stop the turn of a session, whichever process drives it."""
        return call("run.live", "cancel", session=session, json=json)

    @application.command("approve")
    def approve(  # pyright: ignore[reportUnusedFunction] - registered
        request: _Request,
        feedback: Annotated[str | None, Option("--feedback", metavar="TEXT", help="A comment.")] = None,
        json: _Json = False,
    ) -> int:
        """Approve what a turn asks for."""
        return call("run.live", "answer", request=request, decision="approve", feedback=feedback, json=json)

    @application.command("deny")
    def deny(  # pyright: ignore[reportUnusedFunction] - registered
        request: _Request,
        feedback: Annotated[str | None, Option("--feedback", metavar="TEXT", help="Why.")] = None,
        json: _Json = False,
    ) -> int:
        """Deny what a turn asks for; the model is told."""
        return call("run.live", "answer", request=request, decision="deny", feedback=feedback, json=json)
