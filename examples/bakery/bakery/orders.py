"""Orders: one line of the order book, and reading the book."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

PAYMENTS = ("card", "cash", "invoice")


class BadOrder(Exception):
    """A line of the order book cannot be understood."""


@dataclass(frozen=True)
class Order:
    """So many pieces of one product for one customer."""

    number: int
    ordered_at: datetime
    pickup: date
    customer: str
    product: str
    quantity: int
    payment: str
    delivery: bool = False


def parse_order(row: dict[str, str]) -> Order:
    """Make an order from a row of the CSV file."""
    try:
        order = Order(
            number=int(row["order"]),
            ordered_at=datetime.fromisoformat(row["ordered_at"]),
            pickup=date.fromisoformat(row["pickup"]),
            customer=row["customer"].strip(),
            product=row["product"].strip(),
            quantity=int(row["quantity"]),
            payment=row["payment"],
            delivery=row["delivery"] == "yes",
        )
    except (KeyError, ValueError) as error:
        raise BadOrder(f"order {row.get('order', '?')}: {error}") from error
    if order.quantity < 1:
        raise BadOrder(f"order {order.number}: quantity is {order.quantity}")
    if order.payment not in PAYMENTS:
        raise BadOrder(
            f"order {order.number}: payment is {order.payment!r}; use one of {', '.join(PAYMENTS)}"
        )
    return order


def load_orders(path: Path) -> list[Order]:
    """Read the order book in its order."""
    with path.open(newline="", encoding="utf-8") as file:
        return [parse_order(row) for row in csv.DictReader(file)]


def orders_for(orders: Iterable[Order], day: date) -> list[Order]:
    """Return the orders to be picked up on `day`, by number."""
    return sorted((o for o in orders if o.pickup == day), key=lambda o: o.number)
