"""`bowerbird tools` and `bowerbird skills` (UI-47).

Here: printing the lists. Not here: which of them there are.
"""

from bowerbird.cli.client.opening import with_client
from bowerbird.cli.client.protocol import Client
from bowerbird.cli.terminal.exits import DONE
from bowerbird.cli.terminal.shell import Shell, directory_of
from bowerbird.cli.terminal.text import one_line, table


def tools(shell: Shell, *, json: bool) -> int:
    """List the tools that sessions are offered, with their effect classes."""

    async def work(client: Client) -> int:
        offered = await client.tools()
        if json:
            return shell.json(offered)
        rows = [[row["name"], row["effect"], one_line(row["description"], 120)] for row in offered]
        for line in table(rows, width=shell.terminal.width):
            shell.terminal.line(line)
        missing = await client.no_processes()
        if missing:
            shell.terminal.note(f"bash and other process tools are missing: {missing}", "yellow")
        return DONE

    return with_client(shell, None, work)


def skills(shell: Shell, *, json: bool, workspace: str | None) -> int:
    """List skills, hidden ones with the reason."""
    from bowerbird.app.mapping import skill_library

    directory = directory_of(workspace)
    library = skill_library(shell.load(directory).settings, directory)
    if library is None:
        shell.terminal.note("skills are off (skills.enabled)")
        return DONE
    found = library.all()
    if json:
        data = [
            {
                "name": skill.name,
                "description": skill.description,
                "hidden": skill.hidden,
                "bundled": skill.bundled,
            }
            for skill in found
        ]
        shell.json(data)
        return DONE
    rows = [
        [
            skill.name,
            "bundled" if skill.bundled else "yours",
            one_line(skill.hidden or skill.description, 200),
        ]
        for skill in found
    ]
    for line in table(rows, width=shell.terminal.width):
        shell.terminal.line(line)
    return DONE
