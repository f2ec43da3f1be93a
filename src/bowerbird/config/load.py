"""Loading settings: sources in, one `Loaded` value or one `ConfigError` out (CF-1 … CF-12).

Here: the order of sources. Not here: their formats, the keys, what a door prints of them.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from bowerbird.config.database import database_url
from bowerbird.config.environment import Variables, variable_layer
from bowerbird.config.keys import KeyInfo, canonical, find
from bowerbird.config.keys import Path as KeyPath
from bowerbird.config.layers import DEFAULT, EMPTY, Finding, Layer, Leaf, Missing, Origin, expand, merge
from bowerbird.config.resolve import Bases, Resolved, resolve
from bowerbird.config.sources import (
    HOME_DIRECTORY,
    FileLayers,
    Place,
    choose_file,
    is_there,
    open_to_others,
    read_dotenv,
    read_files,
    read_mcp_file,
    read_secret_file,
)
from bowerbird.config.tree import Settings
from bowerbird.core.errors import ConfigError

CommandKind = Literal["serve", "cli"]


class Loaded(msgspec.Struct, frozen=True):
    """Settings with who set what.

    Attributes:
        settings: the tree; paths are absolute. With errors it holds defaults for the bad keys.
        leaves: what some source set, with its origin and what it hid.
        errors, warnings, notes: each `key: problem; source:line`.
        bad: keys with an error, and what is wrong.
        file: the settings file, or None. files: all files read.
        base_dir: where relative paths start.
    """

    settings: Settings
    leaves: Mapping[KeyPath, Leaf]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    bad: Mapping[KeyPath, str]
    file: Path | None
    files: tuple[Path, ...]
    base_dir: Path

    def origin(self, key: str) -> Origin:
        """Return who set `key`, say `agent.max_turns`; the default's when nobody did."""
        leaf = self.leaves.get(canonical(tuple(key.split("."))))
        return leaf.origin if leaf else DEFAULT

    @property
    def origins(self) -> dict[str, Origin]:
        """Return the origin of every key that a source set."""
        return {".".join(path): leaf.origin for path, leaf in self.leaves.items() if leaf.value is not EMPTY}

    @property
    def database_url(self) -> str:
        """Return the database URL with driver, relative SQLite paths at `agent.data_dir`."""
        return database_url(self.settings.store.url.reveal(), self.settings.agent.data_dir)


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    kind: CommandKind = "cli",
    config_path: str | None = None,
    env_file: str | None = None,
    workspace: str | Path | None = None,
    home: str | Path | None = None,
) -> Loaded:
    """Load settings from all sources.

    Args:
        flags: values given on the command line, by dotted key; None values are not set.
        env: environment; the process's when None.
        cwd: current directory; the process's when None.
        kind: `serve` reads `.env` of the base directory and the short names DATABASE_URL and
            WORKSPACE_DIR; `cli` (every other command) does not.
        config_path: value of `--config`. env_file: value of `--env-file`.
        workspace: directory the command works in; its unnamed config.yaml is the project's.
        home: what `~` stands for; HOME of `env` when None.

    Raises:
        ConfigError: with all problems of the load in `problems`.

    Example:
        >>> loaded = load_settings({"agent.max_turns": 7}, env={}, cwd="/", home="/nonexistent")
        >>> loaded.settings.agent.max_turns, str(loaded.origin("agent.max_turns"))
        (7, 'flag for agent.max_turns')
    """
    loaded = inspect_settings(
        flags,
        env=env,
        cwd=cwd,
        kind=kind,
        config_path=config_path,
        env_file=env_file,
        workspace=workspace,
        home=home,
    )
    if loaded.errors:
        count = len(loaded.errors)
        head = "the settings have an error" if count == 1 else f"the settings have {count} errors"
        lines = "\n".join(f"  {problem}" for problem in loaded.errors)
        raise ConfigError(f"{head}:\n{lines}", loaded.errors)
    return loaded


