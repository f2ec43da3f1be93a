"""Value added tax, by RULES.md."""


def vat(cents: int) -> int:
    """Return the tax on a net amount."""
    return cents * 19 // 100


def discount(cents: int, percent: int) -> int:
    """Return what is taken off."""
    return (cents * percent + 50) // 100
