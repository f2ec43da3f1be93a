"""Markdown of answers: formulas, diagrams, places in files, notes, and how little is done while one grows (UI-92)."""

import re
from typing import Any

import pytest
from playwright.async_api import CDPSession, Page, Request, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import is_idle, log, say, serious_findings

pytestmark = pytest.mark.timeout(patience(90))

RICH = """## Rich

Inline $e^{i\\pi}$ and \\(a_1\\), it costs $5 and $10.

$$
\\int_0^1 x^2 dx
$$

- [x] done
- [ ] open

See `report.py:9` and orders.txt:2, or [the report](report.py).

A note[^1] here.

[^1]: Said below.

```mermaid
flowchart LR
  A[Begin] --> B[End]
```

שלום עולם
"""
HOSTILE = """Bad $\\href{javascript:alert(1)}{x}$ and $\\frac{$ end.

$$
\\def\\a{\\a\\a}\\a
$$

```mermaid
flowchart LR
  A["<img src=x onerror=window.hacked=1>"] --> B["<script>window.hacked=1</script>"]
  click A "javascript:window.hacked=1"
```

```mermaid
%%{init: {"securityLevel": "loose", "themeCSS": "} body { display: none } x {"}}%%
sequenceDiagram
  A->>B: <b onclick=window.hacked=1>hi</b>
```

```mermaid
flowchart ((( this is none
```

[x](#file:/../../etc/passwd) [y](../secret.txt) [z](javascript:alert(1))
"""


async def test_formulas_diagrams_notes_and_places_are_drawn(page: Page, fake: FakeModels) -> None:
    """UI-92: what draws formulas and diagrams is fetched when they occur, from the server itself."""
    fake.script({"text": "Plain *words*."}, {"text": RICH})
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url)

    page.on("request", note)
    await page.goto("/")
    await say(page, "Hello")
    await expect(log(page).get_by_text("Plain words.")).to_be_visible()
    assert not [url for url in asked if re.search(r"/(math|mermaid)[^/]*\.js", url)]

    await say(page, "More")
    await is_idle(page)
    said = log(page)
    await expect(said.locator(".formula .katex-mathml").first).to_be_attached()
    await expect(said.locator(".formula")).to_have_count(3)
    await expect(said.get_by_text("it costs $5 and $10.")).to_be_visible()
    await expect(said.get_by_role("img", name="Diagram: flowchart LR")).to_be_visible()
    await expect(said.get_by_role("checkbox")).to_have_count(2)
    assert await said.get_by_text("שלום עולם").evaluate("one => getComputedStyle(one).direction") == "rtl"
    assert {url.split("/")[2] for url in asked if url.startswith("http")} == {page.url.split("/")[2]}

    await said.get_by_role("link", name="1", exact=True).click()
    await expect(said.get_by_text("Said below.")).to_be_in_viewport()
    await said.get_by_role("button", name="Source").click()
    await expect(said.get_by_text("A[Begin] --> B[End]")).to_be_visible()
    await said.get_by_role("button", name="Diagram", exact=True).click()
    assert await serious_findings(page) == []

    await said.get_by_role("link", name="report.py:9").click()
    panel = page.get_by_role("complementary", name="Files")
    await expect(panel.get_by_role("heading", name="/report.py:9")).to_be_visible()
    await expect(panel.locator(".marked-line")).to_be_in_viewport()
    await said.get_by_role("link", name="orders.txt:2").click()
    await expect(panel.get_by_role("heading", name="/orders.txt:2")).to_be_visible()
    await said.get_by_role("link", name="the report").click()
    await expect(panel.get_by_role("heading", name="/report.py", exact=True)).to_be_visible()


async def test_a_hostile_text_runs_nothing_and_what_cannot_be_drawn_shows_its_source(
    page: Page, fake: FakeModels
) -> None:
    """UI-17, UI-92."""
    fake.script({"text": HOSTILE})
    await page.goto("/")
    await say(page, "Go")
    await is_idle(page)
    said = log(page)
    await expect(said.get_by_text("This diagram cannot be drawn; its text is above.")).to_have_count(1)
    await expect(said.get_by_text("flowchart ((( this is none")).to_be_visible()
    await expect(said.locator(".diagram img")).to_have_count(2)
    await expect(said.get_by_text("\\def\\a{\\a\\a}\\a")).to_be_visible()
    assert await page.evaluate("window.hacked") is None
    assert await page.evaluate("getComputedStyle(document.body).display") != "none"
    assert await page.locator(".measuring").count() == 0
    links = await said.get_by_role("link").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert not [link for link in links if "javascript" in link or "secret" in link], links


