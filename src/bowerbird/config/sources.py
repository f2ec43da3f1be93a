"""The files that settings are read from (CF-2, CF-3, CF-6, CF-8, CF-81).

Here: the only file access of the package. Not here: what the contents mean.
"""

import os
import stat
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from bowerbird.config.keys import Path as KeyPath
from bowerbird.config.layers import Finding, Leaf, Origin, flatten

if TYPE_CHECKING:
    from bowerbird.config.yaml_text import Document

FILE_NAME = "config.yaml"
LOCAL_NAME = "config.local.yaml"
HOME_DIRECTORY = ".bowerbird"
INITIALISED = "servers"  # in it: directories that `config init` made, one a line


class Place(msgspec.Struct, frozen=True):
    """Which settings file is used and where relative paths start."""

    file: Path | None
    base: Path
    findings: tuple[Finding, ...] = ()


class FileLayers(msgspec.Struct):
    """What the files hold; `layers` from the lowest to the highest."""

    layers: list[Mapping[KeyPath, Leaf]] = msgspec.field(default_factory=list[Mapping[KeyPath, Leaf]])
    findings: list[Finding] = msgspec.field(default_factory=list[Finding])
    read: list[Path] = msgspec.field(default_factory=list[Path])


def choose_file(
    named: str | None,
    environment: Mapping[str, str],
    *,
    cwd: Path,
    home: Path,
    command: bool,
) -> Place:
    """Return the settings file of a command; without one, paths start in ~/.bowerbird.

    Args:
        named: the value of `--config`. environment: for BOWERBIRD_CONFIG. cwd, home: absolute.
        command: not `serve`, which also reads the file that `config init` wrote here.
    """
    for text, source in (
        (named, "--config"),
        (environment.get("BOWERBIRD_CONFIG", "").strip(), "BOWERBIRD_CONFIG"),
    ):
        if text:
            file = Path(os.path.normpath(cwd / Path(text).expanduser()))
            if file.is_file():
                return Place(file, file.parent)
            what = "is a directory" if file.is_dir() else "does not exist"
            finding = Finding("error", (), f"the settings file {file} {what} ({source})")
            return Place(None, file.parent, (finding,))
    own = home / HOME_DIRECTORY / FILE_NAME
    here = cwd / FILE_NAME
    findings: tuple[Finding, ...] = ()
    if is_there(here):
        # What happens to lie there may be a stranger's, or the agent's of another day, and settings can
        # name programs to start.
        if not command and cwd in initialised(home):
            return Place(here, cwd)
        text = f"{here} belongs to the project and was not read; name it with --config to use it"
        findings = (Finding("note", (), text),)
    if os.path.lexists(own) and not own.is_file():
        what = "is a directory" if own.is_dir() else "is not a regular file"
        findings = (*findings, Finding("error", (), f"the settings file {own} {what}"))
    if own.is_file():
        return Place(own, own.parent, findings)
    return Place(None, own.parent, findings)


def is_there(file: Path) -> bool:
    """Whether `file` is one; no where it may not be looked at: `sudo -u bowerbird …` in somebody's home."""
    try:
        return file.is_file()
    except OSError:
        return False


def initialised(home: Path) -> frozenset[Path]:
    """Return the directories in which somebody wrote settings for a server with `config init`."""
    try:
        lines = (home / HOME_DIRECTORY / INITIALISED).read_bytes().split(b"\n")
    except OSError:
        return frozenset()
    return frozenset(Path(os.fsdecode(line)) for line in lines if line)


def note_initialised(home: Path, directory: Path) -> None:
    """Note that a server may read the settings in `directory` without being told."""
    own = home / HOME_DIRECTORY
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (own / INITIALISED).open("ab") as file:
        file.write(os.fsencode(directory) + b"\n")


def read_files(place: Place) -> FileLayers:
    """Read `config.yaml` and the `config.local.yaml` beside it."""
    result = FileLayers(findings=list(place.findings))
    if place.file is None:
        return result
    _read_yaml(place.file, result)
    local = place.file.parent / LOCAL_NAME
    if local.is_dir():
        result.findings.append(Finding("warning", (), f"{local} is a directory and was not read"))
    elif os.path.lexists(local):
        _read_yaml(local, result)
    return result


