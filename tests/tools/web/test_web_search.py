"""`web_search` against a real server on loopback: TO-39, TO-41."""

import json
from collections.abc import AsyncIterator

import pytest
from support.web_server import WebServer, web_server

from bowerbird.tools import ToolContext, ToolResult, Toolset
from bowerbird.tools.web.html_text import real_target, search_results
from bowerbird.tools.web.web_tools import WebSettings, web_tools

NOTHING = ToolContext()


@pytest.fixture
async def site() -> AsyncIterator[WebServer]:
    async with web_server() as server:
        yield server


async def search(settings: WebSettings, query: str = "bower bird", count: int = 5) -> ToolResult:
    tool = Toolset(web_tools(settings)).get("web_search")
    assert tool is not None
    return await tool.call({"query": query, "max_results": count}, NOTHING)


# ---------------------------------------------------------------- search (TO-39)

RESULTS = """<div class="result"><h2><a class="result__a"
 href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.org%2Fbower%3Fa%3D1&amp;rut=x">Bower
 <b>birds</b></a></h2>
 <a class="result__snippet" href="x">They build &amp; decorate.</a></div>
<div class="result"><a class="result__a" href="https://duckduckgo.com/y.js?ad=1">Buy now</a></div>
<div class="result"><a class="result__a" href="https://example.net/">Second</a></div>"""


def keyless(site: WebServer) -> WebSettings:
    return WebSettings(allow_hosts=("127.0.0.1",), keyless_url=site.url + "/html/")


async def test_keyless_results_have_their_real_targets(site: WebServer) -> None:
    site.page("/html/", RESULTS)
    result = await search(keyless(site))
    assert result.content == (
        "**Bower birds**\nhttps://example.org/bower?a=1\nThey build & decorate.\n\n---\n\n"
        "**Second**\nhttps://example.net/"
    )
    assert result.data is not None
    assert result.data["results"][0] == {
        "title": "Bower birds", "url": "https://example.org/bower?a=1", "snippet": "They build & decorate.",
    }  # fmt: skip
    assert result.tainted
    assert site.seen[0][0] == "/html/?q=bower+bird"
    assert len((await search(keyless(site), count=1)).data["results"]) == 1  # type: ignore[index]


async def test_brave_is_asked_when_a_key_is_set_and_the_key_stays_in_its_header(site: WebServer) -> None:
    body = {
        "web": {"results": [{"title": "A <b>b</b>", "url": "https://a.example/", "description": "c &amp; d"}]}
    }
    site.page("/brave", json.dumps(body), "application/json")
    settings = WebSettings(
        brave_api_key="SECRET-KEY", allow_hosts=("127.0.0.1",), brave_url=site.url + "/brave"
    )
    result = await search(settings, count=99)
    assert result.content == "**A b**\nhttps://a.example/\nc & d"
    path, headers = site.seen[0]
    assert path == "/brave?q=bower+bird&count=20"
    assert headers["x-subscription-token"] == "SECRET-KEY"
    site.page("/brave", "{}", status=429)
    failed = await search(settings)
    assert failed.is_error
    assert "SECRET-KEY" not in failed.text


async def test_a_search_key_is_not_sent_to_another_host(site: WebServer) -> None:
    async with web_server() as other:
        site.redirect("/brave", other.url + "/x")
        other.page("/x", "{}", "application/json")
        settings = WebSettings(
            brave_api_key="SECRET-KEY", allow_hosts=("127.0.0.1",), brave_url=site.url + "/brave"
        )
        await search(settings)
        assert "x-subscription-token" not in other.seen[0][1]


async def test_nothing_found_is_a_fixed_text(site: WebServer) -> None:
    site.page("/html/", '<div class="no-results">No results.</div>')
    result = await search(keyless(site))
    assert (result.content, result.is_error, result.data) == ("No results found.", False, {"results": []})


@pytest.mark.parametrize(
    ("status", "body"), [(500, "oops"), (202, RESULTS), (200, "<p>Prove you are human</p>")]
)
async def test_an_error_or_a_changed_page_is_an_error_result(site: WebServer, status: int, body: str) -> None:
    site.page("/html/", body, status=status)
    result = await search(keyless(site))
    assert result.is_error
    assert "the search failed" in result.text


def test_redirect_links_and_advertisements_of_the_search_site() -> None:
    assert real_target("https://duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2F") == "https://a.example/"
    assert real_target("https://duckduckgo.com/l/?uddg=javascript%3Aalert(1)") is None
    assert real_target("https://a.example/l/x") == "https://a.example/l/x"
    assert search_results(b"<html>changed</html>", "https://x.example/") is None
