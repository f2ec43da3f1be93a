import sqlite3

db = sqlite3.connect(":memory:", isolation_level=None)
db.execute("PRAGMA foreign_keys = ON")
db.executescript(open("migrations/001.sql").read())
people = [(1, "Ada Lovelace", "a"), (3, " Mary Jane  Watson ", "b"), (7, "Plato", "c"), (9, "Ada King-Noel", "d")]
db.executemany("INSERT INTO person VALUES (?, ?, ?)", people)
db.executemany("INSERT INTO note VALUES (?, ?, ?)", [(1, 1, "x"), (2, 7, "y"), (5, 7, "z")])
script = open("migrations/002.sql").read()
db.executescript("BEGIN;\n" + script + "\n;COMMIT;")
found = db.execute("SELECT id, first, last, email FROM person ORDER BY id").fetchall()
assert [(i, f.strip(), l, e) for i, f, l, e in found] == [
    (1, "Ada", "Lovelace", "a"), (3, "Mary Jane", "Watson", "b"), (7, "", "Plato", "c"), (9, "Ada", "King-Noel", "d")], found
columns = {row[1]: row[3] for row in db.execute("PRAGMA table_info(person)")}
assert set(columns) == {"id", "first", "last", "email"} and columns["first"] and columns["last"], columns
assert db.execute("SELECT id, person, text FROM note ORDER BY id").fetchall() == [(1, 1, "x"), (2, 7, "y"), (5, 7, "z")], "notes"
for bad in ("INSERT INTO person (first, last, email) VALUES ('x', 'y', 'a')", "INSERT INTO note (person, text) VALUES (2, 'x')"):
    try:
        db.execute(bad)
    except sqlite3.IntegrityError:
        continue
    raise SystemExit(f"accepted: {bad}")
db.execute("DELETE FROM person WHERE id = 7")
assert db.execute("SELECT count(*) FROM note").fetchone() == (1,), "deleting a person leaves the notes"
assert not db.execute("PRAGMA foreign_key_check").fetchall()
