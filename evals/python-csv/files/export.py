"""Write notes as CSV: `python3 export.py notes.json`."""

import json
import sys


def rows(notes):
    yield "id", "author", "note"
    for note in notes:
        yield note["id"], note["author"], note["note"]


def main():
    notes = json.load(open(sys.argv[1], encoding="utf-8"))
    for row in rows(notes):
        print(",".join(str(cell) for cell in row))


if __name__ == "__main__":
    main()
