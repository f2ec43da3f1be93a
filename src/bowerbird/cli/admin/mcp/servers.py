"""`bowerbird mcp list|test|add|remove|import` (PT-17, PT-24).

Here: the commands' steps and what is shown. Not here: the servers file as data (`file.py`), the client.
"""

import json as json_text
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bowerbird.cli.admin.mcp.file import Entry, alone, read_entries, read_foreign, write_entries
from bowerbird.cli.terminal.exits import DONE, FAILED, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.shell import run as run_async
from bowerbird.cli.terminal.text import harmless, one_line, table
from bowerbird.core.extras import require

if TYPE_CHECKING:
    from bowerbird.config import Loaded
    from bowerbird.protocols.mcp_client import McpClient, ServerSpec
    from bowerbird.protocols.mcp_client.server import Server

_SHOWN_STDERR_LINES = 20


def list_servers(shell: Shell, *, json: bool) -> int:
    """List the configured servers."""
    loaded = shell.load(Path.cwd())
    rows = [_row(loaded, name) for name in sorted(loaded.settings.mcp_servers)]
    if json:
        shell.json(rows)
        return DONE
    if not rows:
        shell.terminal.note("no MCP server is configured; add one with: bowerbird mcp add NAME -- COMMAND")
    lines = [[r["name"], r["transport"], r["where"], "" if r["enabled"] else "off", r["from"]] for r in rows]
    for text in table(lines, width=shell.terminal.width if shell.terminal.out.is_terminal else 10_000):
        shell.terminal.line(text)
    return DONE


def test(shell: Shell, *, name: str | None, json: bool) -> int:
    """Start servers and show what they offer; 1 when one of them fails."""
    from bowerbird.app.features.mcp import logins_in, masking, server_spec
    from bowerbird.protocols.mcp_client import McpClient

    loaded = shell.load(Path.cwd())
    servers = loaded.settings.mcp_servers
    if name is not None and name not in servers:
        known = ", ".join(sorted(servers)) or "none is configured"
        raise CliExit(USAGE, f"no MCP server is named {name!r} (there are: {known})")
    wanted = [name] if name is not None else [n for n in sorted(servers) if servers[n].enabled]
    logins = logins_in(loaded.settings)
    specs = [server_spec(each, servers[each], logins) for each in wanted]
    client = McpClient(specs, masking(loaded.settings))
    if specs:
        require("mcp", "MCP servers")
    results = run_async(lambda: _tested(client))
    if json:
        shell.json(results)
    else:
        for result in results:
            _show(shell, result)
        if not results:
            shell.terminal.note("no MCP server is configured")
    return DONE if all(result["ok"] for result in results) else FAILED


def add(
    shell: Shell,
    *,
    name: str,
    command: Sequence[str],
    url: str | None,
    transport: str | None,
    env: Sequence[str],
    header: Sequence[str],
    cwd: str | None,
    trusted: bool,
) -> int:
    """Add a server to the servers file, after checking it as settings are checked."""
    entry: Entry = {}
    if transport is not None:
        entry["transport"] = transport
    words = list(command[1:] if command[:1] == ["--"] else command)
    if words:
        entry |= {"command": words[0], "args": words[1:]}
    for key, value in (("url", url), ("cwd", cwd), ("trusted", trusted or None)):
        if value is not None:
            entry[key] = value
    for key, pairs in (("env", env), ("headers", header)):
        if pairs:
            entry[key] = dict(_pair(pair, key) for pair in pairs)
    file = _file(shell)
    with alone(file):
        entries = read_entries(file)
        if name in entries:
            raise CliExit(FAILED, f"{name} is in {file} already; remove it first")
        write_entries(file, {**entries, name: entry}, shell.anywhere)
    shell.terminal.note(f"added {name} to {file}; try it with: bowerbird mcp test {name}")
    return DONE


def remove(shell: Shell, *, name: str) -> int:
    """Take a server out of the servers file."""
    file = _file(shell)
    if name not in read_entries(file):
        raise CliExit(FAILED, f"{name} is not in {file}{_elsewhere(shell, name)}")
    with alone(file):
        left = {key: entry for key, entry in read_entries(file).items() if key != name}
        write_entries(file, left, shell.anywhere)
    shell.terminal.note(f"removed {name} from {file}")
    return DONE


def import_file(shell: Shell, *, path: str, yes: bool) -> int:
    """Show the servers of another file, ask, and copy them; those whose name is taken stay as they are."""
    source = Path(path).expanduser()
    found, dropped = read_foreign(source)
    file = _file(shell)
    entries = read_entries(file)
    fresh = {name: entry for name, entry in found.items() if name not in entries}
    for name, entry in found.items():
        taken = "" if name in fresh else "  (the name is taken: left out)"
        shell.terminal.line(f"{harmless(name)}{taken}")
        for line in _entry_lines(entry, dropped[name]):
            shell.terminal.line(f"  {line}")
    if not fresh:
        raise CliExit(FAILED, f"nothing to copy: every name is in {file} already")
    if not yes and not _agreed(shell, len(fresh), file):
        raise CliExit(FAILED, "nothing was copied")
    with alone(file):  # whatever was added while the question stood, stays
        write_entries(file, {**fresh, **read_entries(file)}, shell.anywhere)
    shell.terminal.note(f"copied {len(fresh)} of {len(found)} servers to {file}")
    return DONE


