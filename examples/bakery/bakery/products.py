"""The price list."""

import csv
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path


@dataclass(frozen=True)
class Product:
    """Something the bakery sells; the price is for one piece."""

    name: str
    kind: str
    price: Decimal


class UnknownProduct(Exception):
    """An order names a product that is not on the price list."""


def load_products(path: Path) -> dict[str, Product]:
    """Return the price list by product name."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {row["product"]: Product(row["product"], row["kind"], Decimal(row["price"])) for row in rows}


def find_product(products: dict[str, Product], name: str) -> Product:
    """Return the product called `name`, whatever the case."""
    for product in products.values():
        if product.name.lower() == name.strip().lower():
            return product
    raise UnknownProduct(f"{name!r} is not on the price list; it has {', '.join(sorted(products))}")
