"""Writes the table of rooms in CONTRIBUTING.md: every package, with the first sentence of its docstring.

Run it after a package was added, moved or described differently: `python scripts/rooms_table.py`. Packages
stand in the order of the import contracts of `pyproject.toml`, those that may import the others first; so do
the folders of a package that has a contract. `tests/docs/test_rooms.py` holds the result current.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "src/bowerbird"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN = "<!-- rooms: written by scripts/rooms_table.py -->"
END = "<!-- end of rooms -->"


def first_sentence(file: Path) -> str:
    """The first sentence of a module's docstring, without the numbers of requirements."""
    doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(doc.split("\n\n")[0].split())
    sentence = re.match(r".*?[.?](?= [A-Z`]|$)", paragraph)
    return re.sub(r" \((?:[A-Z]{1,2}-?[\d, …-]*)+\)", "", sentence[0] if sentence else paragraph)


def contracts() -> dict[str, list[str]]:
    """The order of modules that each `layers` contract gives, by the package they lie in."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [contract["layers"] for contract in table["contracts"] if contract["type"] == "layers"]
    orders = [[name.strip() for row in rows for name in row.split("|")] for rows in layers]
    return {order[0].rpartition(".")[0]: order for order in orders}


def packages(folder: Path, orders: dict[str, list[str]]) -> Iterator[Path]:
    """The packages below a folder, each followed by its own: in the order of the contract, then by name."""
    order = orders.get(".".join(folder.relative_to(HOUSE.parent).parts), [])
    inner = sorted(file.parent for file in folder.glob("*/__init__.py"))
    places = {name.rpartition(".")[2]: place for place, name in enumerate(order)}
    for package in sorted(inner, key=lambda one: places.get(one.name, len(places))):
        yield package
        yield from packages(package, orders)


def rows() -> Iterator[tuple[str, str]]:
    """Each room and what lives there; the modules beside the packages are the library's doors."""
    for name in ("api.py", "testing.py"):
        yield f"`{name}`", first_sentence(HOUSE / name)
    for package in packages(HOUSE, contracts()):
        name = f"`{package.relative_to(HOUSE)}/`"
        yield name if "/" in name[:-2] else f"**{name}**", first_sentence(package / "__init__.py")


def table() -> str:
    """The whole table, as the page has it between its marks."""
    lines = ["| room | what lives there |", "|---|---|", *(f"| {room} | {text} |" for room, text in rows())]
    return "\n".join(lines)


def page(text: str) -> str:
    """A page's text with the table of today between the marks."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"{PAGE.name} lacks the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
