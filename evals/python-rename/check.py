import pathlib, re, subprocess, sys

files = [p for p in pathlib.Path(".").rglob("*") if p.is_file() and p.suffix in (".py", ".json", ".md")]
text = {str(p): p.read_text() for p in files}
assert {"store.py", "app.py", "handlers.json", "MANUAL.md"} <= set(text)
assert not [n for n, t in text.items() if re.search(r"\bget_usr\b", t)], "the old name is still there"
assert "get_user(number)" in text["MANUAL.md"] and "get_usr_agent()" in text["MANUAL.md"]
said = subprocess.run([sys.executable, "app.py", "2"], capture_output=True, text=True, timeout=20)
assert said.stdout == "hello grace (store/1.0) grace ada\n", said
