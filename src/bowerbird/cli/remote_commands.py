"""`sessions`, `show`, `rename`, `delete`, `fork`, `send`, `cancel`, `approve`, `deny` over a server (UI-41).

Here: the same commands as in `session_commands.py` and `live_commands.py`, asked of a running server.
"""

import json as json_text
from datetime import UTC, datetime
from typing import Any

from bowerbird.cli.exits import DONE, USAGE, CliExit
from bowerbird.cli.remote import Server, no_workspace
from bowerbird.cli.review_commands import ask_sure
from bowerbird.cli.shell import Shell
from bowerbird.cli.text import age, harmless, money, one_line, plural, table
from bowerbird.core.timestamps import from_iso


def _write(shell: Shell, data: Any) -> int:
    shell.terminal.write(json_text.dumps(data, ensure_ascii=False, indent=2) + "\n")
    return DONE


def sessions(shell: Shell, *, every: bool, json: bool, workspace: str | None) -> int:
    """List the server's sessions; `--all` is what a server always lists."""
    no_workspace(workspace)
    found = Server.of(shell).sessions()
    if json:
        return _write(shell, found)
    now = datetime.now(UTC)
    rows = [
        [
            str(row["id"]),
            "asking" if row["pending_approval"] else str(row["status"]),
            age((now - from_iso(row["updated_at"])).total_seconds()),
            money(row["cost"]),
            plural(row["changed_files"], "file"),
            one_line(row["title"] or "untitled"),
        ]
        for row in found
    ]
    for line in table(rows, width=shell.terminal.width):
        shell.terminal.line(line)
    if not rows:
        shell.terminal.note("no sessions yet")
    return DONE


def show(shell: Shell, *, session: str | None, json: bool, workspace: str | None) -> int:
    """Show one session of the server."""
    no_workspace(workspace)
    server = Server.of(shell)
    found = server.get(server.place(server.session(session)))
    if json:
        return _write(shell, found)
    terminal = shell.terminal
    terminal.line(f"{found['id']}  {one_line(found['title'] or 'untitled')}", "bold")
    branch: dict[str, Any] = found["branch"] or {}
    terminal.line(
        f"{found['model']} · {money(found['cost'])} · {plural(int(branch.get('changed', 0)), 'file')} changed"
    )
    for message in found["messages"]:
        mark = "> " if message["role"] == "user" else "  "
        terminal.line()
        for line in harmless(message["content"]).splitlines():
            terminal.line(mark + line)
    return DONE


def rename(shell: Shell, *, session: str, title: str) -> int:
    """Give a session another title."""
    server = Server.of(shell)
    server.ask("PATCH", server.place(server.session(session)), {"title": title})
    return DONE


def delete(shell: Shell, *, session: str, yes: bool) -> int:
    """Delete a session and its branch; the server keeps both for 7 days."""
    server = Server.of(shell)
    found = server.session(session)
    if not yes and not ask_sure(f"Delete session {found} on {server.url}?"):
        raise CliExit(USAGE, "nothing was deleted; --yes deletes without asking")
    server.ask("DELETE", server.place(found))
    shell.terminal.line(f"deleted session {found}")
    return DONE


def fork(shell: Shell, *, session: str | None, turn: int | None, json: bool, workspace: str | None) -> int:
    """Copy a session with its files as they are at its last turn's end."""
    no_workspace(workspace)
    if turn is not None:
        raise CliExit(USAGE, "--turn counts turns of this machine's records; leave it out with --server")
    server = Server.of(shell)
    made = server.ask("POST", server.place(server.session(session), "/fork"), {})
    if json:
        return _write(shell, made)
    shell.terminal.line(made["conversation_id"])
    return DONE


def send(shell: Shell, *, session: str, text: str, json: bool) -> int:
    """Send a message; the server begins its turn, or queues it behind the one that runs."""
    server = Server.of(shell)
    found = server.session(session)
    receipt = server.ask("POST", server.place(found, "/messages"), {"content": text})
    if json:
        shown = {name: receipt[name] for name in ("inbox_id", "turn_id", "position")}
        shell.terminal.write(json_text.dumps(shown) + "\n")
        return DONE
    shell.terminal.line(f"queued as {receipt['turn_id']}")
    shell.terminal.note(f"watch it: bowerbird tail {found}")
    return DONE


def cancel(shell: Shell, *, session: str, json: bool = False) -> int:
    """Stop the turn of a session."""
    server = Server.of(shell)
    told = server.ask("POST", server.place(server.session(session), "/cancel"))
    if json:
        shell.terminal.write(json_text.dumps({"turn_id": told["turn_id"]}) + "\n")
    else:
        shell.terminal.line(f"told {told['turn_id']} to stop; what it finished stays")
    return DONE


def answer(shell: Shell, *, request: str, decision: str, feedback: str | None, json: bool = False) -> int:
    """Answer a pending request; `request` may be a session with one pending."""
    server = Server.of(shell)
    waiting = server.get("/api/approvals")
    if not request.startswith("r_"):
        found = server.session(request)
        waiting = [row for row in waiting if row["conversation_id"] == found]
    else:
        waiting = [row for row in waiting if row["request_id"] == request]
    if not waiting:
        raise CliExit(USAGE, f"there is no pending request {harmless(request)}; nothing was changed")
    if len(waiting) > 1:
        ids = ", ".join(row["request_id"] for row in waiting)
        raise CliExit(USAGE, f"session {harmless(request)} has several pending requests; name one: {ids}")
    row = waiting[0]
    said = "reject" if row["kind"] == "plan" and decision == "deny" else decision
    server.ask("POST", f"/api/approvals/{row['request_id']}", {"decision": said, "feedback": feedback})
    if json:
        shell.terminal.write(json_text.dumps({"request_id": row["request_id"], "decision": said}) + "\n")
    else:
        shell.terminal.line("approved" if decision == "approve" else "denied")
    return DONE
