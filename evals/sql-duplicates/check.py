import sqlite3

db = sqlite3.connect(":memory:", isolation_level=None)
db.executescript(open(__file__.rpartition("/")[0] + "/files/schema.sql").read())
rows = [(1, "a@x", "2026-01-01"), (2, "A@x ", "2026-03-01"), (3, "a@X", "2026-02-01"), (4, "b@x", "2026-01-01"),
        (5, "B@x", "2026-01-01"), (6, "c@x", "2025-01-01"), (7, " d@x", "2026-01-01")]
db.executemany("INSERT INTO subscriber VALUES (?, ?, ?)", rows)
wanted = [(2, "a@x", "2026-03-01"), (5, "b@x", "2026-01-01"), (6, "c@x", "2025-01-01"), (7, "d@x", "2026-01-01")]
for time in ("first", "second"):
    db.executescript(open("dedupe.sql").read())
    found = db.execute("SELECT id, email, seen FROM subscriber ORDER BY id").fetchall()
    assert found == wanted, (time, found)
try:
    db.execute("INSERT INTO subscriber (email, seen) VALUES ('a@x', '2026-05-01')")
except sqlite3.IntegrityError:
    pass
else:
    raise SystemExit("a second row came in")
db.execute("INSERT INTO subscriber (email, seen) VALUES ('e@x', '2026-05-01')")
