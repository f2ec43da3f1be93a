"""The command line: `python -m bakery orders|bake|stock DAY`, `python -m bakery report MONTH`."""

import argparse
from datetime import date

from bakery.orders import load_orders, orders_for
from bakery.prices import order_total
from bakery.products import load_products
from bakery.report import best_customer, in_month, turnover
from bakery.settings import load_settings
from bakery.stock import ingredients_needed, load_recipes, load_stock, missing, pieces_to_bake


def main() -> None:
    parser = argparse.ArgumentParser(prog="bakery", description="The order book of a small bakery.")
    parser.add_argument("command", choices=["orders", "bake", "stock", "report"])
    parser.add_argument("when", help="a day like 2026-03-14; for report a month like 2026-03")
    args = parser.parse_args()
    settings = load_settings()
    orders = load_orders(settings.data["orders"])
    products = load_products(settings.data["products"])

    if args.command == "report":
        found = in_month(orders, args.when)
        for name, total in turnover(found, products).items():
            print(f"{name:<20} {total:>10} {settings.currency}")
        if found:
            name, total = best_customer(found, products)
            print(f"best customer: {name}, {total} {settings.currency}")
        return

    todays = orders_for(orders, date.fromisoformat(args.when))
    if args.command == "orders":
        for order in todays:
            total = order_total(order, products)
            print(
                f"{order.number:>5} {order.customer:<18} {order.quantity:>4} {order.product:<20} {total:>8}"
            )
        return
    pieces = pieces_to_bake(todays)
    if args.command == "bake":
        for name, count in pieces.most_common():
            print(f"{count:>5} {name}")
        return
    needed = ingredients_needed(pieces, load_recipes(settings.data["recipes"]))
    lacking = missing(needed, load_stock(settings.data["stock"]))
    for name, grams in needed.most_common():
        note = f"  {lacking[name] / 1000:.1f} kg missing" if name in lacking else ""
        print(f"{name:<12} {grams / 1000:>7.1f} kg{note}")


if __name__ == "__main__":
    main()
