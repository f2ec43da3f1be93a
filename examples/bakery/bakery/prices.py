"""What an order costs: list price, bulk discount, delivery."""

from decimal import ROUND_HALF_UP, Decimal

from bakery.orders import Order
from bakery.products import Product, find_product

BULK_QUANTITY = 24
BULK_DISCOUNT = Decimal("0.10")

DELIVERY_FEE = Decimal("4.50")
FREE_DELIVERY_FROM = Decimal("60.00")

CENT = Decimal("0.01")


def goods_total(order: Order, product: Product) -> Decimal:
    """Return the price of the goods, with the bulk discount if the order is large enough."""
    total = product.price * order.quantity
    if order.quantity >= BULK_QUANTITY:
        total -= total * BULK_DISCOUNT
    return total.quantize(CENT, ROUND_HALF_UP)


def delivery_cost(order: Order, goods: Decimal) -> Decimal:
    """Return what bringing the order costs; large orders are brought for nothing."""
    if not order.delivery or goods >= FREE_DELIVERY_FROM:
        return Decimal("0.00")
    return DELIVERY_FEE


def order_total(order: Order, products: dict[str, Product]) -> Decimal:
    """Return what the customer pays."""
    goods = goods_total(order, find_product(products, order.product))
    return goods + delivery_cost(order, goods)
