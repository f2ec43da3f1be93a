"""`bowerbird agents install`: vendors' programs onto this machine (PR-28).

Here: the command. Not here: installing (`providers/programs/installing.py`), using them (`run/agents.py`).
"""

from collections.abc import Sequence
from pathlib import Path

from bowerbird.cli.terminal.exits import DONE, FAILED
from bowerbird.cli.terminal.shell import Shell, stoppable
from bowerbird.cli.terminal.text import harmless


def install(shell: Shell, *, names: Sequence[str]) -> int:
    """Install agents one after the other; exit code 1 when one could not be."""
    from bowerbird.app.own import make_data_dir
    from bowerbird.core.errors import BowerbirdError
    from bowerbird.providers.programs.installing import install as install_agent

    data_dir = make_data_dir(shell.load(Path.cwd()).settings.agent.data_dir)
    code = DONE
    for name in names:
        try:
            with stoppable():
                starters = install_agent(name, data_dir, lambda line: shell.terminal.note(harmless(line)))
        except (BowerbirdError, OSError) as error:
            shell.terminal.warn(f"{name} was not installed: {harmless(str(error))}", "red")
            code = FAILED
        else:
            there = ", ".join(str(starter) for starter in starters)
            shell.terminal.line(f"{name} is installed ({there}); `bowerbird agents probe {name}` tries it")
    return code
