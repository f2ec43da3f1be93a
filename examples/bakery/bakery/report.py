"""Turnover of a month."""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal

from bakery.orders import Order
from bakery.prices import order_total
from bakery.products import Product


def in_month(orders: Iterable[Order], month: str) -> list[Order]:
    """Return the orders picked up in `month`, written `2026-03`."""
    return [order for order in orders if f"{order.pickup:%Y-%m}" == month]


def turnover(orders: Iterable[Order], products: dict[str, Product]) -> dict[str, Decimal]:
    """Return what customers paid, by product, the largest first."""
    totals: dict[str, Decimal] = defaultdict(Decimal)
    for order in orders:
        totals[order.product] += order_total(order, products)
    return dict(sorted(totals.items(), key=lambda item: item[1], reverse=True))


def best_customer(orders: Iterable[Order], products: dict[str, Product]) -> tuple[str, Decimal]:
    """Return who paid most, and how much."""
    totals: dict[str, Decimal] = defaultdict(Decimal)
    for order in orders:
        totals[order.customer] += order_total(order, products)
    return max(totals.items(), key=lambda item: item[1])
