import ast, pathlib, subprocess, sys

def run(*words):
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=20)
    return done.stdout + done.stderr
code = """
from text.slug import slug
print([slug(t) for t in ("  Hello, World! ", "a--b", "R2 D2", "...", "")])
"""
assert run("-c", code) == "['hello-world', 'a-b', 'r2-d2', '', '']\n", run("-c", code)
assert pathlib.Path("text/MODULES").read_text().split() == ["initials", "slug", "wrap"], "text/MODULES"
doc = ast.get_docstring(ast.parse(pathlib.Path("text/slug.py").read_text()))
assert doc and doc.splitlines()[-1] == "Owner: text team", "no owner in the docstring"
assert run("checks/check_slug.py").splitlines()[-1:] == ["ok"], "no check that says ok"
changes = pathlib.Path("CHANGES").read_text().splitlines()
assert changes[0].startswith("+ slug: ") and len(changes) == 3, "CHANGES"