async def parses(cdp: CDPSession) -> int:
    """How many texts were parsed since this was asked last."""
    taken = await cdp.send("Profiler.takePreciseCoverage")
    found, chunks = 0, 0
    for script in taken["result"]:
        if "/assets/" not in script["url"]:
            continue
        source = (await cdp.send("Debugger.getScriptSource", {"scriptId": script["scriptId"]}))[
            "scriptSource"
        ]
        marked = source.find("ignoreInvalidStyle:!0,passKeys:!0")
        if marked < 0:
            continue
        chunks += 1
        inside = [
            one
            for function in script["functions"]
            for one in function["ranges"]
            if one["startOffset"] <= marked < one["endOffset"]
        ]
        if inside:
            found += min(inside, key=lambda one: one["endOffset"] - one["startOffset"])["count"]
    assert chunks == 1, "the parser is not found in the scripts"
    return found


async def test_while_an_answer_grows_what_is_finished_is_not_parsed_again(
    page: Page, fake: FakeModels
) -> None:
    """UI-92: each block is parsed when it comes and as it grows, whatever length the answer has by then."""
    blocks = 120
    text = "\n\n".join(f"Paragraph number {at} with **words**." for at in range(blocks))
    fake.script({"text": text, "deltas": blocks * 2, "gap_s": 0.02})
    await page.goto("/")
    cdp = await page.context.new_cdp_session(page)
    await cdp.send("Profiler.enable")
    await cdp.send("Debugger.enable")
    await cdp.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": False})
    await say(page, "Go")
    await expect(log(page).get_by_text("Paragraph number 3 ")).to_be_visible()
    await page.evaluate(
        """() => {
          window.first_ = document.querySelector('[role=log] .prose p');
          window.touched_ = 0;
          new MutationObserver((list) => { window.touched_ += list.length; })
            .observe(window.first_.parentElement.querySelector('p'), { childList: true, characterData: true, subtree: true, attributes: true });
        }"""
    )
    await expect(log(page).get_by_text(f"Paragraph number {blocks - 1} ")).to_be_visible()
    await is_idle(page)
    assert await page.evaluate("window.touched_") == 0  # what is far above is not drawn any more
    # A delta ends one block or begins the next: each is parsed when it begins, when it ends, and once as finished.
    made = await parses(cdp)
    assert blocks <= made <= blocks * 4, made


async def test_a_diagram_is_whole_where_motion_is_reduced_and_a_chat_opens_at_its_end(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-36, UI-92: even a transition of no time begins elsewhere, and what is measured then is not what is drawn."""
    diagram = (
        "```mermaid\nflowchart LR\n  A[Begin] --> B{Look}\n  B -->|yes| C[Keep]\n  B -->|no| D[Drop]\n```\n\n"
    )
    fake.script({"text": diagram + "A line.\n\n" * 40}, {"text": "These are the last words."})
    conversation = await server.conversation()
    for words in ("Draw", "And now?"):
        await server.http.post(
            f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": words}
        )
    picture = page.locator(".diagram img")
    sizes: list[Any] = []
    for motion in ("no-preference", "reduce"):
        await page.emulate_media(reduced_motion=motion)  # type: ignore[arg-type] - one of its two words
        await page.goto("about:blank")  # the same address again is a reload, which finds what was read
        await page.goto(f"/c/{conversation}")
        await is_idle(page)
        await expect(log(page).get_by_text("These are the last words.")).to_be_in_viewport()
        # What comes below later takes room from the end that is read.
        await page.get_by_label("Your message").fill("\n" * 12)
        await expect(log(page).get_by_text("These are the last words.")).to_be_in_viewport(ratio=1)
        await page.get_by_label("Your message").fill("")
        await log(page).hover()
        await page.mouse.wheel(0, -9000)
        await expect(picture).to_be_visible()
        sizes.append(
            await picture.evaluate("one => one.decode().then(() => [one.naturalWidth, one.naturalHeight])")
        )
    assert sizes[0] == sizes[1], sizes
