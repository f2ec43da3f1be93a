"""`land --check`: the command of `landing.check` judges a branch before anything lands (UI-27).

Here: running it, here or at the server, and saying what it found. Not here: landing; how a check runs
(`bowerbird.sessions.landing_checks`).
"""

import json as json_text
import time
from typing import TYPE_CHECKING, Any

from bowerbird.cli.exits import USAGE, CliExit
from bowerbird.cli.shell import Shell
from bowerbird.cli.text import harmless

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.cli.remote_review import BranchThere
    from bowerbird.workspace import Branch

LOOK_S = 0.5
NOTHING = "no check is configured: set landing.check to a shell command, such as pytest -q"


async def passes_here(shell: Shell, application: "Application", branch: "Branch", *, json: bool) -> bool:
    """Run the check on a copy of `branch`, say what it found and return whether it passed.

    Raises:
        CliExit: no check is configured.
    """
    from bowerbird.sessions.landing_checks import check_branch

    command = application.loaded.settings.landing.check.strip()
    if not command:
        raise CliExit(USAGE, NOTHING)
    children = application.maker.children
    assert children is not None, "an open application has it"
    shell.terminal.note(f"checking: {harmless(command)}")
    found = await check_branch(children.checking, branch, command)
    return _said(shell, found.record(), json=json)


def passes_there(shell: Shell, branch: "BranchThere", *, json: bool) -> bool:
    """Let the server check the branch; else as `passes_here`."""
    place = branch.server.place(branch.thread_id, "/check")
    if not branch.server.get(place)["command"]:
        raise CliExit(USAGE, NOTHING)
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
