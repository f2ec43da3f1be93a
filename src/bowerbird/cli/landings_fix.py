"""`bowerbird landings fix`: the way out of a landing that came neither to its end nor back (D-1).

Here: which landing is meant, what is said. Not here: what is done (`workspace/landing/fix.py`), the same over
a server (`remote_review.py`).
"""

import json as json_text
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bowerbird.cli.exits import DONE, PARTLY, USAGE, CliExit
from bowerbird.cli.review_commands import opened
from bowerbird.cli.text import harmless

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.cli.shell import Shell
    from bowerbird.workspace.landing.fix import Fix

_SAID = {
    "done": "landed",
    "undone": "took back",
    "given_up": "ended, with every file as it is now,",
    "needs_attention": "could not finish",
}


def fix(shell: "Shell", *, landing: str, how: str, json: bool, workspace: str | None) -> int:
    """Try a landing of a directory again, take it back, or give it up."""

    async def work(application: "Application", directory: Path) -> int:
        review, place = application.sessions.review, str(directory)
        wanted = one_of([row.id for row in await review.landings(place)], landing, place)
        fixed = await review.fix(place, wanted, cast("Fix", how))
        return say_fixed(shell, fixed.record(), json=json)

    return opened(shell, workspace, work)


def one_of(known: Sequence[str], wanted: str, where: str) -> str:
    """Return the one landing whose id begins so."""
    matches = [each for each in known if each.startswith(wanted)]
    if len(matches) == 1:
        return matches[0]
    what = f"fits several landings: {', '.join(matches)}" if matches else f"is no landing of {where}"
    raise CliExit(USAGE, f"{harmless(wanted)} {what}; `bowerbird landings` lists them")


def say_fixed(shell: "Shell", record: Mapping[str, Any], *, json: bool) -> int:
    """Show how a landing ended, and what is still in its way."""
    state = str(record["state"])
    if json:
        shell.terminal.write(json_text.dumps(record, ensure_ascii=False) + "\n")
    else:
        shell.terminal.line(f"{_SAID.get(state, state)} {record['id']}")
        if state == "needs_attention":
            for row in record.get("troubles", ()):
                shell.terminal.note(
                    f"{harmless(str(row['path']).lstrip('/'))}: {harmless(str(row['reason']))}"
                )
    return PARTLY if state == "needs_attention" else DONE