def inspect_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    kind: CommandKind = "cli",
    config_path: str | None = None,
    env_file: str | None = None,
    workspace: str | Path | None = None,
    home: str | Path | None = None,
) -> Loaded:
    """Load like `load_settings`, but report errors in the result (for `config show` and `check`)."""
    environment = dict(os.environ if env is None else env)
    here = Path(cwd) if cwd is not None else Path.cwd()
    at_home = Path(home) if home is not None else _home(environment)
    command = kind == "cli"
    works_in = Path(os.path.normpath(here / workspace)) if workspace is not None else None
    place = choose_file(config_path, environment, cwd=here, home=at_home, command=command)
    bases = Bases(place.base, here, at_home)
    files = read_files(place)
    dotenv = None if command and env_file is None else _dotenv(files, bases, env_file)
    sources = [*([dotenv] if dotenv else []), Variables("environment", environment)]
    variables = {name: text for source in sources for name, text in source.values.items()}

    from_files, missing = _expanded(files.layers, variables, files.findings)
    layers: list[Layer] = [from_files]
    for source in sources:
        layer, findings = variable_layer(
            source,
            command=command,
            known=[path for lower in layers for path in lower],
            read_file=lambda name, of=source: read_secret_file(
                here if of.kind == "environment" else place.base, at_home, name
            ),
        )
        files.findings += findings
        layers.append(layer)
    layers.append(_flag_layer(flags or {}))
    if not command and place.base == at_home / HOME_DIRECTORY:
        # A server without settings of its own serves the directory it was started in.
        layers.insert(0, {("agent", "workspace"): Leaf(str(here), Origin("default"))})
    leaves = merge(layers)
    _keys_by_other_names(leaves, sources)
    more = _mcp_file(leaves, files, bases, variables, works_in)
    resolved = resolve(leaves, [*_still_missing(missing, leaves), *more], bases=bases, command=command)
    findings = [*files.findings, *resolved.findings, *_readable(files.read, from_files, dotenv)]
    findings += _hooks_place(leaves, resolved.settings, works_in, at_home)
    if not command:
        findings += _own_workspace(place.file, config_path, environment, resolved.settings)
    return _loaded(resolved, findings, place, tuple(files.read))


def _keys_by_other_names(leaves: dict[KeyPath, Leaf], sources: Sequence[Variables]) -> None:
    """Take a provider's key from the variable that `api_key_env` names, unless it has one."""
    for path, leaf in list(leaves.items()):
        target = (*path[:-1], "api_key")
        if path[0] != "providers" or path[-1] != "api_key_env" or target in leaves:
            continue
        for source in sources:
            text = source.values.get(str(leaf.value), "")
            if text.strip():
                leaves[target] = Leaf(text, source.origin(str(leaf.value)))


def _home(environment: Mapping[str, str]) -> Path:
    home = environment.get("HOME")
    return Path(home) if home else Path.home()


def _dotenv(files: FileLayers, bases: Bases, env_file: str | None) -> Variables:
    file = bases.here / Path(env_file).expanduser() if env_file is not None else bases.file / ".env"
    values, lines = read_dotenv(file, files.findings, named=env_file is not None)
    if values:
        files.read.append(file)
    theirs = bases.here / ".env"
    if env_file is None and theirs != file and is_there(theirs):
        # Whoever works in a directory that is served could have written it.
        text = f"{theirs} belongs to the project and was not read; name it with --env-file to use it"
        files.findings.append(Finding("note", (), text))
    return Variables(".env", values, str(file), lines)


def _expanded(
    layers: Sequence[Layer], variables: Mapping[str, str], findings: list[Finding]
) -> tuple[dict[KeyPath, Leaf], list[Missing]]:
    leaves, missing, problems = expand(merge(layers), variables)
    findings += problems
    return leaves, missing


def _still_missing(missing: Sequence[Missing], leaves: Mapping[KeyPath, Leaf]) -> list[Missing]:
    """A value that a higher source gives is not missing."""
    return [item for item in missing if item.path not in leaves]


def _flag_layer(flags: Mapping[str, Any]) -> dict[KeyPath, Leaf]:
    return {
        canonical(tuple(name.split("."))): Leaf(value, Origin("flag", f"flag for {name}"))
        for name, value in flags.items()
        if value is not None
    }


