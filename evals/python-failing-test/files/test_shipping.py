import unittest

from shipping import cost


class Shipping(unittest.TestCase):
    def test_a_step_includes_its_weight(self):
        self.assertEqual(cost(500), 390)

    def test_express_is_rounded_up(self):
        self.assertEqual(cost(100, express=True), 590)
        self.assertEqual(cost(1_000, express=True), 890)

    def test_too_heavy(self):
        self.assertRaises(ValueError, cost, 10_001)


if __name__ == "__main__":
    unittest.main()
