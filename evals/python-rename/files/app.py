import importlib
import json
import sys

import store
from store import get_usr, get_usr_agent


def greet(number):
    return f"hello {get_usr(number)} ({get_usr_agent()})"


def call(name, *words):
    module, _, function = json.load(open("handlers.json"))[name].partition(":")
    return getattr(importlib.import_module(module), function)(*words)


if __name__ == "__main__":
    print(greet(int(sys.argv[1])), call("lookup", int(sys.argv[1])), store.get_usr(1))
