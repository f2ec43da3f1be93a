"""Opening days and lead times."""

import unittest
from datetime import date, datetime
from decimal import Decimal

from bakery.orders import Order
from bakery.pickup import TooLate, check_pickup, is_open, next_open_day
from bakery.products import Product
from bakery.settings import load_settings

CAKE = Product("Carrot cake", "cake", Decimal("27.00"))


class Pickup(unittest.TestCase):
    def setUp(self):
        self.settings = load_settings()

    def test_the_shop_is_closed_on_sunday_and_monday(self):
        self.assertFalse(is_open(self.settings, date(2026, 3, 15)))
        self.assertEqual(next_open_day(self.settings, date(2026, 3, 15)), date(2026, 3, 17))

    def test_a_cake_needs_two_days(self):
        in_time = Order(1, datetime(2026, 3, 12, 6, 0), date(2026, 3, 14), "Ada Lind", CAKE.name, 1, "card")
        check_pickup(self.settings, in_time, CAKE)
        late = Order(2, datetime(2026, 3, 13, 12, 0), date(2026, 3, 14), "Ada Lind", CAKE.name, 1, "card")
        with self.assertRaises(TooLate):
            check_pickup(self.settings, late, CAKE)
