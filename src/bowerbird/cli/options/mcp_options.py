"""The options of `bowerbird mcp …` (PT-17).

Here: names, types and help. Not here: what the commands do (`admin/mcp.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

Name = Annotated[str, Argument(metavar="NAME", help="Letters, digits, _ and -, at most 40.")]
Where = Annotated[str | None, Option("-w", "--workspace", help="Directory; default: the current one.")]
Json = Annotated[bool, Option("--json", help="Write JSON.")]


def mcp_group(call: Callable[..., int]) -> typer.Typer:
    """Return the group; `call(module, function, **options)` runs a command."""
    group = typer.Typer(
        help="MCP servers whose tools sessions may use.", rich_markup_mode=None, no_args_is_help=True
    )

    @group.command("serve")
    def serve(workspace: Where = None) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Serve MCP on standard input and output: agents, sessions and branches as tools."""
        return call("admin.mcp.serve", "serve", workspace=workspace)

    @group.command("list")
    def list_(json: Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """List the configured servers; none is started."""
        return call("admin.mcp.servers", "list_servers", json=json)

    @group.command("test")
    def test(  # pyright: ignore[reportUnusedFunction] - registered
        name: Annotated[str | None, Argument(metavar="[NAME]", help="Default: all.")] = None,
        json: Json = False,
    ) -> int:
        """Start servers, list their tools and what they said on standard error, and end them."""
        return call("admin.mcp.servers", "test", name=name, json=json)

    @group.command("add", context_settings={"allow_interspersed_args": False})
    def add(  # pyright: ignore[reportUnusedFunction] - registered
        name: Name,
        command: Annotated[
            list[str] | None, Argument(metavar="[-- CMD…]", help="Program and arguments.")
        ] = None,
        url: Annotated[str | None, Option("--url", help="Address, in place of a command.")] = None,
        transport: Annotated[
            str | None, Option("--transport", help="stdio, streamable_http or sse; default: by the rest.")
        ] = None,
        env: Annotated[
            list[str] | None, Option("--env", metavar="NAME=VALUE", help="${X} is kept as it is.")
        ] = None,
        header: Annotated[
            list[str] | None, Option("--header", metavar="NAME=VALUE", help="Sent to the address.")
        ] = None,
        cwd: Annotated[str | None, Option("--cwd", metavar="DIR", help="Where the program runs.")] = None,
        trusted: Annotated[bool, Option("--trusted", help="Believe its annotations.")] = False,
    ) -> int:
        """Add a server to the servers file. Options come before NAME."""
        return call(
            "admin.mcp.servers", "add", name=name, command=command or [], url=url, transport=transport,
            env=env or [], header=header or [], cwd=cwd, trusted=trusted,
        )  # fmt: skip

    @group.command("login")
    def login(  # pyright: ignore[reportUnusedFunction] - registered
        name: Name,
        browser: Annotated[
            bool, Option("--browser/--no-browser", help="Open the address that is shown.")
        ] = True,
        port: Annotated[
            int, Option("--port", help="Where the browser comes back to; 0 = any.", min=0, max=65535)
        ] = 0,
    ) -> int:
        """Sign in at a server in a browser; what it gives is kept encrypted and renewed by itself."""
        return call("admin.mcp.login", "login", name=name, browser=browser, port=port)

    @group.command("logout")
    def logout(name: Name) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Forget the sign-in at a server."""
        return call("admin.mcp.login", "logout", name=name)

    @group.command("remove")
    def remove(name: Name) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Take a server out of the servers file."""
        return call("admin.mcp.servers", "remove", name=name)

    @group.command("import")
    def import_(  # pyright: ignore[reportUnusedFunction] - registered
        file: Annotated[str, Argument(metavar="FILE", help="For example the .mcp.json of a project.")],
        yes: Annotated[bool, Option("--yes", "-y", help="Copy without asking.")] = False,
    ) -> int:
        """Show the servers of another program's file and copy them into the servers file."""
        return call("admin.mcp.servers", "import_file", path=file, yes=yes)

    return group
