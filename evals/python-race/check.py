import subprocess, sys

code = r"""
import threading, time
from cache import Cache
calls, lock, start = [], threading.Lock(), threading.Barrier(12)
both = threading.Barrier(2, timeout=5)
def load(key):
    with lock:
        calls.append(key)
    if key in ("a", "b"):
        both.wait()          # only passes if two keys load at the same time
    time.sleep(0.05)
    return key * 2
cache, found = Cache(load), []
def ask(key):
    start.wait()
    found.append(cache.get(key))
threads = [threading.Thread(target=ask, args=(key,)) for key in "ab" * 6]
[t.start() for t in threads]; [t.join(20) for t in threads]
print(sorted(calls), sorted(found) == ["aa"] * 6 + ["bb"] * 6, cache.get("a"), len(calls))
tries = []
def shaky(key):
    tries.append(key)
    if len(tries) == 1:
        raise OSError("once")
    return None
cache = Cache(shaky)
for _ in range(3):
    try:
        print(cache.get("k"))
    except OSError as error:
        print(error)
print(len(tries))
"""
said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=40)
assert said.stdout == "['a', 'b'] True aa 2\nonce\nNone\nNone\n2\n", said.stdout + said.stderr[-500:]
