"""Baking plan and store room."""

import unittest
from collections import Counter

from bakery.stock import ingredients_needed, missing

RECIPES = {"Poppy roll": {"flour": 60, "poppy seed": 4}, "Carrot cake": {"flour": 250, "carrot": 300}}


class Stock(unittest.TestCase):
    def test_ingredients_are_added_up_over_products(self):
        needed = ingredients_needed(Counter({"Poppy roll": 10, "Carrot cake": 2}), RECIPES)
        self.assertEqual(needed["flour"], 10 * 60 + 2 * 250)

    def test_only_what_the_store_room_lacks_is_missing(self):
        self.assertEqual(
            missing(Counter(flour=900, carrot=100), {"flour": 400, "carrot": 500}), {"flour": 500}
        )
