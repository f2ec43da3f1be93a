"""Values that are expensive to load."""


class Cache:
    def __init__(self, load):
        self._load = load
        self._values = {}

    def get(self, key):
        if key not in self._values:
            self._values[key] = self._load(key)
        return self._values[key]
