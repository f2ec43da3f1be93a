"""What orders cost."""

import unittest
from datetime import date, datetime
from decimal import Decimal

from bakery import prices
from bakery.orders import Order
from bakery.products import Product, UnknownProduct, find_product

ROLL = Product("Poppy roll", "bread", Decimal("0.95"))


def order(quantity: int, delivery: bool = False) -> Order:
    ordered_at = datetime(2026, 3, 12, 9, 0)
    return Order(1, ordered_at, date(2026, 3, 14), "Fern Café", "Poppy roll", quantity, "card", delivery)


class Prices(unittest.TestCase):
    def test_a_small_order_costs_the_list_price(self):
        self.assertEqual(prices.goods_total(order(2), ROLL), Decimal("1.90"))

    def test_the_bulk_discount_begins_at_the_bulk_quantity(self):
        just_below = prices.goods_total(order(prices.BULK_QUANTITY - 1), ROLL)
        self.assertEqual(just_below, ROLL.price * (prices.BULK_QUANTITY - 1))
        self.assertLess(
            prices.goods_total(order(prices.BULK_QUANTITY), ROLL), ROLL.price * prices.BULK_QUANTITY
        )

    def test_delivery_is_free_for_large_orders_only(self):
        brought = order(4, delivery=True)
        self.assertEqual(prices.delivery_cost(brought, Decimal("3.80")), prices.DELIVERY_FEE)
        self.assertEqual(prices.delivery_cost(brought, prices.FREE_DELIVERY_FROM), 0)
        self.assertEqual(prices.delivery_cost(order(4), Decimal("3.80")), 0)

    def test_products_are_found_whatever_the_case(self):
        self.assertIs(find_product({ROLL.name: ROLL}, " poppy ROLL"), ROLL)
        with self.assertRaises(UnknownProduct):
            find_product({ROLL.name: ROLL}, "Bagel")
