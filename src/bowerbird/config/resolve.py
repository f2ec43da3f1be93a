"""Merged leaves into a `Settings` value, with every problem of a load at once (CF-11).

Here, pure: conversion, validation, path resolution, findings. Not here: reading sources.
"""

import os.path
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any

import msgspec
from pydantic import ValidationError

from bowerbird.config.checks import check, owner_enabled
from bowerbird.config.fields import Section
from bowerbird.config.keys import KeyInfo, Path, canonical, find, walk
from bowerbird.config.layers import DEFAULT, EMPTY, Finding, Leaf, Missing, Origin, below, nest
from bowerbird.config.tree import Settings
from bowerbird.config.values import NOT_SET, Wrong, convert, shown

_NO_KEYS: Mapping[str, Any] = {}


class Resolved(msgspec.Struct, frozen=True):
    """Settings that could be made, and what was found on the way.

    A key with an error holds its default here; `settings` may be used only when no
    finding is an error.
    """

    settings: Settings
    findings: tuple[Finding, ...]
    leaves: Mapping[Path, Leaf]


class Bases(msgspec.Struct, frozen=True):
    """Where relative paths start.

    Attributes:
        file: those of a settings file, of the `.env` beside it, and defaults.
        here: those of the command line and the environment: the command's directory.
        home: what `~` stands for.
    """

    file: FilePath
    here: FilePath
    home: FilePath

    def absolute(self, text: str, origin: Origin) -> str:
        """Return a path absolute.

        Example:
            >>> Bases(FilePath("/etc/b"), FilePath("/srv"), FilePath("/root")).absolute("data", DEFAULT)
            '/etc/b/data'
        """
        if text == "~" or text.startswith("~/"):
            return str(self.home / text[2:])
        return os.path.normpath((self.here if origin.kind in ("flag", "environment") else self.file) / text)


def resolve(
    leaves: Mapping[Path, Leaf], missing: Iterable[Missing], *, bases: Bases, command: bool
) -> Resolved:
    """Return settings from merged, expanded leaves.

    Args:
        leaves: what sources set. missing: values that name undefined variables.
        bases: where relative paths start.
        command: see `checks.check`.
    """
    findings: list[Finding] = []
    typed = _convert_all(leaves, findings)
    placed = _with_paths(typed, bases)
    settings = _validated(placed, findings)
    bad = {finding.path for finding in findings if finding.severity == "error"}
    missing = list(missing)
    findings += [_missing(item, settings) for item in missing]
    lacking = bad | {item.path for item in missing}
    # A check about a key that is known to be wrong or missing would only repeat it.
    findings += [
        _with_origin(finding, typed)
        for finding in check(settings, command=command)
        if not any(path[: len(finding.path)] == finding.path for path in lacking)
    ]
    return Resolved(settings, tuple(findings), typed)


def _convert_all(leaves: Mapping[Path, Leaf], findings: list[Finding]) -> dict[Path, Leaf]:
    typed: dict[Path, Leaf] = {}
    for path, leaf in leaves.items():
        info = find(path)
        if leaf.value is EMPTY or not isinstance(info, KeyInfo):
            typed[path] = leaf
            continue
        try:
            value = convert(info, leaf.value, from_text=leaf.origin.kind != "file")
        except Wrong as error:
            findings.append(_wrong(path, info, str(error), leaf))
            continue
        if value is not NOT_SET:
            typed[path] = msgspec.structs.replace(leaf, value=value)
    return typed


def _wrong(path: Path, info: KeyInfo | None, what: str, leaf: Leaf) -> Finding:
    if info is None:
        return Finding("error", path, what, leaf.origin)
    got = shown(info, leaf.value)
    allowed = f"{info.allowed}; " if info.allowed else ""
    return Finding("error", path, f"{what} ({allowed}got {got})", leaf.origin)


