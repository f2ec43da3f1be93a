"""Environment variables and `.env` lines as a layer of settings (CF-6 … CF-8, CF-10).

Here, pure: names and their keys. Not here: `os.environ` or any file; the caller hands
both in.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, cast

import msgspec

from bowerbird.config.absent import why_absent
from bowerbird.config.keys import (
    OTHER_NAMES,
    PREFIX,
    KeyInfo,
    Node,
    Path,
    find,
    nearest,
    short_names,
    tree,
    walk,
)
from bowerbird.config.layers import Finding, Leaf, Origin, flatten
from bowerbird.config.values import Wrong, convert

# A project's own variables of these names must not steer a command run in it.
PROJECT_NAMES = frozenset({"DATABASE_URL", "WORKSPACE_DIR"})


class Variables(msgspec.Struct, frozen=True):
    """Named texts of one source; `lines` are given for a `.env` file."""

    kind: Literal["environment", ".env"]
    values: Mapping[str, str]
    label: str = "environment"
    lines: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])

    def origin(self, name: str) -> Origin:
        """Return where the variable `name` stands."""
        if self.kind == ".env":
            return Origin(".env", f"{name} in {self.label}", self.lines.get(name))
        return Origin("environment", f"{name} in the environment")


def variable_layer(
    source: Variables, *, command: bool, known: Iterable[Path], read_file: Callable[[str], str]
) -> tuple[dict[Path, Leaf], list[Finding]]:
    """Return the layer that the variables of one source make.

    Args:
        source: the variables.
        command: for every command but `serve`: names of `PROJECT_NAMES` are left alone.
        known: paths set by lower layers; entries of open mappings are found there by name.
        read_file: returns the text of a `NAME_FILE`; raises OSError or ValueError.
    """
    layer: dict[Path, Leaf] = {}
    findings: list[Finding] = []
    names = _names(source.values, command, list(known), findings, source)
    for name, (path, is_file) in names.items():
        origin = source.origin(name)
        text = source.values[name]
        target = find(path)
        if is_file:
            plain = name.removesuffix("_FILE")
            if source.values.get(plain, "").strip():
                findings.append(Finding("error", path, f"both {plain} and {name} are set; keep one", origin))
                continue
            try:
                text = read_file(text)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                findings.append(
                    Finding("error", path, f"the file that {name} names cannot be read: {reason}", origin)
                )
                continue
        if isinstance(target, Node):
            _add_mapping(layer, findings, node=target, path=path, text=text, origin=origin)
        elif path not in layer and not _blank_optional(target, text):
            layer[path] = Leaf(text, origin)
    return layer, findings


def _blank_optional(info: KeyInfo | None, text: str) -> bool:
    return info is not None and not text.strip() and info.nullable


def _add_mapping(
    layer: dict[Path, Leaf], findings: list[Finding], *, node: Node, path: Path, text: str, origin: Origin
) -> None:
    """Read a whole section or mapping from JSON."""
    if not text.strip():
        return
    probe = KeyInfo(path, "any", None, node.meaning)
    try:
        value: Any = convert(probe, text, from_text=True)
    except Wrong as error:
        findings.append(Finding("error", path, str(error), origin))
        return
    if not isinstance(value, dict):
        findings.append(Finding("error", path, "must be a JSON object", origin))
        return
    inner, more = flatten(cast("dict[str, Any]", value), {}, origin.kind, origin.label, root=path)
    layer.update({p: leaf for p, leaf in inner.items() if p not in layer})
    findings += more


def _names(
    values: Mapping[str, str], command: bool, known: list[Path], findings: list[Finding], source: Variables
) -> dict[str, tuple[Path, bool]]:
    """Return the variables that set something: long names first, so that they win."""
    short = {PREFIX + n: p for n, p in short_names().items() if n in PROJECT_NAMES}
    short |= {n: p for n, p in short_names().items() if not (command and n in PROJECT_NAMES)}
    found: dict[str, tuple[Path, bool]] = {}
    known_names = {*OTHER_NAMES, *short, *(f"{n}_FILE" for n in short)}
    for name in sorted(n for n in values if n.startswith(PREFIX) and n not in known_names):
        absent = why_absent(tuple(name.removeprefix(PREFIX).lower().split("__")))
        hit = _long_name(name, known)
        if absent is not None:
            findings.append(Finding("error", (), f"{name}: {absent}", source.origin(name)))
        elif hit is None:
            findings.append(Finding("warning", (), _unknown_variable(name), source.origin(name)))
        else:
            found[name] = hit
    for name, path in short.items():
        if name in values:
            found[name] = (path, False)
        if f"{name}_FILE" in values and _may_be_file(find(path)):
            found[f"{name}_FILE"] = (path, True)
    if source.kind == ".env":
        for name in values:
            near = (
                None
                if name in found or name in short_names() or name.startswith(PREFIX)
                else nearest(name, list(short))
            )
            if near is not None:
                findings.append(
                    Finding("warning", (), f"{name} is not read (did you mean {near}?)", source.origin(name))
                )
    return found


def _may_be_file(target: Node | KeyInfo | None) -> bool:
    return isinstance(target, KeyInfo) and (target.secret or target.kind == "url")


def _long_name(name: str, known: list[Path]) -> tuple[Path, bool] | None:
    path = _walk_long(name.removeprefix(PREFIX), known)
    if path is not None:
        return path, False
    if name.endswith("_FILE"):
        path = _walk_long(name.removeprefix(PREFIX).removesuffix("_FILE"), known)
        if path is not None and _may_be_file(find(path)):
            return path, True
    return None


def _walk_long(text: str, known: list[Path]) -> Path | None:
    here: Node | KeyInfo | None = tree()
    path: Path = ()
    for part in text.split("__"):
        if not isinstance(here, Node) or not part:
            return None
        name = part.lower()
        if name not in here.children and name not in here.aliases:
            same = [p[len(path)] for p in known if len(p) > len(path) and p[: len(path)] == path]
            name = next((s for s in same if _folded(s) == _folded(name)), name)
        here = here.child(name)
        name = name if not isinstance(here, KeyInfo) or here.path[-1] == "*" else here.path[-1]
        path = (*path, name)
    return path if here is not None else None


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")


def _unknown_variable(name: str) -> str:
    known = [info.variable for info in walk() if "*" not in info.path] + sorted(OTHER_NAMES)
    near = nearest(name, known)
    return f"{name} is not read" + (f" (did you mean {near}?)" if near else "")
