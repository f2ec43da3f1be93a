cat > ledger.py <<'X'
"""Ledgers, as FORMAT.md describes them."""

import re

ENTRY = re.compile(r"(\d{4}-\d\d-\d\d)(?:\s+(.*))?$")
AMOUNT = re.compile(r"-?\d+\.\d\d$")


def parse(text):
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split(";")[0].rstrip()
        if not line:
            continue
        if line[0].isspace():
            if not entries:
                raise ValueError(f"line {number}: it belongs to no entry")
            account, *rest = re.split(r"\s{2,}", line.strip(), maxsplit=1)
            if rest and not AMOUNT.match(rest[0]):
                raise ValueError(f"line {number}: {rest[0]} is no amount")
            entries[-1][1]["lines"].append((account, int(rest[0].replace(".", "")) if rest else None))
        elif found := ENTRY.match(line):
            entries.append((number, {"date": found[1], "title": (found[2] or "").strip(), "lines": []}))
        else:
            raise ValueError(f"line {number}: neither an entry nor a line of one")
    for number, entry in entries:
        left = -sum(amount for _, amount in entry["lines"] if amount is not None)
        open_ones = sum(amount is None for _, amount in entry["lines"])
        if open_ones > 1 or (not open_ones and left):
            raise ValueError(f"line {number}: its amounts do not make zero")
        entry["lines"] = [(name, left if amount is None else amount) for name, amount in entry["lines"]]
    return [entry for _, entry in entries]
X
