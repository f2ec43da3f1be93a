"""A tiny real weights file, and models opened on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.tiny_gguf import write_tiny_gguf

from bowerbird.models.local import LocalModel, open_local
from bowerbird.models.settings import LocalSettings

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny weights."""
    return write_tiny_gguf(tmp_path_factory.mktemp("weights") / "tiny.gguf")


@pytest.fixture
async def model(tiny_path: Path) -> AsyncIterator[LocalModel]:
    """The tiny model; closed afterwards."""
    opened = open_local(str(tiny_path), LocalSettings(threads=1, context_window=32_768))
    yield opened
    await opened.aclose()
