"""`bowerbird permissions`: what is always allowed (UI-71), here or on a server.

Here: the command. Not here: how a rule comes about, which is the answer `a` to a question.
"""

from bowerbird.cli.client.opening import with_client
from bowerbird.cli.client.protocol import Client
from bowerbird.cli.terminal.exits import DONE
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import harmless, table


def permissions(shell: Shell, *, remove: list[int], json: bool) -> int:
    """Take rules back, in order, then list what is always allowed, newest first; an unknown one ends it."""

    async def work(client: Client) -> int:
        for rule_id in remove:
            await client.remove_permission(rule_id)
            shell.terminal.note(f"permission {rule_id} is taken back; such a call is asked about again")
        found = await client.permissions()
        if json:
            return shell.json(found)
        cells = [[str(row["id"]), row["rule"], row["scope"], row["target"], row["at"][:10]] for row in found]
        for line in table([[harmless(cell) for cell in row] for row in cells], width=shell.terminal.width):
            shell.terminal.line(line)
        if not found:
            shell.terminal.note("nothing is always allowed; answering a question with `a` does that")
        return DONE

    return with_client(shell, None, work)
