"""Checks of the rooms: no circle between folders of a package, no package with too many files at its root,
and nothing that is put together by assigning attributes afterwards.

Run by `make check`; prints each finding and exits 1 when there is any. Imports count wherever they stand: in
functions and under `TYPE_CHECKING`, too: a reader follows these as well. Modules at a package's own root are
its face and may use every folder below it.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
MOST_AT_ROOT = 25
# Where objects are made of each other, and names that the objects go by which all others share.
COMPOSES = ("bowerbird.app", "bowerbird.api")
SHARED = {"service", "sessions", "application", "maker", "part", "branches", "sandboxes", "live"}


def modules(source: Path) -> dict[str, Path]:
    """Every module below `source` by its dotted name; a package is its `__init__`."""
    found: dict[str, Path] = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(module: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of `known` that a module imports, as an object's home or by name."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                if inner in known or base in known:
                    yield inner if inner in known else base


def crowded(known: dict[str, Path]) -> list[str]:
    """Packages with more modules at their root than a person takes in at a look."""
    counts: dict[Path, int] = defaultdict(int)
    for path in known.values():
        counts[path.parent] += path.name != "__init__.py"
    return [
        f"{folder}: {count} files at its root, at most {MOST_AT_ROOT}"
        for folder, count in sorted(counts.items())
        if count > MOST_AT_ROOT
    ]


def circles(known: dict[str, Path]) -> list[str]:
    """Folders of one package that import each other, directly or around, with an import of each."""
    edges: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for module, path in known.items():
        for other in imports(module, path, known):
            for package in _shared_packages(module, other):
                mine, theirs = (_folder(name, package, known) for name in (module, other))
                if mine and theirs and mine != theirs:
                    edges[package][mine].setdefault(theirs, f"{module} imports {other}")
    return [line for package in sorted(edges) for line in _circles_of(package, edges[package])]


def _shared_packages(module: str, other: str) -> Iterator[str]:
    """The packages that both modules lie in, `bowerbird` itself left to the layers contract."""
    here, there = module.split("."), other.split(".")
    for length in range(2, min(len(here), len(there))):
        if here[:length] != there[:length]:
            return
        yield ".".join(here[:length])


def _folder(module: str, package: str, known: dict[str, Path]) -> str | None:
    """The folder of `package` that a module lies in; None for those at its root."""
    name = f"{package}.{module.removeprefix(package + '.').partition('.')[0]}"
    return name if name in known and known[name].name == "__init__.py" else None


def _circles_of(package: str, edges: dict[str, dict[str, str]]) -> list[str]:
    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for following in edges.get(waiting.pop(), {}):
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
        return seen

    reach = {folder: reached(folder) for folder in edges}
    found: list[str] = []
    for folder, others in sorted(edges.items()):
        for other, why in sorted(others.items()):
            if folder in reach.get(other, ()):
                found.append(f"{package}: {folder.rpartition('.')[2]} ⇄ {other.rpartition('.')[2]}: {why}")
    return found


def assigned(known: dict[str, Path]) -> list[str]:
    """Assignments to attributes of something that is made already: whoever makes it gives it what it needs.

    Looked for in the composition root, and wherever the service, its parts or what they share are named.
    Private values of a module may be changed by it.
    """
    found: list[str] = []
    for module, path in known.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        composes = module.startswith(COMPOSES)
        own = _fields_of_private_values(tree)
        for target in (target for node in ast.walk(tree) for target in _targets(node)):
            owner = _last_name(target.value)
            if owner in ("self", "cls") or target.attr in own:
                continue
            if composes or owner.lstrip("_") in SHARED:
                found.append(f"{path}:{target.lineno}: {ast.unparse(target)} is assigned after construction")
    return found


def _targets(node: ast.AST) -> Iterator[ast.Attribute]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        for each in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(each, ast.Attribute):
                yield each


def _fields_of_private_values(tree: ast.Module) -> set[str]:
    values = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name.startswith("_"))
    fields = (n.target for value in values for n in value.body if isinstance(n, ast.AnnAssign))
    return {field.id for field in fields if isinstance(field, ast.Name)}


def _last_name(owner: ast.expr) -> str:
    return owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")


def main() -> int:
    """Print findings; return the exit code."""
    known = modules(SOURCE)
    findings = [*crowded(known), *circles(known), *assigned(known)]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
