"""What has to be baked, what goes into it, and what is missing in the store room."""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from bakery.orders import Order

# Orders tell only what was ordered ahead; so many pieces more are baked for the counter.
COUNTER_SHARE = 0.25


def pieces_to_bake(orders: Iterable[Order]) -> Counter[str]:
    """Return pieces by product: what was ordered, and a share more for the counter."""
    ordered: Counter[str] = Counter()
    for order in orders:
        ordered[order.product] += order.quantity
    return Counter({product: round(pieces * (1 + COUNTER_SHARE)) for product, pieces in ordered.items()})


def load_recipes(path: Path) -> dict[str, dict[str, int]]:
    """Return grams of each ingredient for one piece, by product."""
    recipes: dict[str, dict[str, int]] = defaultdict(dict)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            recipes[row["product"]][row["ingredient"]] = int(row["grams"])
    return dict(recipes)


def load_stock(path: Path) -> dict[str, int]:
    """Return grams in the store room, by ingredient."""
    with path.open(newline="", encoding="utf-8") as file:
        return {row["ingredient"]: int(row["grams"]) for row in csv.DictReader(file)}


def ingredients_needed(pieces: Counter[str], recipes: dict[str, dict[str, int]]) -> Counter[str]:
    """Return grams of each ingredient for all `pieces`."""
    needed: Counter[str] = Counter()
    for product, count in pieces.items():
        for ingredient, grams in recipes.get(product, {}).items():
            needed[ingredient] += grams * count
    return needed


def missing(needed: Counter[str], stock: dict[str, int]) -> dict[str, int]:
    """Return the grams that have to be bought, by ingredient."""
    return {name: grams - stock.get(name, 0) for name, grams in needed.items() if grams > stock.get(name, 0)}
