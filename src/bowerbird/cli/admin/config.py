"""`bowerbird config check|show|explain|init|schema` (CF-82 … CF-86).

Here: printing. Not here: what is printed (`config/present.py`, `config/reference.py`).
"""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bowerbird.cli.terminal.exits import CONFIG, DONE, FAILED, PARTLY, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import harmless, table
from bowerbird.core.atomic import make_file

if TYPE_CHECKING:
    from bowerbird.config import Loaded

_STYLES = {"error": "red", "warning": "yellow", "note": "dim"}


def check(shell: Shell, *, strict: bool, json: bool) -> int:
    """Report errors, warnings and notes; 0 clean, 78 errors, 3 warnings with `strict`."""
    from bowerbird.config import inspect_settings
    from bowerbird.config.present import check_data

    loaded = inspect_settings(
        kind="serve", config_path=shell.anywhere.config, env_file=shell.anywhere.env_file
    )
    terminal = shell.terminal
    if json:
        terminal.json(check_data(loaded))
    else:
        terminal.line(f"settings file: {loaded.file or 'none'}")
        for kind, lines in (("error", loaded.errors), ("warning", loaded.warnings), ("note", loaded.notes)):
            for line in lines:
                terminal.line(f"{kind}: {harmless(line)}", _STYLES[kind])
        if not (loaded.errors or loaded.warnings):
            terminal.line("everything is in order", "green")
    if loaded.errors:
        return CONFIG
    return PARTLY if strict and loaded.warnings else DONE


def show(shell: Shell, *, key: str | None, origin: bool, json: bool, every: bool, command: bool) -> int:
    """Print effective values; works with invalid settings and marks the bad ones."""
    from bowerbird.config import inspect_settings
    from bowerbird.config.present import rows

    loaded = inspect_settings(
        kind="cli" if command else "serve",
        config_path=shell.anywhere.config,
        env_file=shell.anywhere.env_file,
        workspace=Path.cwd() if command else None,
    )
    found = rows(loaded, key, every=every)
    terminal = shell.terminal
    if json:
        data = {row.key: row.to_data(origin=origin) for row in found}
        terminal.json({name: {k: v for k, v in row.items() if k != "key"} for name, row in data.items()})
    else:
        lines: list[list[str]] = []
        for row in found:
            line = [row.key, harmless(_value(row.value))]
            if origin:
                hides = f" (hides {', '.join(map(str, row.hidden))})" if row.hidden else ""
                line.append(f"{row.origin}{hides}")
            if row.problem:
                line.append(f"INVALID: {row.problem}")
            lines.append(line)
        for text in table(lines, width=max(terminal.width, 100) if terminal.out.is_terminal else 10_000):
            terminal.line(text)
        if not found:
            terminal.note("every value is the default; --all lists them")
    for problem in loaded.errors:
        terminal.note(f"error: {problem}", "red")
    if not command:
        _say_whose(shell, loaded)
    return DONE


def _say_whose(shell: Shell, served: "Loaded") -> None:
    """These are the settings of `serve`; other commands do not read all of its sources."""
    from bowerbird.cli.terminal.databases import shown

    others = shell.load(Path.cwd(), silent=True)
    if others.database_url != served.database_url:
        shell.terminal.note(
            f"these are the settings of `serve`: its database is {shown(served)}, that of other commands here"
            f" {shown(others)} (`config show --command`)",
            "yellow",
        )


def _value(value: Any) -> str:
    return value if isinstance(value, str) and value else json_text.dumps(value, ensure_ascii=False)


def explain(shell: Shell, *, key: str, json: bool) -> int:
    """Print all that is known of one key."""
    from bowerbird.config.present import explain as explain_key

    data = explain_key(key)
    if json:
        shell.terminal.json(data)
        return DONE
    lines: list[list[str]] = []
    for name, value in data.items():
        if name == "keys":
            lines += [[inner, meaning] for inner, meaning in value.items()]
        elif value not in (None, [], ""):
            text = ", ".join(cast("list[str]", value)) if isinstance(value, list) else str(value)
            lines.append([name.replace("_", " "), text])
    for text in table(lines, width=10_000):
        shell.terminal.line(text)
    return DONE


def init(shell: Shell, *, path: str) -> int:
    """Write a commented settings file, 0600, never over another."""
    from bowerbird.config.reference import template
    from bowerbird.config.sources import FILE_NAME, note_initialised

    file = Path(path).expanduser()
    try:
        make_file(file, template().encode(), mode=0o600)
    except FileExistsError:
        raise CliExit(FAILED, f"{file} already exists and was left alone; give another FILE") from None
    if file.name == FILE_NAME:
        note_initialised(Path.home(), file.parent.absolute())  # `serve` there reads it without being told
    shell.terminal.note(f"wrote {file}; every line is a default until you uncomment it")
    return DONE


def schema(shell: Shell) -> int:
    """Print the JSON Schema of the tree."""
    from bowerbird.config.reference import schema as settings_schema

    shell.terminal.json(settings_schema())
    return DONE
