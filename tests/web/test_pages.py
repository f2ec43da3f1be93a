"""How the pages are served (UI-1, UI-2, SV-59), how they are typed (UI-3), and their pure parts."""

import importlib.util
import re
import subprocess
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from playwright.async_api import Browser, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.patience import patience
from support.web_actions import log, say

from bowerbird.server.common.errors import Problem
from bowerbird.server.http.pages import asset
from bowerbird.server.http.pages import page as page_at
from bowerbird.store.rows.tokens import make_token

LEAST_RUN_PERCENT = 95
ROOT = Path(__file__).resolve().parents[2]
INDEX = '<meta name="bowerbird-base" content="" /><script src="./assets/a-1.js"></script>'


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a-1.js").write_text("1")
    (tmp_path / "index.html").write_text(INDEX)
    return tmp_path


def test_below_a_path_prefix_every_address_has_it(built: Path) -> None:
    """UI-2."""
    shown = page_at("/agents", built)
    body = bytes(shown.body).decode()
    assert 'content="/agents"' in body and 'src="/agents/assets/a-1.js"' in body
    assert 'src="/assets/a-1.js"' in bytes(page_at("", built).body).decode()


def test_a_page_is_asked_for_each_time_and_a_hashed_file_once(built: Path) -> None:
    assert page_at("", built).headers["cache-control"] == "no-cache"
    kept = asset("a-1.js", built / "assets").headers
    assert "immutable" in kept["cache-control"] and kept["content-type"].startswith("text/javascript")


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("identity", None),
        ("", None),
    ],
)
def test_whoever_takes_a_compressed_script_gets_it(built: Path, accepted: str, coding: str | None) -> None:
    """UI-93, web finding W9: 552 kB went out where 150 would do."""
    for ending in (".br", ".gz"):
        (built / "assets" / f"a-1.js{ending}").write_text(ending)
    answer = asset("a-1.js", built / "assets", accepted)
    assert answer.headers.get("content-encoding") == coding and answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["content-type"].startswith("text/javascript")
    (built / "assets" / "a-1.js.br").unlink()
    assert asset("a-1.js", built / "assets", "br").headers.get("content-encoding") is None


async def test_what_is_built_is_compressed(server: LiveServer) -> None:
    """UI-93."""
    start = (await server.http.get("/")).text
    script = next(part.split('"')[0] for part in start.split('src="') if part.startswith("/assets/"))
    async with server.http.stream("GET", script, headers={"Accept-Encoding": "br"}) as answer:
        small = [part async for part in answer.aiter_raw()]
        assert answer.headers["content-encoding"] == "br"
    whole = await server.http.get(script, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in whole.headers and sum(map(len, small)) < len(whole.content) / 3


@pytest.mark.parametrize("name", ["../index.html", ".built-from", "none.js", "a/b.js", ""])
def test_only_built_files_are_served(built: Path, name: str) -> None:
    with pytest.raises(Problem) as refused:
        asset(name, built / "assets")
    assert refused.value.status_code == 404


def test_without_a_build_the_page_says_what_to_do(tmp_path: Path) -> None:
    shown = page_at("", tmp_path / "nothing")
    assert shown.status_code == 503 and b"make web" in bytes(shown.body)


@pytest.mark.timeout(patience(60))
async def test_every_deep_link_is_a_page_and_unknown_ones_are_json(server: LiveServer) -> None:
    """UI-1, SV-4, SV-59."""
    for path in (
        "/",
        "/dev",
        "/c/abc",
        "/c/abc/diff",
        "/dev/c/abc",
        "/dev/c/abc/diff",
        "/dev/c/abc/attempts",
        "/dev/usage",
        "/dev/skills",
        "/dev/memory",
        "/dev/tokens",
        "/landings",
    ):
        found = await server.http.get(path)
        assert found.status_code == 200 and found.headers["content-type"].startswith("text/html"), path
        policy = found.headers["content-security-policy"]
        assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
        assert "<script>" not in found.text
    async with httpx.AsyncClient(base_url=server.address) as http:
        unknown = await http.get("/api/nothing")
        assert unknown.status_code == 404 and unknown.headers["content-type"] == "application/json"


@pytest.mark.timeout(patience(60))
async def test_pages_are_open_and_a_token_is_asked_for_in_them(
    tmp_path: Path, fake: FakeModels, browser: Browser, built_ui: Path
) -> None:
    """SV-54, UI-38: without a credential only the pages' own files come; sockets are opened by a ticket."""
    del built_ui
    fake.script({"text": "You are in."})
    async with live_server(tmp_path, fake, server__auth="token") as guarded:
        assert (await guarded.http.get("/dev")).status_code == 200
        assert (await guarded.http.get("/api/conversations")).status_code == 401
        _, secret = await guarded.context.store.write(lambda c: make_token(c, "laptop", "user"), flush=True)
        page = await (await browser.new_context(base_url=guarded.address)).new_page()
        await page.goto("/")
        await page.get_by_label("Token").fill("bb_wrong")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_text("This token is not valid")).to_be_visible()
        await page.get_by_label("Token").fill(secret)
        await page.get_by_role("button", name="Sign in").click()
        await say(page, "Hello")
        await expect(log(page).get_by_text("You are in.")).to_be_visible()
        # UI-94, web finding W12: another tab of this browser is in, too, until somebody signs out.
        other = await page.context.new_page()
        await other.goto("/")
        await other.get_by_role("button", name="Signed in as laptop (user)").click()
        assert secret not in await other.evaluate("JSON.stringify(localStorage)")  # it outlives no browser
        await other.get_by_role("menuitem", name="Sign out").click()
        for tab in (other, page):
            await expect(tab.get_by_label("Token")).to_be_visible()
        await page.context.close()


def test_types_are_made_from_the_servers_own_description() -> None:
    """UI-3, house R3: run scripts/build_web_types.py after a change of a route or a frame."""
    spec = importlib.util.spec_from_file_location("types_script", ROOT / "scripts" / "build_web_types.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for target, made in script.FILES.items():
        assert made() == target.read_text(encoding="utf-8"), target.name


@pytest.mark.timeout(patience(60))
def test_the_pure_parts_pass_their_own_tests(builder: ModuleType, built_ui: Path) -> None:
    """The fold over frames and the review's choices (web/tests): lines of every file of `state/`, to 95 percent."""
    del built_ui
    npm, environment = builder.npm_command()
    done = subprocess.run(
        [*npm, "test", "--silent"],
        cwd=ROOT / "web",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    ran = {name: float(share) for name, share in re.findall(r"(\w+\.ts) +\| +([\d.]+) \|", done.stdout)}
    state = {file.name for file in (ROOT / "web" / "src" / "state").iterdir()}
    assert ran.keys() == state, f"loaded by no test, or not there: {ran.keys() ^ state}"
    assert [name for name, share in ran.items() if share < LEAST_RUN_PERCENT] == []


def test_the_lock_file_names_no_place_to_download_from() -> None:
    lock = (ROOT / "web" / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