def _read_yaml(file: Path, result: FileLayers) -> None:
    document = load_document(file, result.findings)
    if document is None:
        return
    layer, findings = flatten(document.data, document.lines, "file", str(file))
    result.layers.append(layer)
    result.findings += findings
    result.read.append(file)


def load_document(file: Path, findings: list[Finding]) -> "Document | None":
    """Return the YAML or JSON mapping in `file`; problems go to `findings`."""
    from bowerbird.config.yaml_text import LARGEST_FILE_BYTES, YamlProblem, parse

    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)
        return parse(content)
    except OSError as error:
        findings.append(Finding("error", (), f"{file} cannot be read: {error.strerror}"))
    except YamlProblem as error:
        text = f"{error.problem}; {file}:{error.line}:{error.column}"
        findings.append(Finding("error", (), text))
    return None


def read_mcp_file(file: Path, named: bool, settings_servers: set[str]) -> FileLayers:
    """Read the servers of `mcp.file`; one named explicitly must exist."""
    result = FileLayers()
    if not os.path.lexists(file):
        if named:
            result.findings.append(Finding("warning", ("mcp", "file"), f"{file} does not exist"))
        return result
    document = load_document(file, result.findings)
    if document is None:
        return result
    result.read.append(file)
    servers = document.data.get("servers")
    for name in document.data:
        if name != "servers":
            where = Origin("file", str(file), document.lines.get((name,)))
            result.findings.append(
                Finding("error", ("mcp_servers",), f"unknown key {name!r} (known: servers)", where)
            )
    if servers is None:
        return result
    lines = {
        ("mcp_servers", *path[1:]): line for path, line in document.lines.items() if path[0] == "servers"
    }
    layer, findings = flatten({"mcp_servers": _without_blanks(servers)}, lines, "file", str(file))
    for name in sorted({path[1] for path in layer if len(path) > 1} & settings_servers):
        where = Origin("file", str(file), lines.get(("mcp_servers", name)))
        result.findings.append(
            Finding("error", ("mcp_servers", name), "is also in the settings file; keep one", where)
        )
    result.layers.append(layer)
    result.findings += findings
    return result


def _without_blanks(servers: object) -> object:
    """Drop the blank `command`, `url` … that the file's own template writes."""
    if not isinstance(servers, dict):
        return servers
    cleaned: dict[str, object] = {}
    for name, entry in cast("dict[str, object]", servers).items():
        filled: object = entry
        if isinstance(entry, dict):
            filled = {k: v for k, v in cast("dict[str, object]", entry).items() if v != ""}
        cleaned[name] = filled
    return cleaned


def read_dotenv(file: Path, findings: list[Finding], *, named: bool) -> tuple[dict[str, str], dict[str, int]]:
    """Return the variables of a `.env` file and their lines; nothing is put into the environment."""
    if not named and not os.path.lexists(file):
        return {}, {}
    try:
        from bowerbird.config.yaml_text import LARGEST_FILE_BYTES

        text = file.read_bytes()[: LARGEST_FILE_BYTES + 1].decode("utf-8-sig")
    except OSError as error:
        findings.append(Finding("error", (), f"{file} cannot be read: {error.strerror}"))
        return {}, {}
    except UnicodeDecodeError:
        findings.append(Finding("error", (), f"{file} is not UTF-8"))
        return {}, {}
    from dotenv.parser import parse_stream

    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    for binding in parse_stream(StringIO(text)):
        if binding.error:
            what = f"line {binding.original.line} is not NAME=value; {file}:{binding.original.line}"
            findings.append(Finding("error", (), what))
        elif binding.key is not None and binding.value is not None:
            values[binding.key] = binding.value
            lines[binding.key] = binding.original.line
    return values, lines


def read_secret_file(base: Path, home: Path, name: str) -> str:
    """Return the text of a secret's file without one trailing newline."""
    file = base / (home / name[2:] if name.startswith("~/") else Path(name))
    text = file.read_text(encoding="utf-8")
    return text.removesuffix("\n").removesuffix("\r")


def open_to_others(file: Path) -> Finding | None:
    """Return a warning when others than the owner may read `file`."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return None
    if not mode & (stat.S_IRGRP | stat.S_IROTH):
        return None
    return Finding("warning", (), f"{file} holds secrets and others can read it; run: chmod 600 {file}")
