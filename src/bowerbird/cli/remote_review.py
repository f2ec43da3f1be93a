"""`diff`, `land`, `undo`, `landings`, `discard` over a server (UI-41).

Here: a branch that stands on a server, with the calls that the review commands make of any branch. Not here:
questions and drawing, which are those of `review_commands.py`.
"""

import json as json_text
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bowerbird.cli.exits import DONE, FAILED, PARTLY, USAGE, CliExit
from bowerbird.cli.landing_check import passes_there
from bowerbird.cli.landings_fix import one_of, say_fixed
from bowerbird.cli.remote import Server, no_workspace, there
from bowerbird.cli.review_commands import ask_sure, land_chosen, prepare, say_refused
from bowerbird.cli.review_shown import LandingShown, landing_rows, write_diff
from bowerbird.cli.shell import Shell
from bowerbird.cli.text import harmless, plural, table
from bowerbird.core.errors import LandingRefused


@dataclass(frozen=True, slots=True)
class BranchThere:
    """A conversation's branch on a server."""

    server: Server
    thread_id: str

    def diff(self, paths: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the changes with their hunks."""
        return self.server.get(self.server.place(self.thread_id, "/diff"), path=paths)

    def unified(self, paths: Sequence[str] | None = None) -> str:
        """Return the changes as a patch."""
        return self.server.text(self.server.place(self.thread_id, "/diff"), path=paths, format="unified")

    def plan_landing(self, paths: Sequence[str] | None = None) -> dict[str, Any]:
        """Return what a landing would do."""
        return self.server.get(self.server.place(self.thread_id, "/landing-plan"), path=paths)

    def changes(self) -> dict[str, Any]:
        """Return the changed paths."""
        entries = self.plan_landing()["entries"]
        gone = [row["path"] for row in entries if row["op"] in ("delete", "rmdir")]
        return {"written": [row["path"] for row in entries if row["path"] not in gone], "deleted": gone}

    def land(self, *, actor: str, door: str, **request: Any) -> LandingShown:
        """Land; who and from where is what the server knows of us, not what we say."""
        body = {name: value for name, value in request.items() if value is not None}
        return LandingShown(self.server.ask("POST", self.server.place(self.thread_id, "/land"), body))


def _branch(shell: Shell, session: str | None, paths: Sequence[str]) -> tuple[BranchThere, list[str] | None]:
    """Return the branch and the paths; a first word that looks like a path is one, of the newest."""
    server = Server.of(shell)
    words = list(paths)
    if session is not None and ("/" in session or "." in session):
        return BranchThere(server, server.session(None)), there([session, *words])
    return BranchThere(server, server.session(session)), there(words)


def diff(
    shell: Shell, *, session: str | None, paths: Sequence[str], stat: bool, json: bool, workspace: str | None
) -> int:
    """Show what a session of the server changes."""
    no_workspace(workspace)
    branch, chosen = _branch(shell, session, paths)
    return write_diff(shell, branch, branch.thread_id, chosen, stat=stat, json=json, folds=True)


def land(
    shell: Shell,
    *,
    session: str | None,
    paths: Sequence[str],
    patch: bool,
    yes: bool,
    accept: Sequence[str],
    force: bool,
    partial: bool,
    json: bool,
    workspace: str | None,
    check: bool = False,
) -> int:
    """Write a branch's changes into the server's directory."""
    no_workspace(workspace)
    branch, chosen = _branch(shell, session, paths)
    request: dict[str, Any] = {
        "paths": chosen, "accept": there(accept) or [], "force": force, "partial": partial,
    }  # fmt: skip
    arguments = prepare(shell, branch, request, patch=patch, yes=yes, shows=False)
    if arguments is None:
        shell.terminal.note("nothing was chosen; nothing landed")
        return DONE
    if check and not passes_there(shell, branch, json=json):
        return FAILED
    return land_chosen(shell, branch, arguments, json)


def landings(shell: Shell, *, json: bool, workspace: str | None) -> int:
    """List what landed on the server, newest last."""
    no_workspace(workspace)
    found = list(reversed(Server.of(shell).get("/api/landings")))
    if json:
        shell.terminal.write(json_text.dumps(found, ensure_ascii=False, indent=2) + "\n")
        return DONE
    for line in table(landing_rows(found), width=shell.terminal.width):
        shell.terminal.line(line)
    if not found:
        shell.terminal.note("nothing has landed there")
    return DONE


def fix(shell: Shell, *, landing: str, how: str, json: bool, workspace: str | None) -> int:
    """Lead a landing of the server that needs attention out of it."""
    no_workspace(workspace)
    server = Server.of(shell)
    wanted = one_of([row["id"] for row in server.get("/api/landings")], landing, "this server")
    return say_fixed(shell, server.ask("POST", f"/api/landings/{wanted}/fix", {"how": how}), json=json)


def undo(shell: Shell, *, landing: str | None, force: bool, json: bool, workspace: str | None) -> int:
    """Take a landing of the server back; by default the newest that still stands."""
    no_workspace(workspace)
    server = Server.of(shell)
    known = server.get("/api/landings")
    standing = [row["id"] for row in known if row["state"] == "done" and row["kind"] == "land"]
    if landing is None and not standing:
        raise CliExit(USAGE, "nothing has landed there that could be taken back")
    matches = [row["id"] for row in known if row["id"].startswith(landing)] if landing else standing[:1]
    if len(matches) != 1:
        what = f"fits several landings: {', '.join(matches)}" if matches else "is no landing of this server"
        raise CliExit(USAGE, f"{harmless(landing or '')} {what}; `bowerbird landings` lists them")
    try:
        undone = server.ask("POST", f"/api/landings/{matches[0]}/undo", {"force": force})
    except LandingRefused as refusal:
        shell.terminal.warn("nothing was taken back; edited since:", "red")
        say_refused(shell, refusal.refused)
        return PARTLY
    if json:
        data = {
            "landing_id": undone["id"],
            "undoes": matches[0],
            "paths": [r["path"] for r in undone["entries"]],
        }
        shell.terminal.write(json_text.dumps(data, ensure_ascii=False) + "\n")
    else:
        shell.terminal.line(f"took {matches[0]} back", "green")
        shell.terminal.note(f"bring it back with: bowerbird undo {undone['id']}")
    return DONE


def discard(
    shell: Shell, *, session: str | None, yes: bool, workspace: str | None, json: bool = False
) -> int:
    """Throw a session's unlanded changes away; the server keeps them for 7 days."""
    no_workspace(workspace)
    branch, _ = _branch(shell, session, ())
    changes = branch.changes()
    count = len(changes["written"]) + len(changes["deleted"])
    if not count:
        shell.terminal.note(f"session {branch.thread_id} has nothing to discard")
        return DONE
    if not yes and not ask_sure(f"Discard {plural(count, 'change')} of session {branch.thread_id}?"):
        raise CliExit(USAGE, "nothing was discarded; --yes discards without asking")
    gone = branch.server.ask("POST", branch.server.place(branch.thread_id, "/discard"), {})
    if json:
        shell.terminal.write(json_text.dumps(gone, ensure_ascii=False) + "\n")
    else:
        shell.terminal.line(f"discarded {plural(len(gone['paths']), 'change')}", "green")
    return DONE
