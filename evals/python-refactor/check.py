import pathlib, subprocess, sys

code = """
import inspect, json, sys
import report
rows = json.load(sys.stdin)
print(json.dumps([getattr(report, n)(rows) for n in ("sales", "refunds", "gifts")]))
print([str(inspect.signature(getattr(report, n))) for n in ("sales", "refunds", "gifts")])
"""
rows = """[{"kind":"sale","name":" ann ","cents":1250},{"kind":"sale","name":"bo","cents":0},
{"kind":"refund","name":"cy","cents":300},{"kind":"refund","name":"di","cents":-5},{"kind":"gift","name":"ed","cents":0},
{"kind":"gift","name":"flo van dyk","cents":-100},{"kind":"other","name":"x","cents":1}]"""
def run(place):
    done = subprocess.run([sys.executable, "-c", code], input=rows, capture_output=True, text=True, cwd=place, timeout=20)
    return done.stdout or done.stderr
files = pathlib.Path(__file__).parent / "files"
assert run(".") == run(files) and "Ann" in run("."), run(".")
text = pathlib.Path("report.py").read_text()
assert text.count(":<12") <= 2 and text.count(".title()") == 1, "the rule for a line still stands in several places"
