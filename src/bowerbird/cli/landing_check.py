"""`land --check`: the command of `landing.check` judges a branch before anything lands (UI-27).

Here: running it, here or at the server, and saying what it found. Not here: landing; how a check runs
(`bowerbird.sessions.branches.landing_checks`).
"""

import json as json_text
import time
from typing import TYPE_CHECKING, Any

from bowerbird.cli.exits import USAGE, CliExit
from bowerbird.cli.shell import Shell
from bowerbird.cli.text import harmless
from bowerbird.sessions.review import NO_CHECK

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.cli.remote_review import BranchThere

LOOK_S = 0.5


async def passes_here(shell: Shell, application: "Application", thread_id: str, *, json: bool) -> bool:
    """Run the check on a copy of a session's branch, say what it found and return whether it passed.

    Raises:
        CliExit: no check is configured.
    """
    command = application.sessions.settings.landing_check
    if not command:
        raise CliExit(USAGE, NO_CHECK)
    shell.terminal.note(f"checking: {harmless(command)}")
    found = await application.sessions.review.check(thread_id)
    return _said(shell, found.record(), json=json)


def passes_there(shell: Shell, branch: "BranchThere", *, json: bool) -> bool:
    """Let the server check the branch; else as `passes_here`."""
    place = branch.server.place(branch.thread_id, "/check")
    if not branch.server.get(place)["command"]:
        raise CliExit(USAGE, NO_CHECK)
    found = branch.server.ask("POST", place)
    shell.terminal.note(f"checking: {harmless(found['command'])}")
    while found["state"] == "running":
        time.sleep(LOOK_S)
        found = branch.server.get(place)
    return _said(shell, found, json=json)


def _said(shell: Shell, found: dict[str, Any], *, json: bool) -> bool:
    """Say what was found: a pass in a line, else why not, with the end of the output."""
    if found["state"] == "passed":
        shell.terminal.note(f"check passed in {found['seconds']:.1f} s")
        return True
    if json:
        shell.terminal.write(json_text.dumps({"landing_id": None, "check": found}, ensure_ascii=False) + "\n")
        return False
    tail = harmless(found["output_tail"].rstrip())
    if tail:
        shell.terminal.warn(tail)
    if found["state"] == "failed":
        how = f"ended with code {found['exit_code']} after {found['seconds']:.1f} s"
        shell.terminal.warn(f"nothing landed: the check {how}", "red")
    else:
        shell.terminal.warn(
            f"nothing landed: the check could not run: {harmless(str(found['error']))}", "red"
        )
    return False