def _mcp_file(
    leaves: dict[KeyPath, Leaf],
    files: FileLayers,
    bases: Bases,
    variables: Mapping[str, str],
    workspace: Path | None,
) -> list[Missing]:
    """Add the servers of `mcp.file` to `leaves`; return values that lack a variable.

    A file that lies in the command's workspace and that nobody named belongs to the project: an agent
    could have written it, so its servers are never started.
    """
    leaf = leaves.get(("mcp", "file"))
    name, origin = (str(leaf.value), leaf.origin) if leaf else ("mcp_servers.json", DEFAULT)
    file = Path(bases.absolute(name, origin))
    if leaf is None and workspace is not None and file.is_relative_to(workspace):
        if os.path.lexists(file):
            text = (
                f"{file} belongs to the project and was not read; copy it with: bowerbird mcp import {file}"
            )
            files.findings.append(Finding("note", ("mcp", "file"), text))
        return []
    present = {path[1] for path in leaves if path[0] == "mcp_servers" and len(path) > 1}
    found = read_mcp_file(file, leaf is not None, present)
    files.findings += found.findings
    files.read += found.read
    expanded, missing = _expanded(found.layers, variables, files.findings)
    for path, item in expanded.items():
        leaves.setdefault(path, item)
    return missing


def _readable(
    read: Sequence[Path], leaves: Mapping[KeyPath, Leaf], dotenv: Variables | None
) -> list[Finding]:
    """Warn about files that hold secrets in plain text and are readable by others."""
    holders = {leaf.origin.label for path, leaf in leaves.items() if _is_secret(path)}
    env_label = dotenv.label if dotenv else ""
    if dotenv and any(name.endswith(("KEY", "TOKEN", "SECRET", "PASSWORD")) for name in dotenv.values):
        holders.add(env_label)
    warnings = [open_to_others(file) for file in read if str(file) in holders]
    return [warning for warning in warnings if warning is not None]


def _is_secret(path: KeyPath) -> bool:
    info = find(path)
    return isinstance(info, KeyInfo) and info.secret


def _own_workspace(
    file: Path | None, named: str | None, environment: Mapping[str, str], settings: Settings
) -> list[Finding]:
    """A server whose unnamed settings lie in its own workspace would let the agent propose them."""
    if file is None or named or environment.get("BOWERBIRD_CONFIG", "").strip():
        return []
    if not file.is_relative_to(settings.agent.workspace):
        return []
    text = f"{file} lies inside agent.workspace; name it with --config, or choose another workspace"
    return [Finding("error", ("agent", "workspace"), text)]


def _hooks_place(
    leaves: Mapping[KeyPath, Leaf], settings: Settings, works_in: Path | None, home: Path
) -> Iterator[Finding]:
    """Hooks run outside the sandbox: a file that an agent's changes can land in must not set them (UI-77)."""
    roots = [
        Path(settings.agent.workspace).resolve(),
        *([works_in.resolve()] if works_in is not None else []),
    ]
    for path, leaf in leaves.items():
        if path[0] != "hooks" or leaf.value is EMPTY:
            continue
        file = Path(leaf.origin.label).resolve()
        if leaf.origin.kind != "file":
            yield Finding("error", path, "is set in a settings file only", leaf.origin)
        elif file.parent != (home / HOME_DIRECTORY).resolve() and any(
            file.is_relative_to(root) for root in roots
        ):
            text = f"lies in a workspace ({file}); hooks belong in ~/{HOME_DIRECTORY}/config.yaml"
            yield Finding("error", path, text, leaf.origin)


def _loaded(resolved: Resolved, findings: Sequence[Finding], place: Place, read: tuple[Path, ...]) -> Loaded:
    texts: dict[str, list[str]] = {"error": [], "warning": [], "note": []}
    for finding in findings:
        if str(finding) not in texts[finding.severity]:
            texts[finding.severity].append(str(finding))
    bad: dict[KeyPath, str] = {}
    for finding in findings:
        if finding.severity == "error" and finding.path:
            bad.setdefault(finding.path, finding.text)
    return Loaded(
        settings=resolved.settings,
        leaves=resolved.leaves,
        errors=tuple(texts["error"]),
        warnings=tuple(texts["warning"]),
        notes=tuple(texts["note"]),
        bad=bad,
        file=place.file,
        files=read,
        base_dir=place.base,
    )
