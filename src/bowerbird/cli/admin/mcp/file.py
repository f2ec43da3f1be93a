"""The servers file as data: read, changed, checked, written (CF-50).

Here: the file and its entries. Not here: what people are shown (`mcp.py`), how settings are loaded.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, cast

from bowerbird.cli.terminal.command_line import Anywhere
from bowerbird.cli.terminal.exits import CONFIG, FAILED, CliExit
from bowerbird.core.processes.alone import alone_in

Entry = dict[str, Any]
KNOWN = (
    "transport", "type", "mode", "command", "args", "env", "cwd", "url", "headers", "authorization_token",
    "enabled", "start_timeout", "call_timeout", "tools", "approval", "trusted", "sampling", "sandbox",
    "oauth",
)  # fmt: skip
# What decides how far a server is trusted is never taken from a file that others wrote.
_OURS_ALONE = frozenset({"approval", "trusted", "sampling", "enabled"})


@contextlib.contextmanager
def alone(file: Path) -> Generator[None]:
    """Let no other process change the servers file between reading and writing it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with alone_in(file.parent):
        yield


def read_entries(file: Path) -> dict[str, Entry]:
    """Return the entries of the servers file; none when it is not there.

    Raises:
        CliExit: it cannot be read, or is not the JSON form that can be changed here.
    """
    if not file.exists():
        return {}
    data = _json(file)
    servers = data.get("servers", {})
    if set(data) - {"servers"} or not isinstance(servers, dict):
        raise CliExit(CONFIG, f'{file} is not of the form {{"servers": {{…}}}}; edit it by hand')
    return cast("dict[str, Entry]", servers)


def read_foreign(file: Path) -> tuple[dict[str, Entry], dict[str, list[str]]]:
    """Return the servers in another program's file, and the keys of each that are left out.

    Raises:
        CliExit: there are none.
    """
    data = _json(file)
    found = next((data[key] for key in ("mcpServers", "servers", "mcp_servers") if key in data), None)
    if not isinstance(found, dict) or not found:
        raise CliExit(FAILED, f"{file} holds no servers (looked for mcpServers and servers)")
    entries: dict[str, Entry] = {}
    dropped: dict[str, list[str]] = {}
    for name, entry in cast("dict[str, Any]", found).items():
        if not isinstance(entry, dict):
            raise CliExit(FAILED, f"{file}: the entry {name!r} is not a mapping")
        given = cast("Entry", entry)
        kept = [key for key in given if key in KNOWN and key not in _OURS_ALONE]
        entries[name] = {key: given[key] for key in kept}
        dropped[name] = [key for key in given if key not in kept]
    return entries, dropped


def write_entries(file: Path, entries: Mapping[str, Entry], anywhere: Anywhere) -> None:
    """Write the servers file, for its owner only, once the settings with it have no new error; see `alone`.

    Raises:
        CliExit: an entry is wrong; the file is as it was.
    """
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # mode 0600
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump({"servers": dict(entries)}, stream, ensure_ascii=False, indent=2)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        problems = _problems(draft, anywhere)
        if problems:
            lines = "\n".join(f"  {line.replace(str(draft), str(file))}" for line in problems)
            raise CliExit(CONFIG, f"not written, because the settings would have errors:\n{lines}")
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _problems(draft: Path, anywhere: Anywhere) -> list[str]:
    from bowerbird.config import inspect_settings

    loaded = inspect_settings(
        {**anywhere.flags(), "mcp.file": str(draft)},
        kind="cli",
        config_path=anywhere.config,
        env_file=anywhere.env_file,
    )
    return [error for error in loaded.errors if error.startswith("mcp_servers")]


def _json(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CliExit(FAILED, f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CliExit(CONFIG, f"{file} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise CliExit(CONFIG, f"{file} is not a JSON object")
    return cast("dict[str, Any]", data)
