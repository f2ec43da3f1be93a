"""A web page as Markdown, and search results out of a page (TO-39, TO-40).

Here: HTML in, text out, pure and slow: call it in a thread. Not here: fetching.
"""

from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import msgspec

from bowerbird.core.lines import lines_of

REMOVED = ("script", "style", "nav", "footer", "noscript", "template")
MAX_HTML_BYTES = 2 * 1024 * 1024
_BLANKS = "\n\n\n"


def to_markdown(html: bytes, charset: str | None, url: str) -> str:
    """Return the page as Markdown, without `REMOVED` elements and their content.

    Args:
        html: The body; what is beyond 2 MiB is left out.
        charset: As the server named it; None = as the page says, else UTF-8.
        url: Where it came from; relative links are made absolute.
    """
    from markdownify import MarkdownConverter

    soup = _soup(html, charset)
    for element in soup(REMOVED):
        element.decompose()
    _drop_comments(soup)
    for link in soup("a", href=True):
        link["href"] = urljoin(url, str(link["href"]))
    for image in soup("img"):
        if str(image.get("src", "")).startswith("data:"):
            image.decompose()
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    try:
        text = MarkdownConverter(heading_style="ATX", bullets="-").convert_soup(soup.body or soup)
    except RecursionError:
        text = soup.get_text("\n", strip=True)  # nested thousands deep: no structure worth showing
    text = _tidy(text)
    return f"# {title}\n\n{text}" if title and title not in text[:300] else text


class SearchResult(msgspec.Struct, frozen=True):
    """One result of a web search."""

    title: str
    url: str
    snippet: str


def search_results(html: bytes, url: str) -> list[SearchResult] | None:
    """Return the results in a keyless search page; None when the page is not one we know.

    An empty list means that the page says it found nothing.
    """
    soup = _soup(html, "utf-8")
    links = soup.select("a.result__a")
    if not links:
        return [] if soup.select(".no-results, .no-results__message") else None
    found: list[SearchResult] = []
    for link in links:
        target = real_target(urljoin(url, str(link.get("href", ""))))
        holder = link.find_parent(class_="result") or link.parent
        snippet = holder.select_one(".result__snippet") if holder else None
        text = snippet.get_text(" ", strip=True) if snippet else ""
        if target:
            found.append(SearchResult(link.get_text(" ", strip=True), target, text))
    return found


def real_target(url: str) -> str | None:
    """Return where a search site's redirect link leads; None for an advertisement.

    Example:
        >>> real_target("https://duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.org%2F&rut=1")
        'https://example.org/'
    """
    parts = urlsplit(url)
    if parts.path.endswith("/y.js"):
        return None
    target = parse_qs(parts.query).get("uddg") if parts.path.rstrip("/").endswith("/l") else None
    real = target[0] if target else url
    if urlsplit(real).path.endswith("/y.js") and (urlsplit(real).hostname or "").endswith("duckduckgo.com"):
        return None
    return real if urlsplit(real).scheme in ("http", "https") else None


def _soup(html: bytes, charset: str | None) -> Any:
    from bs4 import BeautifulSoup

    return BeautifulSoup(html[:MAX_HTML_BYTES], "html.parser", from_encoding=charset)


def _drop_comments(soup: Any) -> None:
    from bs4 import Comment

    for text in list(soup.find_all(string=True)):
        if isinstance(text, Comment):
            text.extract()


def _tidy(text: str) -> str:
    lines = [line.rstrip() for line in lines_of(text)]
    joined = "\n".join(lines).strip()
    while _BLANKS in joined:
        joined = joined.replace(_BLANKS, "\n\n")
    return joined
