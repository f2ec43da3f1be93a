"""Reading the order book."""

import unittest
from datetime import date

from bakery.orders import BadOrder, load_orders, orders_for, parse_order
from bakery.products import find_product, load_products
from bakery.settings import load_settings

ROW = {
    "order": "7", "ordered_at": "2026-03-12 09:00", "pickup": "2026-03-14", "customer": " Ada Lind ",
    "product": "Poppy roll", "quantity": "12", "payment": "cash", "delivery": "no",
}  # fmt: skip


class Orders(unittest.TestCase):
    def test_a_row_becomes_an_order(self):
        order = parse_order(ROW)
        self.assertEqual((order.number, order.customer, order.quantity), (7, "Ada Lind", 12))
        self.assertFalse(order.delivery)

    def test_a_row_that_makes_no_sense_is_refused(self):
        for wrong in ({"quantity": "0"}, {"quantity": "many"}, {"pickup": "14.3."}, {"payment": "shells"}):
            with self.assertRaises(BadOrder):
                parse_order(ROW | wrong)

    def test_every_order_in_the_book_is_on_the_price_list(self):
        settings = load_settings()
        products = load_products(settings.data["products"])
        orders = load_orders(settings.data["orders"])
        self.assertGreater(len(orders), 300)
        for order in orders:
            find_product(products, order.product)

    def test_orders_of_a_day_come_by_number(self):
        day = date(2026, 3, 14)
        orders = [parse_order(ROW | {"order": number}) for number in ("9", "7")]
        self.assertEqual([o.number for o in orders_for(orders, day)], [7, 9])
