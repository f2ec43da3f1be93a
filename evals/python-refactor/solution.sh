cat > report.py <<'X'
"""Reports for the shop."""


def _report(pairs):
    lines = [(name.strip().title(), cents) for name, cents in pairs]
    lines.append(("Total", sum(cents for _, cents in lines)))
    return "\n".join(f"{name:<12}{cents / 100:>10.2f}" for name, cents in lines)


def sales(rows):
    return _report((row["name"], row["cents"]) for row in rows if row["kind"] == "sale" and row["cents"] > 0)


def refunds(rows):
    return _report((row["name"], -row["cents"]) for row in rows if row["kind"] == "refund" and row["cents"] > 0)


def gifts(rows):
    return _report((row["name"], row["cents"]) for row in rows if row["kind"] == "gift")
X
