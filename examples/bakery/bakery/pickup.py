"""When an order can be picked up."""

from datetime import date, datetime, timedelta

from bakery.orders import Order
from bakery.products import Product
from bakery.settings import Settings

DAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

# Dough for bread rests overnight; a cake is baked, filled and decorated on two days.
LEAD_HOURS = {"bread": 18, "pastry": 12, "cake": 48}


class TooLate(Exception):
    """The order came in too late for its pickup day."""


def is_open(settings: Settings, day: date) -> bool:
    """Whether the shop is open on `day`."""
    return DAY_NAMES[day.weekday()] in settings.open_days


def next_open_day(settings: Settings, day: date) -> date:
    """Return `day` if the shop is open, else the next day it is."""
    while not is_open(settings, day):
        day += timedelta(days=1)
    return day


def latest_order_time(settings: Settings, product: Product, pickup: date) -> datetime:
    """Return the moment until which `product` can be ordered for `pickup`."""
    opening = datetime.combine(pickup, settings.opens)
    return opening - timedelta(hours=LEAD_HOURS[product.kind])


def check_pickup(settings: Settings, order: Order, product: Product) -> None:
    """Raise TooLate when `order` cannot be ready on its day."""
    latest = latest_order_time(settings, product, order.pickup)
    if order.ordered_at > latest:
        raise TooLate(
            f"order {order.number}: {product.name} had to be ordered until {latest:%a %d %b, %H:%M}"
        )
