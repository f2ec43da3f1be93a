"""Hidden files that a command names: the model is told why it does not find them (D-10).

Here: finding such names in a command, and in the output of one that failed. Not here: what is hidden
(`workspace/tree/hiding.py`), the tools that run commands.
"""

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bowerbird.sandbox.run.command import CommandResult
    from bowerbird.workspace import Branch

_WORD = re.compile(r"[^\s'\"`;|&<>()=:,\[\]{}$*?!]{3,400}")
_MOST_TEXT = 20_000
_MOST_NAMED = 5


def hidden_note(branch: "Branch", command: str, result: "CommandResult | None" = None) -> str:
    """Return a sentence about the hidden paths that a command names, "" when it names none.

    Args:
        command: a command line, or code.
        result: how it ended; what it wrote is looked through only when it failed.
    """
    if not branch.ground.hides:
        return ""
    text = command[:_MOST_TEXT]
    if result is not None and result.exit_code:
        text += "\n" + result.output[-_MOST_TEXT:]
    root = f"{branch.root}/"
    words = dict.fromkeys(word.removeprefix(root) for word in _WORD.findall(text))
    found = [word for word in words if branch.ground.hidden(posixpath.normpath(f"/{word}"))]
    if not found:
        return ""
    named = ", ".join(found[:_MOST_NAMED]) + (" …" if len(found) > _MOST_NAMED else "")
    return f"{named}: hidden from agents by the setting workspace.hide; for commands it does not exist"
