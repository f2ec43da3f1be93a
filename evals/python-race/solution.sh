cat > cache.py <<'X'
"""Values that are expensive to load."""

import threading


class Cache:
    def __init__(self, load):
        self._load = load
        self._values = {}
        self._locks = {}
        self._lock = threading.Lock()

    def get(self, key):
        with self._lock:
            if key in self._values:
                return self._values[key]
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._values:
                self._values[key] = self._load(key)
            return self._values[key]
X
