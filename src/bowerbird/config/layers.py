"""Layers of settings and how one is laid over another (CF-1, CF-3).

Here, all pure: a document flattened along the tree, layers merged, `${NAME}` expanded,
and where each value came from. Not here: reading files or the environment, types of values.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from bowerbird.config.absent import why_absent
from bowerbird.config.keys import (
    STRICT_SECTIONS,
    KeyInfo,
    Node,
    Path,
    canonical,
    nearest,
    tree,
    walk,
)

SourceKind = Literal["flag", "environment", ".env", "file", "default"]
_EXPRESSION = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|\$\{")


class Origin(msgspec.Struct, frozen=True):
    """Who set a value: a file and line, a variable, a flag, or nobody (the default)."""

    kind: SourceKind
    label: str = ""
    line: int | None = None

    def __str__(self) -> str:
        if self.kind == "default":
            return "default"
        return self.label if self.line is None else f"{self.label}:{self.line}"


DEFAULT = Origin("default")


class Leaf(msgspec.Struct, frozen=True):
    """A value as its source wrote it; `EMPTY` stands for a mapping without keys."""

    value: Any
    origin: Origin
    hidden: tuple[Origin, ...] = ()


Layer = Mapping[Path, Leaf]


class _Empty:
    def __repr__(self) -> str:
        return "{}"


EMPTY = _Empty()


class Finding(msgspec.Struct, frozen=True):
    """Something to report about a key: `key: problem; source:line`."""

    severity: Literal["error", "warning", "note"]
    path: Path
    text: str
    origin: Origin = DEFAULT

    def __str__(self) -> str:
        name = ".".join(self.path)
        subject = f"{name}: {self.text}" if name else self.text
        return subject if self.origin.kind == "default" else f"{subject}; {self.origin}"


# ---------------------------------------------------------------- flatten


def flatten(
    data: Mapping[str, Any], lines: Mapping[Path, int], kind: SourceKind, label: str, root: Path = ()
) -> tuple[dict[Path, Leaf], list[Finding]]:
    """Return the leaves of `data` along the tree, and findings about keys that are not in it.

    Args:
        data: plain mapping. lines: line of each key. kind, label: where it was read.
        root: where in the tree `data` belongs.

    Example:
        >>> layer, _ = flatten({"agent": {"max_turns": 5}}, {}, "file", "config.yaml")
        >>> layer["agent", "max_turns"].value
        5
    """
    layer: dict[Path, Leaf] = {}
    findings: list[Finding] = []
    start: Node | KeyInfo | None = tree()
    for name in root:
        start = start.child(name) if isinstance(start, Node) else None
    default_line = lines.get(root)

    def visit(value: Any, node: Node | KeyInfo | None, path: Path, written: Path) -> None:
        origin = Origin(kind, label, lines.get(written, default_line))
        absent = why_absent(path)
        if absent is not None:
            findings.append(Finding("error", path, absent, origin))
        elif node is None:
            findings.append(_unknown(path, origin))
        elif isinstance(node, KeyInfo) or value is None:
            other = layer.get(path)
            if other is not None and other.value != value:
                findings.append(
                    Finding("error", path, f"set twice with different values, once as {written[-1]}", origin)
                )
            layer[path] = Leaf(value, origin)
        elif not isinstance(value, dict):
            findings.append(
                Finding("error", path, f"must be a mapping of keys (got {_shape(value)})", origin)
            )
        elif not value:
            layer[path] = Leaf(EMPTY, origin)
        else:
            for name, item in cast("dict[str, Any]", value).items():
                below = canonical((*path, name))
                visit(item, node.child(name), below, (*written, name))

    if data:
        visit(dict(data), start, root, root)
    return layer, findings


def _shape(value: object) -> str:
    names: dict[type, str] = {list: "a list", str: "text", bool: "true or false"}
    return names.get(type(value), "a number")


def _unknown(path: Path, origin: Origin) -> Finding:
    """Report an unknown key; in sections whose typos open a door it is an error."""
    parent: Node | KeyInfo | None = tree()
    for name in path[:-1]:
        parent = parent.child(name) if isinstance(parent, Node) else None
    siblings = [*parent.children, *parent.aliases] if isinstance(parent, Node) else []
    near = nearest(path[-1], siblings)
    strict = path[0] in STRICT_SECTIONS or (len(path) == 1 and near in STRICT_SECTIONS)
    if near is not None:
        hint = f"did you mean {near}?"
    else:
        elsewhere = sorted(info.name for info in walk() if info.path[-1] == path[-1] and len(path) > 1)
        hint = (
            f"did you mean {elsewhere[0]}?" if len(elsewhere) == 1 else f"known here: {', '.join(siblings)}"
        )
    return Finding("error" if strict else "warning", path, f"unknown key ({hint})", origin)


# ---------------------------------------------------------------- merge


def merge(layers: Sequence[Layer]) -> dict[Path, Leaf]:
    """Lay layers over each other, the first lowest.

    Mappings merge by key at every depth; lists and scalars replace; an explicit null
    takes away what lower layers set at or below its key, so the default returns.

    Example:
        >>> low = {("a", "b"): Leaf(1, DEFAULT), ("a", "c"): Leaf(2, DEFAULT)}
        >>> merge([low, {("a", "b"): Leaf(None, DEFAULT)}]).keys()
        dict_keys([('a', 'c')])
    """
    result: dict[Path, Leaf] = {}
    for layer in layers:
        for path, leaf in layer.items():
            if leaf.value is None:
                for lower in [p for p in result if p[: len(path)] == path]:
                    del result[lower]
                continue
            if leaf.value is EMPTY:
                result.setdefault(path, leaf)
                continue
            hidden = result.pop(path, None)
            over = () if hidden is None or hidden.value is EMPTY else (hidden.origin, *hidden.hidden)
            result[path] = msgspec.structs.replace(leaf, hidden=(*leaf.hidden, *over))
    return result


def nest(leaves: Mapping[Path, Leaf]) -> dict[str, Any]:
    """Return the leaves as one nested mapping.

    Example:
        >>> nest({("a", "b"): Leaf(1, DEFAULT)})
        {'a': {'b': 1}}
    """
    result: dict[str, Any] = {}
    for path, leaf in leaves.items():
        here = result
        for name in path[:-1]:
            here = here.setdefault(name, {})
        if leaf.value is EMPTY:
            here.setdefault(path[-1], {})
        else:
            here[path[-1]] = leaf.value
    return result


# ---------------------------------------------------------------- expand


class Missing(msgspec.Struct, frozen=True):
    """A value that names an undefined variable."""

    path: Path
    variable: str
    origin: Origin


def expand(
    leaves: Mapping[Path, Leaf], variables: Mapping[str, str]
) -> tuple[dict[Path, Leaf], list[Missing], list[Finding]]:
    """Replace `${NAME}` in the values that files wrote; keys with an undefined name are left out.

    Example:
        >>> leaf = Leaf("x-${A}-$${B}", Origin("file", "config.yaml", 1))
        >>> expand({("cli", "model"): leaf}, {"A": "${B}"})[0]["cli", "model"].value
        'x-${B}-${B}'
    """
    result: dict[Path, Leaf] = {}
    missing: list[Missing] = []
    findings: list[Finding] = []
    for path, leaf in leaves.items():
        if leaf.origin.kind != "file":
            result[path] = leaf
            continue
        undefined: list[str] = []
        try:
            value = _expanded(leaf.value, variables, undefined)
        except ValueError as error:
            findings.append(Finding("error", path, str(error), leaf.origin))
            continue
        if undefined:
            missing += [Missing(path, name, leaf.origin) for name in dict.fromkeys(undefined)]
        else:
            result[path] = msgspec.structs.replace(leaf, value=value)
    return result, missing, findings


def _expanded(value: Any, variables: Mapping[str, str], undefined: list[str]) -> Any:
    if isinstance(value, str):
        return _expand_text(value, variables, undefined)
    if isinstance(value, list):
        return [_expanded(item, variables, undefined) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {name: _expanded(item, variables, undefined) for name, item in items}
    return value


def _expand_text(text: str, variables: Mapping[str, str], undefined: list[str]) -> str:
    def replaced(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        name, default = match["name"], match["default"]
        if name is None:
            raise ValueError(
                "`${` begins no variable: write ${NAME} or ${NAME:-text}, or $${ for the two characters"
            )
        found = variables.get(name)
        if default is not None:
            return found or default
        if found is None:
            undefined.append(name)
            return ""
        return found

    return _EXPRESSION.sub(replaced, text)


def below(leaves: Iterable[Path], path: Path) -> list[Path]:
    """Return the paths at or under `path`."""
    return [p for p in leaves if p[: len(path)] == path]
