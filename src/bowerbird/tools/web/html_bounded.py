"""Web pages turned into text within a deadline, where it can be stopped (TO-39, TO-40).

Here: the process that parses a stranger's page. Not here: what becomes of its elements (`html_text.py`),
fetching (`web_tools.py`).

Parsers of HTML are quadratic and worse in pages made for it: 20 KB of unclosed tags took minutes, in a thread
that nothing can stop. So only pages of a few hundred bytes are parsed in this process.
"""

import asyncio
import json
import resource
import signal
import sys
from contextlib import suppress
from typing import Any

from bowerbird.core.errors import ToolError
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
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-c", _CHILD,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env={}, start_new_session=True,
    )  # fmt: skip
    try:
        with suppress(OSError, ValueError):  # it may be gone already; its CPU is limited if we are
            resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            seconds = int(DEADLINE_S) + 1
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds))
        async with asyncio.timeout(DEADLINE_S):
            said, _ = await process.communicate(json.dumps(job).encode() + b"\n" + html)
    except TimeoutError as error:
        raise ToolError(f"the page could not be read as HTML within {DEADLINE_S:g} s") from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            await asyncio.shield(process.wait())
    if process.returncode:
        raise ToolError("the page could not be read as HTML")
    return json.loads(said)
