import pathlib, subprocess, sys

here = pathlib.Path(__file__).parent
assert pathlib.Path("test_shipping.py").read_bytes() == (here / "files/test_shipping.py").read_bytes(), "tests changed"
code = """
from shipping import cost
print([cost(g, e) for g in (1, 499, 500, 501, 2000, 2001, 10000) for e in (False, True)])
try:
    cost(10001)
except ValueError:
    print("too heavy")
"""
said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20).stdout
wanted = [390, 590, 390, 590, 390, 590, 590, 890, 590, 890, 990, 1490, 990, 1490]
assert said == f"{wanted}\ntoo heavy\n", said
