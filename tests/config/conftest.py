"""A directory, a home and an environment of one's own for each test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bowerbird.config import Loaded, inspect_settings
from bowerbird.config.sources import note_initialised


class Place:
    """Files of one load; `load` never sees the machine's own settings."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "base"
        self.home = directory / "home"
        self.directory.mkdir()
        self.home.mkdir()
        note_initialised(self.home, self.directory)  # as `config init` does

    def write(self, name: str, text: str | bytes) -> Path:
        file = self.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        file.chmod(0o600)
        return file

    def inspect(self, text: str | None = None, /, **options: Any) -> Loaded:
        if text is not None:
            self.write("config.yaml", text)
        options = {"env": {}, "kind": "serve", "cwd": self.directory, "home": self.home} | options
        return inspect_settings(**options)

    def load(self, text: str | None = None, /, **options: Any) -> Loaded:
        loaded = self.inspect(text, **options)
        assert loaded.errors == ()
        return loaded


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def errors(place: Place) -> Callable[..., tuple[str, ...]]:
    def of(text: str | None = None, /, **options: Any) -> tuple[str, ...]:
        return place.inspect(text, **options).errors

    return of
