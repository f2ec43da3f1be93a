import subprocess, sys

code = r"""
from ledger import parse
print(parse("2026-03-01  bread ; rye\n  food  12.50\n  assets:bank   -12.50\n\n; end\n"))
print(parse("2026-03-01 a\n  x  0.05\n  y z\n2026-03-02 b\n\tp  -1.00 ;c\n  q  1.00\n"))
print(parse("") == [], parse("2026-01-01 none\n"))
for bad in ("  x  1.00\n", "2026-03-01 a\n  x  1.5\n", "\n2026-03-01 a\n  x  1.00\n", "2026-03-01 a\n  x\n  y\n",
            "what\n", "2026-03-01 a\n  x  1.00\n  y  -1.00\n2026-03-02 b\n  z  1,00\n"):
    try:
        print("accepted", parse(bad))
    except ValueError as error:
        print(str(error).split(":")[0])
"""
said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
wanted = """[{'date': '2026-03-01', 'title': 'bread', 'lines': [('food', 1250), ('assets:bank', -1250)]}]
[{'date': '2026-03-01', 'title': 'a', 'lines': [('x', 5), ('y z', -5)]}, {'date': '2026-03-02', 'title': 'b', 'lines': [('p', -100), ('q', 100)]}]
True [{'date': '2026-01-01', 'title': 'none', 'lines': []}]
line 1
line 2
line 2
line 1
line 1
line 5
"""
assert said.stdout == wanted, said.stdout + said.stderr
