import csv, io, json, pathlib, subprocess, sys, tempfile

notes = [{"id": 1, "author": "ann", "note": "plain"}, {"id": 2, "author": "b, c", "note": 'say "hi"'},
         {"id": 3, "author": "", "note": "two\nlines"}, {"id": 4, "author": "ü", "note": "semi;colon tab\tend"}]
file = pathlib.Path(tempfile.mkdtemp()) / "notes.json"
file.write_text(json.dumps(notes))
said = subprocess.run([sys.executable, "export.py", str(file)], capture_output=True, timeout=20)
text = said.stdout.decode()
assert text.startswith("id,author,note\n1,ann,plain\n") and "4,ü,semi;colon tab\tend\n" in text, text
assert "\r" not in text
found = list(csv.reader(io.StringIO(text, newline="")))[1:]
assert found == [[str(n["id"]), n["author"], n["note"]] for n in notes], found
