"""Changing single keys of a settings file as a person would: the rest stays as it was written (UI-83).

Here: text in, text out, with comments and order kept; putting that text in the file's place. Not here: which
keys may be changed and whether the result is valid (`app/settings/desk.py`).
"""

import os
import re
import stat
from collections.abc import Collection, Mapping
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any, cast

from bowerbird.config.keys import Path as KeyPath
from bowerbird.config.yaml_text import parse
from bowerbird.core.errors import InvalidArgument

WIDTH = 4096  # lines of the user are not broken anew


def literal(value: Any) -> Any:
    """Return a value as a settings file holds it: `${` of a text begins no variable.

    Example:
        >>> literal(["${HOME}", 1])
        ['$${HOME}', 1]
    """
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [literal(item) for item in cast("list[Any]", value)]
    return value


def edited(content: bytes, values: Mapping[KeyPath, Any], removed: Collection[KeyPath] = ()) -> bytes:
    """Return the text of a settings file with these keys set and those removed.

    Raises:
        YamlProblem: the text is no settings file.
        InvalidArgument: it cannot be changed without changing something else, say below an alias.

    Example:
        >>> edited(b"agent:\\n  max_turns: 5  # few\\n", {("agent", "max_turns"): 7}).decode()
        'agent:\\n  max_turns: 7  # few\\n'
    """
    wanted = _own(parse(content).data)
    for path in removed:
        _remove(wanted, path)
    for path, value in values.items():
        _put(wanted, path, value)
    text = _round_trip(content.decode("utf-8-sig"), values, removed)
    if not _same(parse(text.encode()).data, wanted):
        raise InvalidArgument(
            "the settings file is written in a way that cannot be changed here; edit it by hand"
        )
    return text.encode()


def _round_trip(text: str, values: Mapping[KeyPath, Any], removed: Collection[KeyPath]) -> str:
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = WIDTH
    data: Any = yaml.load(text)  # pyright: ignore[reportUnknownMemberType] - untyped package
    lead = text if data is None else ""  # nothing but comments: they stay above what is added
    if data is None:
        data = {}
    for path in removed:
        _remove(data, path)
    for path, value in values.items():
        _put(data, path, value)
    out = StringIO()
    if data or not lead:
        yaml.dump(data, out)  # pyright: ignore[reportUnknownMemberType] - untyped package
    return lead + ("\n" if lead and not lead.endswith("\n") else "") + out.getvalue()


def _put(data: Any, path: KeyPath, value: Any) -> None:
    for name in path[:-1]:
        inner = data.get(name)
        if not isinstance(inner, dict):
            inner = data[name] = {}
        data = cast("dict[str, Any]", inner)
    data[path[-1]] = value


def _remove(data: Any, path: KeyPath) -> None:
    for name in path[:-1]:
        if not isinstance(data, dict):
            return
        data = cast("dict[str, Any]", data).get(name)
    if isinstance(data, dict):
        cast("dict[str, Any]", data).pop(path[-1], None)


def _own(value: Any) -> Any:
    """Return a copy in which nothing is shared: what an alias names is a value of its own."""
    if isinstance(value, dict):
        return {name: _own(item) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_own(item) for item in cast("list[Any]", value)]
    return value


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same, types included: 1, 1.0 and true are three things in settings."""
    if isinstance(one, dict) and isinstance(other, dict):
        ours, theirs = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return ours.keys() == theirs.keys() and all(_same(ours[name], theirs[name]) for name in ours)
    if isinstance(one, list) and isinstance(other, list):
        pair = cast("list[Any]", one), cast("list[Any]", other)
        return len(pair[0]) == len(pair[1]) and all(_same(a, b) for a, b in zip(*pair, strict=True))
    return _leaf(one) == _leaf(other)


def _leaf(value: Any) -> tuple[str, str]:
    return type(value).__name__, repr(value)


def put_beside(file: Path, content: bytes) -> Path:
    """Write a text beside a settings file, ready to take its place; readable by its owner alone at first.

    What a process that was killed had written there goes: it may hold keys. So only one at a time may do this
    (`core/processes/alone.py`).

    Raises:
        OSError: it cannot be written; nothing is left.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    ours = re.compile(rf"\.{re.escape(file.name)}\.[0-9a-f]+\.new")
    for left in [entry for entry in file.parent.iterdir() if ours.fullmatch(entry.name)]:
        left.unlink(missing_ok=True)
    new = file.with_name(f".{file.name}.{os.urandom(8).hex()}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError:
        new.unlink(missing_ok=True)
        raise
    return new


def take_place(new: Path, file: Path) -> None:
    """Let what `put_beside` wrote be the settings file; it keeps the mode of the one that was there.

    A link to the file stays one.
    """
    if file.is_symlink():
        beside = put_beside(file.resolve(), new.read_bytes())
        new.unlink()
        new, file = beside, file.resolve()
    with suppress(FileNotFoundError):
        new.chmod(stat.S_IMODE(file.stat().st_mode))
    new.replace(file)
