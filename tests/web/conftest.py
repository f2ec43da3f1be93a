"""The built pages, a real server over a scripted model, and Debian's Chromium.

The pages are built once for all sessions with the same sources (`scripts/build_web.py`), and one browser serves all
tests, each in a context of its own: starting it takes longer than most of what is done in it. So the tests share an
event loop, too. Without Chromium, or without Node and a way to its packages, the tests here are skipped and say so:
nothing stands in for either.
"""

import importlib.util
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, Playwright, async_playwright, expect
from pytest_asyncio import is_async_test
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.patience import HANG_S

expect.set_options(timeout=HANG_S * 1000)  # a busy machine is slow, not wrong

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REPORT = '''"""Counts orders."""


def load(path):
    with open(path) as handle:
        return handle.read().splitlines()


def total(rows):
    found = 0
    for row in rows:
        found += int(row)
    return found


def report(rows):
    return f"total {total(rows)}"


def main():
    print(report(load("orders.txt")))
'''


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of this directory run in the loop in which the browser was started."""
    for item in items:
        if HERE in item.path.parents and isinstance(item, pytest.Function) and is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def builder() -> ModuleType:
    """`scripts/build_web.py` as a module."""
    spec = importlib.util.spec_from_file_location("build_web", ROOT / "scripts" / "build_web.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def built_ui(builder: ModuleType) -> Path:
    """The directory of the built pages."""
    try:
        builder.build()
    except builder.NoNode as missing:
        pytest.skip(str(missing))
    except builder.BuildFailed as error:
        if "install" in str(error):
            pytest.skip("the packages of web/package-lock.json cannot be had here")
        raise
    return Path(builder.TARGET)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Chromium of the system."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no Chromium here (Debian package chromium)")
    return found


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as model:
        yield model


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The directory that the agent works on a branch of."""
    place = tmp_path / "workspace"
    place.mkdir()
    (place / "report.py").write_text(REPORT)
    (place / "orders.txt").write_text("12\n40\n")
    return place


@pytest_asyncio.fixture(loop_scope="session")
async def server(
    tmp_path: Path, workspace: Path, fake: FakeModels, built_ui: Path
) -> AsyncIterator[LiveServer]:
    del workspace, built_ui
    async with live_server(tmp_path, fake) as running:
        yield running


class Started:
    """The browser of all tests; one that has died takes only the test with it that it died in."""

    def __init__(self, playwright: Playwright, chromium: str) -> None:
        self._playwright = playwright
        self._chromium = chromium
        self._browser: Browser | None = None

    async def browser(self) -> Browser:
        if self._browser is None or not self._browser.is_connected():
            self._browser = await self._playwright.chromium.launch(
                executable_path=self._chromium, args=["--no-sandbox"]
            )
        return self._browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def started(chromium: str) -> AsyncIterator[Started]:
    async with async_playwright() as playwright:  # its end closes what it launched
        yield Started(playwright, chromium)


@pytest_asyncio.fixture(loop_scope="session")
async def browser(started: Started) -> AsyncIterator[Browser]:
    """The browser of all tests; what one of them left open is closed after it."""
    running = await started.browser()
    yield running
    for left in running.contexts:
        await left.close()


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser, server: LiveServer) -> AsyncIterator[BrowserContext]:
    """A person's browser; whatever a page complains about fails the test."""
    opened = await browser.new_context(base_url=server.address, viewport={"width": 1280, "height": 860})
    opened.set_default_timeout(HANG_S * 1000)
    complaints: list[str] = []
    opened.on("weberror", lambda error: complaints.append(str(error.error)))
    opened.on(
        "console",
        lambda said: complaints.append(said.text) if "Content Security Policy" in said.text else None,
    )
    yield opened
    await opened.close()
    assert complaints == []


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext) -> Page:
    return await context.new_page()
