"""`bowerbird.core.forms`: a type may be used for the first time by several threads at once."""

import subprocess
import sys

import pytest

# A class of each kind that msgspec knows, made for each try: what it learns of a class is learned once.
_MANY_THREADS = """
import dataclasses, sys, threading, typing
import msgspec
from bowerbird.core.forms import convert, decode, unpack

sys.setswitchinterval(1e-6)
names = [f"n{i}" for i in range(12)]
inner = lambda: dataclasses.make_dataclass("Inner", [("a", int)])  # looked at while the outer one is half known
kinds = {
    "typed dict": lambda: typing.TypedDict("K", {n: list[inner()] for n in names}),
    "struct": lambda: msgspec.defstruct("K", [(n, list[inner()]) for n in names]),
    "dataclass": lambda: dataclasses.make_dataclass("K", [(n, list[inner()]) for n in names]),
    "named tuple": lambda: typing.NamedTuple("K", [(n, list[inner()]) for n in names]),
}
value = {n: [{"a": 1}] for n in names}
for _ in range(40):
    kind = kinds[sys.argv[1]]()
    given = list(value.values()) if sys.argv[1] == "named tuple" else value
    ways = [
        lambda: convert(given, kind), lambda: decode(msgspec.json.encode(given), kind),
        lambda: unpack(msgspec.msgpack.encode(given), kind), lambda: convert([given], list[kind])[0],
    ]
    start, found = threading.Barrier(len(ways)), []
    def run(way):
        start.wait()
        found.append(msgspec.to_builtins(way()))
    threads = [threading.Thread(target=run, args=(way,)) for way in ways]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert [list(f.values()) if isinstance(f, dict) else list(f) for f in found] == [list(value.values())] * 4, found
"""


@pytest.mark.parametrize("kind", ["typed dict", "struct", "dataclass", "named tuple"])
def test_a_type_may_be_used_first_by_several_threads(kind: str) -> None:
    """msgspec stores what it learned of a class before it is complete; a process died of that with SIGSEGV."""
    ran = subprocess.run(
        [sys.executable, "-c", _MANY_THREADS, kind], check=False, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr


def test_a_record_of_each_kind_may_be_read_first_by_several_threads() -> None:
    """SE-59: a server that starts reads several conversations at once."""
    program = """
import sys, threading
sys.setswitchinterval(1e-6)
from bowerbird.store.journal.body_forms import problem_of
body = {"content": "x", "stop_reason": "end", "model": "m", "usage": {"input_tokens": 1}}
start = threading.Barrier(4)
def read():
    start.wait()
    assert problem_of("assistant", body) is None
threads = [threading.Thread(target=read) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    for _ in range(8):
        ran = subprocess.run(
            [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=300
        )
        assert ran.returncode == 0, ran.stderr
