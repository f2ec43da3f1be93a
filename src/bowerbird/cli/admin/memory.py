"""`bowerbird memory log|restore`: what is remembered of this directory (UI-47, SE-44), here or on a server.

Here: the commands. Not here: options (`options/memory_options.py`), the rows (`store/rows/memory.py`).
"""

from bowerbird.cli.client.opening import with_client
from bowerbird.cli.client.protocol import Client
from bowerbird.cli.terminal.exits import DONE, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import harmless, table

SHOWN = 60  # characters of a version's first line


def log(shell: Shell, *, workspace: str | None, version: int | None, json: bool) -> int:
    """List the versions of a directory's memory, newest first, or write the text of one.

    Args:
        workspace: directory, the current one when None. version: its text alone.

    Raises:
        CliExit: code 2, no such version is kept.
    """

    async def work(client: Client) -> int:
        found = await client.memory()
        if version is not None:
            chosen = next((each for each in found if each["id"] == version), None)
            if chosen is None:
                raise CliExit(USAGE, f"memory has no version {version}; `bowerbird memory log` lists them")
            if json:
                return shell.json(chosen)
            text = str(chosen["text"]) + "\n"
            shell.terminal.write(harmless(text) if shell.terminal.out.is_terminal else text)
            return DONE
        if json:
            return shell.json(found)
        cells = [
            [str(row["id"]), row["at"][:19], f"{row['bytes']} bytes", row["text"].partition("\n")[0][:SHOWN]]
            for row in found
        ]
        for line in table([[harmless(cell) for cell in row] for row in cells], width=shell.terminal.width):
            shell.terminal.line(line)
        if not found:
            shell.terminal.note("nothing is remembered of this directory")
        return DONE

    return with_client(shell, workspace, work)


def restore(shell: Shell, *, version: int, workspace: str | None) -> int:
    """Make an earlier version count again; what counted before stays in the list."""

    async def work(client: Client) -> int:
        made = await client.restore_memory(version)
        shell.terminal.note(f"version {version} is in use again, as version {made['id']}")
        return DONE

    return with_client(shell, workspace, work)
