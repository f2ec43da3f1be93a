"""What shipping costs, in cents."""

STEPS = [(500, 390), (2_000, 590), (10_000, 990)]


def cost(grams: int, express: bool = False) -> int:
    """Return the price of a parcel: by weight, half as much again for express, rounded up to 10 cents."""
    for most, price in STEPS:
        if grams < most:
            if express:
                price = int(price * 1.5 / 10) * 10
            return price
    raise ValueError(f"{grams} g is too heavy")