def _agreed(shell: Shell, count: int, file: Path) -> bool:
    if not sys.stdin.isatty():
        raise CliExit(USAGE, "nobody can be asked here; check the servers above, then add --yes to copy them")
    shell.terminal.note(f"These programs will be started with your rights. Copy {count} to {file}? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _entry_lines(entry: Entry, dropped: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for key, value in entry.items():
        if key in ("env", "headers") and isinstance(value, dict):
            shown = ", ".join(f"{name}=********" for name in cast("dict[str, object]", value))
        elif key == "authorization_token":
            shown = "********"
        else:
            shown = value if isinstance(value, str) else json_text.dumps(value, ensure_ascii=False)
        lines.append(f"{key}: {one_line(harmless(shown))}")
    return [*lines, *([f"left out: {', '.join(map(harmless, dropped))}"] if dropped else [])]


def _file(shell: Shell) -> Path:
    from bowerbird.config import inspect_settings

    anywhere = shell.anywhere
    loaded = inspect_settings(
        anywhere.flags(), kind="cli", config_path=anywhere.config, env_file=anywhere.env_file
    )
    return Path(loaded.settings.mcp.file)


def _elsewhere(shell: Shell, name: str) -> str:
    loaded = shell.load()
    if name not in loaded.settings.mcp_servers:
        return ""
    return f"; it is in {_origin(loaded, name)}, edit that"


def _origin(loaded: "Loaded", name: str) -> str:
    prefix = ("mcp_servers", name)
    sources = {leaf.origin.label for path, leaf in loaded.leaves.items() if path[:2] == prefix}
    return ", ".join(sorted(sources))


def _row(loaded: "Loaded", name: str) -> dict[str, Any]:
    from bowerbird.app.features.mcp import logins_in, server_spec

    entry = loaded.settings.mcp_servers[name]
    spec = server_spec(name, entry, logins_in(loaded.settings))
    return {
        "name": name,
        "transport": spec.transport,
        "where": _where(spec, str(entry.url or "")),
        "enabled": entry.enabled,
        "approval": entry.approval,
        "trusted": entry.trusted,
        "from": _origin(loaded, name),
    }


def _where(spec: "ServerSpec", url: str) -> str:
    return spec.masked(" ".join((spec.command, *spec.args))) if spec.command else url


async def _tested(client: "McpClient") -> list[dict[str, Any]]:
    try:
        await client.gather()
        return [await _report(await client.server(spec.name)) for spec in client.specs]
    finally:
        await client.aclose()


async def _report(server: "Server") -> dict[str, Any]:
    """Return what a started server gave, or why it could not be started."""
    from bowerbird.protocols.mcp_client.connection import ConnectionLost

    result: dict[str, Any] = {"name": server.spec.name}
    try:
        connection = await server.connected()
        tools = await server.offered() or ()
        result |= {"ok": True, "server": connection.title, "protocol": connection.protocol_version}
        result["tools"] = [
            {"name": each.name, "class": each.effect, "keyed": each.keyed, "description": each.description}
            for each in tools
        ]
        result |= {"denied": sorted(server.absent), "warnings": list(server.warnings)}
    except ConnectionLost as error:
        result |= {"ok": False, "error": server.failure or str(error)}
    return {**result, "stderr": server.redact(server.ring.text)}


def _show(shell: Shell, result: dict[str, Any]) -> None:
    terminal = shell.terminal
    if result["ok"]:
        about = f"{result['server']}, protocol {result['protocol']}".lstrip(", ")
        terminal.line(f"{result['name']}: {harmless(about)}, {len(result['tools'])} tools", "green")
        for tool in result["tools"]:
            terminal.line(f"  {tool['name']}  [{tool['class']}]  {one_line(harmless(tool['description']))}")
        for name in result["denied"]:
            terminal.line(f"  {name}  [denied by settings]")
        for warning in result["warnings"]:
            terminal.note(warning, "yellow")
    else:
        terminal.line(f"{result['name']}: {harmless(result['error'])}", "red")
    said = result["stderr"].splitlines()
    if said:
        terminal.line(f"  standard error, last {min(len(said), _SHOWN_STDERR_LINES)} of {len(said)} lines:")
        for line in said[-_SHOWN_STDERR_LINES:]:
            terminal.line(f"  | {harmless(line)}", "dim")


def _pair(text: str, key: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        option = "--env" if key == "env" else "--header"
        raise CliExit(USAGE, f"{option} is {one_line(name)!r}; use NAME=VALUE")
    return name.strip(), value
