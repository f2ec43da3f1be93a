"""`bowerbird memory log|restore`: what is remembered here, and landed versions (UI-47, SE-44, AS-43).

Here: the commands. Not here: options (`options/memory_options.py`), the rows (`store/rows/memory.py`), the
versions of files (`sessions/kept_files.py`).
"""

from typing import Any

from bowerbird.cli.client.opening import with_client
from bowerbird.cli.client.protocol import Client
from bowerbird.cli.terminal.exits import DONE, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import harmless, table

SHOWN = 60  # characters of a version's first line


def log(shell: Shell, *, workspace: str | None, version: str | None, path: str | None, json: bool) -> int:
    """List the versions of a directory's memory, or of a file, newest first, or write the text of one.

    Args:
        workspace: directory, the current one when None. version: its text alone. path: landed versions of
            this file or skill, instead of what is remembered.

    Raises:
        CliExit: code 2, no such version is kept.
    """

    async def work(client: Client) -> int:
        found = await client.memory() if path is None else await client.file_versions(path)
        name = "id" if path is None else "landing"
        if version is not None:
            chosen = next((each for each in found if str(each[name]) == version), None)
            if chosen is None:
                what = "memory" if path is None else path
                raise CliExit(USAGE, f"{what} has no version {version}; `bowerbird memory log` lists them")
            if json:
                return shell.json(chosen)
            text = str(chosen["text"] if chosen["text"] is not None else "\n".join(chosen["paths"]))
            text += "" if text.endswith("\n") else "\n"
            shell.terminal.write(harmless(text) if shell.terminal.out.is_terminal else text)
            return DONE
        if json:
            return shell.json(found)
        cells = [_remembered(row) if path is None else _landed(row) for row in found]
        for line in table([[harmless(cell) for cell in row] for row in cells], width=shell.terminal.width):
            shell.terminal.line(line)
        if not found:
            what = "nothing is remembered of this directory" if path is None else f"nothing landed in {path}"
            shell.terminal.note(what)
        return DONE

    return with_client(shell, workspace, work)


def restore(shell: Shell, *, version: str, path: str | None, workspace: str | None) -> int:
    """Make an earlier version count again; what counted before stays in the list."""

    async def work(client: Client) -> int:
        if path is not None:
            made = await client.restore_file(path, version)
            shell.terminal.note(f"{path} is as {version} left it; landed as {made['landing']}")
            return DONE
        if not version.isdecimal() or len(version) > 15:
            raise CliExit(USAGE, f"memory has no version {version}; of a landing, say --path MEMORY.md")
        made = await client.restore_memory(int(version))
        shell.terminal.note(f"version {version} is in use again, as version {made['id']}")
        return DONE

    return with_client(shell, workspace, work)


def _remembered(row: dict[str, Any]) -> list[str]:
    return [str(row["id"]), row["at"][:19], f"{row['bytes']} bytes", _first(row["text"])]


def _landed(row: dict[str, Any]) -> list[str]:
    said = _first(row["text"]) if row["text"] is not None else ", ".join(row["paths"])[:SHOWN]
    return [row["landing"], row["at"][:19], row["door"], said]


def _first(text: str) -> str:
    return text.partition("\n")[0][:SHOWN]
