"""Web pages turned into text within a deadline, where it can be stopped (TO-39, TO-40).

Here: the process that parses a stranger's page. Not here: what becomes of its elements (`html_text.py`),
fetching (`web_tools.py`).

Parsers of HTML are quadratic and worse in pages made for it: 20 KB of unclosed tags took minutes, in a thread
that nothing can stop. So only pages of a few hundred bytes are parsed in this process.
"""

import json
import sys
from typing import Any

from bowerbird.core.errors import ToolError
from bowerbird.core.processes.bounded_child import answer_of_child
from bowerbird.tools.web.html_text import SearchResult, search_results, to_markdown

DEADLINE_S = 10.0
MEMORY_BYTES = 2 << 30
_SMALL = 512
_CHILD = "from bowerbird.tools.web.html_bounded import child; child()"


async def markdown_within(html: bytes, charset: str | None, url: str) -> str:
    """Return what `to_markdown` returns; raises ToolError when that takes too long."""
    if len(html) <= _SMALL:
        return to_markdown(html, charset, url)
    return str(await _in_child({"charset": charset, "url": url}, html))


async def results_within(html: bytes, url: str) -> list[SearchResult] | None:
    """Return what `search_results` returns; raises ToolError when that takes too long."""
    if len(html) <= _SMALL:
        return search_results(html, url)
    rows = await _in_child({"results": True, "url": url}, html)
    return None if rows is None else [SearchResult(*row) for row in rows]


def child() -> None:
    """Answer one page: a line of JSON that says what is wanted, then the page, both from stdin."""
    sys.setrecursionlimit(3000)
    job: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    html = sys.stdin.buffer.read()
    answer: Any
    if job.get("results"):
        found = search_results(html, job["url"])
        answer = None if found is None else [[row.title, row.url, row.snippet] for row in found]
    else:
        answer = to_markdown(html, job["charset"], job["url"])
    sys.stdout.write(json.dumps(answer))


async def _in_child(job: dict[str, Any], html: bytes) -> Any:
    given = json.dumps(job).encode() + b"\n" + html
    try:
        said = await answer_of_child(["-c", _CHILD], given, deadline_s=DEADLINE_S, memory_bytes=MEMORY_BYTES)
    except TimeoutError as error:
        raise ToolError(f"the page could not be read as HTML within {DEADLINE_S:g} s") from error
    if said is None:
        raise ToolError("the page could not be read as HTML")
    return json.loads(said)
