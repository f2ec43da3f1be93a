import json, pathlib, subprocess, sys, tempfile

def run(*words):
    return subprocess.run([sys.executable, "count.py", *words], capture_output=True, text=True, timeout=20)

file = pathlib.Path(tempfile.mkdtemp()) / "text"
file.write_bytes("one two\nthree ä\n".encode())
plain = run(str(file))
assert plain.stdout == f"2 4 17 {file}\n" and plain.returncode == 0, plain
for words in (("--json", str(file)), (str(file), "--json")):
    found = run(*words)
    assert json.loads(found.stdout) == {"lines": 2, "words": 4, "bytes": 17}, found
missing = run("--json", "/nowhere")
assert missing.returncode == 1 and "/nowhere" in missing.stderr and not missing.stdout, missing
