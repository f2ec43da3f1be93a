import sqlite3

db = sqlite3.connect(":memory:")
db.executescript(open(__file__.rpartition("/")[0] + "/files/schema.sql").read())
rows = [(1, "b", "2026-03-02", 5), (2, "a", "2026-03-01", 100), (3, "a", "2026-02-27", -30), (4, "a", "2026-03-01", -100),
        (5, "a", "2026-02-27", 30), (6, "a", "2027-03-01", 1)]
db.executemany("INSERT INTO entry VALUES (?, ?, ?, ?)", rows)
cursor = db.execute(open("balance.sql").read())
assert [c[0] for c in cursor.description] == ["account", "day", "cents", "balance", "gap"], cursor.description
found = cursor.fetchall()
assert found == [("a", "2026-02-27", -30, -30, None), ("a", "2026-02-27", 30, 0, 0), ("a", "2026-03-01", 100, 100, 2),
                 ("a", "2026-03-01", -100, 0, 0), ("a", "2027-03-01", 1, 1, 365), ("b", "2026-03-02", 5, 5, None)], found