def _with_paths(typed: Mapping[Path, Leaf], bases: Bases) -> dict[Path, Leaf]:
    """Make path settings absolute, defaults too."""
    placed = dict(typed)
    for info in walk():
        if info.base == "file" and "*" not in info.path and info.default and info.path not in placed:
            placed[info.path] = Leaf(info.default, DEFAULT)
    for path, leaf in placed.items():
        info = find(path)
        if (isinstance(info, KeyInfo) and info.base == "file") or (
            isinstance(info, KeyInfo) and info.base == "workspace" and str(leaf.value).startswith("~")
        ):
            placed[path] = msgspec.structs.replace(leaf, value=_absolute(leaf.value, bases, leaf.origin))
    return placed


def _absolute(value: Any, bases: Bases, origin: Origin) -> Any:
    return bases.absolute(value, origin) if isinstance(value, str) else value


def _validated(placed: dict[Path, Leaf], findings: list[Finding]) -> Settings:
    """Validate, and again without each bad key, until a tree stands: so all errors are found."""
    try:
        return _tree(nest(placed))
    except ValidationError:
        pass  # said below, with the place of each
    while True:
        try:
            return Settings.model_validate({**dict.fromkeys(Settings.model_fields, _NO_KEYS), **nest(placed)})
        except ValidationError as error:
            dropped = False
            for problem in error.errors(include_url=False, include_context=False):
                path = _path_of(problem["loc"])
                dropped = _drop(placed, path, problem["msg"], problem["type"], findings) or dropped
            if not dropped:
                raise


def _tree(given: Mapping[str, Any]) -> Settings:
    """Return the tree of what is set: a validator is built for each section that has a key, and for no other.

    Most loads set a few sections of some forty; building validators is most of what a load takes.

    Raises:
        ValidationError: its places do not name the section.
    """
    values: dict[str, Any] = {}
    for name, value in given.items():
        kind = Settings.model_fields[name].annotation if name in Settings.model_fields else None
        if not (isinstance(kind, type) and issubclass(kind, Section)):
            return Settings.model_validate({**dict.fromkeys(Settings.model_fields, _NO_KEYS), **given})
        values[name] = kind.model_validate(value)
    return Settings.model_construct(**values)


def _path_of(loc: tuple[int | str, ...]) -> Path:
    """Return the longest beginning of pydantic's location that names a key or section."""
    path: Path = ()
    for part in loc:
        longer = canonical((*path, str(part)))
        if isinstance(find(path), KeyInfo) or find(longer) is None:
            break
        path = longer
    return path


def _drop(placed: dict[Path, Leaf], path: Path, message: str, kind: str, findings: list[Finding]) -> bool:
    info = find(path)
    leaf = placed.pop(path, None)
    if leaf is not None:
        text = _message(message, kind)
        findings.append(_wrong(path, info if isinstance(info, KeyInfo) else None, text, leaf))
        return True
    # A required key of an entry is absent: the entry goes, and is reported once.
    owner = next((path[:n] for n in range(len(path) - 1, 0, -1) if below(placed, path[:n])), ())
    inside = below(placed, owner)
    if not owner or not inside:
        return False
    origin = placed[inside[0]].origin
    for inner in inside:
        del placed[inner]
    findings.append(Finding("error", path, "is missing; it has no default", origin))
    return True


def _message(message: str, kind: str) -> str:
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    if kind in ("greater_than_equal", "less_than_equal"):
        return "is out of range"
    if kind in ("string_pattern_mismatch", "string_too_short"):
        return "must not be blank"
    if kind == "literal_error":
        return "is not one of the permitted values"
    return message[:1].lower() + message[1:]


def _missing(item: Missing, settings: Settings) -> Finding:
    if owner_enabled(item.path, settings):
        return Finding("error", item.path, f"the variable {item.variable} is not defined", item.origin)
    text = f"not set: the variable {item.variable} is not defined"
    return Finding("note", item.path, text, item.origin)


def _with_origin(finding: Finding, leaves: Mapping[Path, Leaf]) -> Finding:
    """Say where the key of a cross-check, or the first key of its section, was set."""
    for path in (finding.path, finding.path[:-1]):
        inside = below(leaves, path) if path else []
        if inside:
            return msgspec.structs.replace(finding, origin=leaves[inside[0]].origin)
    return finding
