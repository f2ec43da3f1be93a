"""The order book of a small bakery."""
