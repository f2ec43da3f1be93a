"""What `config show`, `explain` and `check` say (CF-82 … CF-84). Pure: data in, data out.

Here: rows and texts. Not here: how a terminal draws them, exit codes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec
from pydantic import BaseModel

from bowerbird.config.environment import PROJECT_NAMES
from bowerbird.config.fields import MASK, Secret, Url
from bowerbird.config.keys import PREFIX, KeyInfo, Node, Path, canonical, find, nearest, tree, walk
from bowerbird.config.layers import DEFAULT, Origin
from bowerbird.config.load import Loaded
from bowerbird.core.errors import InvalidArgument


class Row(msgspec.Struct, frozen=True):
    """One key as it stands: its value, masked where it is secret, and who set it."""

    key: str
    value: Any
    origin: Origin
    hidden: tuple[Origin, ...]
    changed: bool
    problem: str | None = None

    def to_data(self, *, origin: bool = False) -> dict[str, Any]:
        """Return the row for `--json`."""
        data: dict[str, Any] = {"key": self.key, "value": self.value}
        if origin:
            data["origin"] = str(self.origin)
            data["hides"] = [str(hidden) for hidden in self.hidden]
        if self.problem:
            data["problem"] = self.problem
        return data


def rows(loaded: Loaded, key: str | None = None, *, every: bool = False) -> list[Row]:
    """Return the keys at or under `key` that differ from their defaults, or every one.

    Raises InvalidArgument for an unknown key, with the nearest name.
    """
    prefix = canonical(tuple(key.split("."))) if key else ()
    if key:
        _known(key)
    listed: list[Row] = []
    for path, info in _concrete(loaded):
        if path[: len(prefix)] != prefix:
            continue
        row = _row(loaded, path, info)
        if every or row.changed or row.problem or (key and path == prefix):
            listed.append(row)
    return listed


def _concrete(loaded: Loaded) -> Iterator[tuple[Path, KeyInfo]]:
    """Yield every key that has a value, with the real names of entries of open mappings."""

    def visit(node: Node, path: Path, value: Any) -> Iterator[tuple[Path, KeyInfo]]:
        names = list(node.children)
        if node.other is not None:
            names += [name for name in _entries(value) if name not in node.children]
        for name in names:
            below = node.child(name)
            if isinstance(below, KeyInfo):
                yield (*path, name), below
            elif below is not None:
                yield from visit(below, (*path, name), _get(value, name))

    yield from visit(tree(), (), loaded.settings)


def _entries(value: Any) -> list[str]:
    if isinstance(value, BaseModel):
        return list((value.__pydantic_extra__ or {}).keys())
    return list(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else []


def _get(value: Any, name: str) -> Any:
    if isinstance(value, BaseModel):
        for attribute, declared in type(value).model_fields.items():
            if name in (attribute, declared.alias):
                return getattr(value, attribute)
        return (value.__pydantic_extra__ or {}).get(name)
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None


def _row(loaded: Loaded, path: Path, info: KeyInfo) -> Row:
    value: Any = loaded.settings
    for name in path:
        value = _get(value, name)
    leaf = loaded.leaves.get(path)  # holds a path as written; `value` is absolute
    problem = loaded.bad.get(path)
    return Row(
        key=".".join(path),
        value=MASK if problem and info.secret else plain(value, info),
        origin=leaf.origin if leaf else DEFAULT,
        hidden=leaf.hidden if leaf else (),
        changed=leaf is not None and leaf.value != info.default and plain(value) != plain(info.default),
        problem=problem,
    )


def plain(value: Any, info: KeyInfo | None = None) -> Any:
    """Return `value` as JSON data, secrets as `********` or `not set`."""
    if isinstance(value, Url):
        return str(value)
    if isinstance(value, Secret) or (info is not None and info.secret):
        return MASK if value else "not set"
    if isinstance(value, BaseModel):
        fields = cast("Iterator[tuple[str, Any]]", iter(value))
        return {name: plain(item) for name, item in fields}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in cast("Mapping[str, Any]", value).items()}
    return value


def _known(key: str) -> None:
    path = tuple(key.split("."))
    here: Node | KeyInfo | None = tree()
    for depth, name in enumerate(path):
        siblings = list(here.children) if isinstance(here, Node) else []
        here = here.child(name) if isinstance(here, Node) else None
        if here is None:
            near = nearest(name, siblings)
            same = [info.name for info in walk() if info.path[-1] == path[-1]]
            guess = ".".join((*path[:depth], near)) if near else (same[0] if same else _like(path[-1]))
            hint = f"; did you mean {guess}?" if guess else ""
            raise InvalidArgument(f"no setting is named {key}{hint}")


def _like(name: str) -> str | None:
    """Return the setting, of whichever section, whose own name is nearest to a mistyped one."""
    near = nearest(name, [info.path[-1] for info in walk()])
    return next((info.name for info in walk() if info.path[-1] == near), None)


def explain(key: str) -> dict[str, Any]:
    """Return what is known of `key`: meaning, type, unit, default, range, names, when it applies.

    For a section, its keys with their meanings. Raises InvalidArgument for an unknown key.

    Example:
        >>> explain("agent.max_turns")["allowed"]
        'integer 1–10,000'
    """
    _known(key)
    item = find(tuple(key.split(".")))
    if isinstance(item, Node):
        return {"key": key, "meaning": item.meaning, "keys": {i.name: i.meaning for i in walk(item)}}
    assert item is not None  # _known refused it otherwise
    ours = [PREFIX + name for name in item.env if name in PROJECT_NAMES]
    variables = [*item.env, *ours, item.variable.replace("*", "NAME")]
    if item.secret or item.kind == "url":
        variables += [f"{name}_FILE" for name in item.env]
    return {
        "key": item.name,
        "meaning": item.meaning,
        "type": item.kind,
        "unit": item.unit or None,
        "default": plain(item.default, item),
        "allowed": item.allowed,
        "environment": variables,
        "other_names": list(item.other_names),
        "applies": "after a restart" if item.applies == "S" else "from the next turn or connection",
    }


def check_data(loaded: Loaded) -> dict[str, Any]:
    """Return the result of `config check` for `--json`."""
    return {
        "file": str(loaded.file) if loaded.file else None,
        "files": [str(file) for file in loaded.files],
        "errors": list(loaded.errors),
        "warnings": list(loaded.warnings),
        "notes": list(loaded.notes),
    }
