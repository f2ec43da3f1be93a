"""Reports for the shop."""


def sales(rows):
    lines = []
    total = 0
    for row in rows:
        if row["kind"] == "sale" and row["cents"] > 0:
            name = row["name"].strip().title()
            lines.append(f"{name:<12}{row['cents'] / 100:>10.2f}")
            total += row["cents"]
    lines.append(f"{'Total':<12}{total / 100:>10.2f}")
    return "\n".join(lines)


def refunds(rows):
    lines = []
    total = 0
    for row in rows:
        if row["kind"] == "refund" and row["cents"] > 0:
            name = row["name"].strip().title()
            lines.append(f"{name:<12}{-row['cents'] / 100:>10.2f}")
            total -= row["cents"]
    lines.append(f"{'Total':<12}{total / 100:>10.2f}")
    return "\n".join(lines)


def gifts(rows):
    lines = []
    total = 0
    for row in rows:
        if row["kind"] == "gift":
            name = row["name"].strip().title()
            lines.append(f"{name:<12}{row['cents'] / 100:>10.2f}")
            total += row["cents"]
    lines.append(f"{'Total':<12}{total / 100:>10.2f}")
    return "\n".join(lines)
