import sqlite3

db = sqlite3.connect(":memory:")
db.executescript(open(__file__.rpartition("/")[0] + "/files/schema.sql").read())
db.executemany("INSERT INTO customer VALUES (?, ?)", [(1, "bo"), (2, "ann"), (3, "cy"), (4, "di"), (5, "ann")])
db.executemany("INSERT INTO purchase (customer, cents) VALUES (?, ?)", [(1, 100), (1, 100), (1, 50), (2, 70), (5, 30)])
db.executemany("INSERT INTO payment (customer, cents) VALUES (?, ?)", [(1, 100), (1, 100), (3, 5), (5, 30), (5, -10)])
cursor = db.execute(open("report.sql").read())
assert [column[0] for column in cursor.description] == ["name", "ordered", "paid"], cursor.description
found = cursor.fetchall()
wanted = [("ann", 30, 20), ("ann", 70, 0), ("bo", 250, 200), ("cy", 0, 5), ("di", 0, 0)]
assert sorted(found) == wanted and [row[0] for row in found] == [row[0] for row in wanted], found
