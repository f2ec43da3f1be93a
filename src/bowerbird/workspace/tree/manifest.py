"""The manifest of a branch: what its layers are, where it came from (WS-4).

Here: the record, its file, setting a broken one aside and rebuilding it from the directories.
Not here: the content of layers, bases, landings.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from bowerbird.core.timestamps import now_iso, to_iso
from bowerbird.workspace.tree import presence

VERSION = 1


class LayerRecord(msgspec.Struct, frozen=True):
    """One frozen layer.

    Attributes:
        n: its number and directory name.
        snapshot, turn: ids, None for a layer frozen by a mark.
        paths, bytes: how much it overrides.
    """

    n: int
    snapshot: str | None = None
    turn: str | None = None
    paths: int = 0
    bytes: int = 0
    frozen_at: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the record as it is written."""
        return msgspec.structs.asdict(self)


class Manifest(msgspec.Struct, frozen=True):
    """The record of a branch; `extra` keeps keys of other writers untouched."""

    id: str
    v: int = VERSION
    name: str | None = None
    workspace: str | None = None
    parent: Mapping[str, str] | None = None
    policy: str = "review"
    hide: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    layers: tuple[LayerRecord, ...] = ()
    open: int = 1
    merged: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    created_at: str = ""
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        """Return the record as it is written."""
        return {
            "v": self.v,
            "id": self.id,
            "name": self.name,
            "workspace": self.workspace,
            "parent": dict(self.parent) if self.parent is not None else None,
            "policy": self.policy,
            "hide": list(self.hide),
            "private": list(self.private),
            "layers": [layer.to_json() for layer in self.layers],
            "open": self.open,
            "merged": dict(self.merged),
            "created_at": self.created_at,
        } | dict(self.extra)


def manifest_from_json(data: object) -> Manifest:
    """Read the record; raises ValueError, KeyError or TypeError when it is not one."""
    if not isinstance(data, dict):
        raise TypeError("a manifest is an object")
    row = cast("dict[str, Any]", data)
    known = set(Manifest.__struct_fields__) - {"extra"}
    layers = tuple(LayerRecord(**layer) for layer in row["layers"])
    numbers = [layer.n for layer in layers]
    if row["v"] != VERSION or numbers != sorted(set(numbers)) or not isinstance(row["open"], int):
        raise ValueError("not a manifest of this version")
    values: dict[str, Any] = {key: value for key, value in row.items() if key in known}
    values |= {"layers": layers, "hide": tuple(row["hide"]), "private": tuple(row["private"])}
    return Manifest(**values, extra={key: value for key, value in row.items() if key not in known})


class ManifestFile:
    """`manifest.json` of one branch directory.

    Args:
        directory: `…/branches/<id>`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "manifest.json"
        self._previous = directory / "manifest.previous.json"
        self._sign: tuple[int, int, int] | None = None
        self._value: Manifest | None = None

    @property
    def value(self) -> Manifest:
        """The record as last read or written here."""
        return self._value if self._value is not None else self.load()

    @property
    def damaged(self) -> bool:
        """Whether a broken manifest of this branch was set aside."""
        return next(self.directory.glob("manifest.json.corrupt-*"), None) is not None

    def changed(self) -> bool:
        """Tell whether another process wrote the file since it was read here; one stat."""
        try:
            seen = self.path.stat()
        except FileNotFoundError:
            return False
        return (seen.st_ino, seen.st_mtime_ns, seen.st_size) != self._sign

    def load(self) -> Manifest:
        """Read the file; a broken one is set aside as `manifest.json.corrupt-<time>`.

        A seal that a kill cut between renaming the layer and writing the manifest is
        completed in the returned value.
        """
        try:
            seen = self.path.stat()
            self._sign = (seen.st_ino, seen.st_mtime_ns, seen.st_size)
            value = manifest_from_json(json.loads(self.path.read_bytes()))
        except FileNotFoundError:
            value = self._rebuild()
        except (ValueError, KeyError, TypeError):
            aside = f"{self.path.name}.corrupt-{now_iso().replace(':', '')}"
            self.path.rename(self.path.with_name(aside))
            value = self._rebuild()
        self._value = self._completed(value)
        return self._value

    def save(self, value: Manifest) -> Manifest:
        """Replace the file: temporary file, fsync, rename."""
        temporary = self.path.with_name("manifest.json.tmp")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            data = memoryview(json.dumps(value.to_json(), ensure_ascii=True).encode())
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
            seen = os.fstat(fd)
        finally:
            os.close(fd)
        self._keep_previous()
        temporary.rename(self.path)
        if not self._previous.exists():
            # A copy, not a link: what harms one file's bytes must not harm the other's.
            self._previous.write_text(json.dumps(value.to_json()))
        self._sign = (seen.st_ino, seen.st_mtime_ns, seen.st_size)
        self._value = value
        return value

    def update(self, change: Callable[[Manifest], Manifest] | None = None, **values: Any) -> Manifest:
        """Save the present record with `values` replaced (or as `change` returns it)."""
        present = change(self.value) if change is not None else self.value
        return self.save(msgspec.structs.replace(present, **values))

    def _keep_previous(self) -> None:
        # The record's origin (workspace, parent, policy) cannot be read from directories; the
        # replaced file is kept one step long so that a rebuilt manifest does not lose it.
        spare = self._previous.with_name("manifest.previous.tmp")
        spare.unlink(missing_ok=True)
        try:
            spare.hardlink_to(self.path)
        except FileNotFoundError:
            return
        spare.rename(self._previous)

    def _rebuild(self) -> Manifest:
        """Make a manifest from the directories, with the previous one's origin if readable."""
        try:
            old = manifest_from_json(json.loads(self._previous.read_bytes()))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            old = Manifest(id=self.directory.name, created_at=now_iso())
        known = {layer.n: layer for layer in old.layers}
        found = sorted(int(p.name) for p in self._layer_directories())
        last = max([0, *found])
        open_number = old.open if old.open > last else last + 1
        layers = tuple(known.get(n) or self._layer_record(n) for n in found)
        value = msgspec.structs.replace(old, id=self.directory.name, layers=layers, open=open_number)
        return self.save(value)

    def _completed(self, value: Manifest) -> Manifest:
        numbers = {layer.n for layer in value.layers}
        if value.open in numbers or not presence.is_directory(self.directory / "layers" / str(value.open)):
            return value
        layers = (*value.layers, self._layer_record(value.open))
        return msgspec.structs.replace(value, layers=layers, open=value.open + 1)

    def _layer_record(self, n: int) -> LayerRecord:
        at = (self.directory / "layers" / str(n)).stat().st_mtime
        from datetime import UTC, datetime

        return LayerRecord(n, frozen_at=to_iso(datetime.fromtimestamp(at, UTC)))

    def _layer_directories(self) -> list[Path]:
        layers = self.directory / "layers"
        try:
            names = set(os.listdir(layers))
        except FileNotFoundError:
            return []
        # A layer with a `.kept` mark is needed by older snapshots or forks, not by the view.
        own = [name for name in names if name.isdecimal() and f"{name}.kept" not in names]
        return [layers / name for name in own if presence.is_directory(layers / name)]
