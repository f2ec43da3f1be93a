"""The store of large bytes beside a plain dictionary: random histories with kills between any two steps (SE-9)."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bowerbird.core.errors import StoreError
from bowerbird.store.journal.blobs import Blobs

CONTENTS = st.sampled_from([b"", b"a", b"{}", b'{"a":1}', b"b" * 5000])
STEPS = ("utime", "mkdir", "fdopen", "fsync", "rename", "unlink")
OLD_S = 1_000.0


class Killed(BaseException):
    """The process is gone: nothing after this runs, what is on disk stays."""


class BlobMachine(RuleBasedStateMachine):
    """One directory, and what it must hold: content by name."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.directory = Path(self.place.name) / "blobs"
        self.blobs = Blobs(self.directory)
        self.kept: dict[str, bytes] = {}
        self.seen: dict[str, bytes] = {}

    def teardown(self) -> None:
        self.place.cleanup()

    def age(self) -> None:
        """Let everything stored be older than what is stored next."""
        for path in self.directory.iterdir() if self.directory.exists() else ():
            os.utime(path, (time.time() - OLD_S, time.time() - OLD_S))

    @rule(content=CONTENTS)
    def put(self, content: bytes) -> None:
        name = self.blobs.put(content)
        assert self.blobs.put(content) == name
        self.kept[name] = self.seen[name] = content

    @rule(content=CONTENTS, after=st.integers(0, 5))
    def put_and_die(self, content: bytes, after: int) -> None:
        """What was stored before is whole; what was being stored is whole or absent."""
        left = after
        real = {step: getattr(os, step) for step in STEPS}

        def dying(step: str) -> Callable[..., object]:
            def call(*given: object, **options: object) -> object:
                nonlocal left
                if left == 0:
                    if step == "fdopen":
                        os.close(cast("int", given[0]))  # the system does that for the dead
                    raise Killed
                left -= 1
                return real[step](*given, **options)

            return call

        patches = [patch.object(os, step, dying(step)) for step in STEPS]
        for one in patches:
            one.start()
        try:
            name = self.blobs.put(content)
        except Killed:
            return
        finally:
            for one in patches:
                one.stop()
        self.kept[name] = self.seen[name] = content

    @rule(data=st.data())
    def collect(self, data: st.DataObject) -> None:
        """Some names are wanted no more: they go, unless they were stored again since."""
        if not self.kept:
            return
        self.age()
        name = data.draw(st.sampled_from(sorted(self.kept)))
        before_s = time.time() - OLD_S / 2
        if data.draw(st.booleans()):
            self.blobs.put(self.kept[name])
            assert not self.blobs.remove(name.removeprefix("sha256:"), before_s)
        else:
            assert self.blobs.remove(name.removeprefix("sha256:"), before_s)
            del self.kept[name]

    @rule(data=st.data())
    def collect_and_die(self, data: st.DataObject) -> None:
        """Killed between putting aside and removing: the next start brings it back."""
        if not self.kept:
            return
        self.age()
        name = data.draw(st.sampled_from(sorted(self.kept)))
        with patch.object(Path, "unlink", side_effect=Killed):
            try:
                self.blobs.remove(name.removeprefix("sha256:"), time.time() - OLD_S / 2)
            except Killed:
                pass
            else:
                raise AssertionError("nothing was removed")
        self.blobs = Blobs(self.directory)
        self.blobs.remove_leftovers()

    @rule()
    def start_again(self) -> None:
        self.blobs = Blobs(self.directory)
        self.blobs.remove_leftovers(-1.0)
        names = {path.name for path in self.directory.iterdir()} if self.directory.exists() else set[str]()
        assert not any(name.startswith(".") for name in names)

    @invariant()
    def everything_kept_is_whole(self) -> None:
        for name, content in self.kept.items():
            assert self.blobs.get(name) == content
            assert self.blobs.has(name.removeprefix("sha256:"))

    @invariant()
    def what_is_there_is_what_its_name_says(self) -> None:
        for name, content in self.seen.items():
            try:
                assert self.blobs.get(name) == content
            except StoreError:
                assert name not in self.kept


TestBlobs = BlobMachine.TestCase
TestBlobs.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
