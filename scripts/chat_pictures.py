"""The manual's pictures of chats, taken of a real server's messages on a fake Telegram.

Here: the day that is played (`tests/support/chat_story.py`) drawn as a chat, and the pictures taken of it.
Not here: pictures of pages (`docs_pictures.py`).

    .venv/bin/python scripts/chat_pictures.py            # writes docs/images/chat-*.png

Wants Chromium (`chromium` on the path). Messages and buttons are those that the server sent; only the frame
around them is drawn here.
"""

import asyncio
import html
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Page, async_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.chat_story import BOT, NOTE, Line, play_day  # noqa: E402 - the path is known only now

IMAGES = ROOT / "docs" / "images"
SHOWN = {
    "pairing": ("chat-pairing", 2), "summary": ("chat-summary", 3), "landed": ("chat-landed", 3),
    "voice": ("chat-voice", 4), "question": ("chat-question", 2), "morning": ("chat-morning", 3),
    "memory": ("chat-memory", 6),
}  # fmt: skip
"""By chapter of the day: the picture's name, and how many of the newest messages it shows."""

STYLE = """
body { margin: 0; background: #dfe7ec; font: 15px/1.35 system-ui, "DejaVu Sans", sans-serif; width: 420px; }
main { padding: 12px; display: flex; flex-direction: column; gap: 8px; }
.message { max-width: 86%; padding: 7px 11px; border-radius: 12px; background: #fff; white-space: pre-wrap;
  overflow-wrap: anywhere; box-shadow: 0 1px 1px #0002; }
.person { align-self: flex-end; background: #d9f7c8; }
.note { align-self: center; background: #0003; color: #fff; font-size: 13px; }
.buttons { display: flex; flex-direction: column; gap: 4px; margin-top: 4px; max-width: 92%; width: 92%; }
.row { display: flex; gap: 4px; }
.button { flex: 1; text-align: center; background: #7d97a8; color: #fff; border-radius: 8px; padding: 6px;
  font-size: 14px; }
blockquote { margin: 0; padding: 2px 8px; border-left: 3px solid #4c9be8; background: #4c9be822;
  white-space: normal; }
code, pre { font: 13px "DejaVu Sans Mono", monospace; background: #0000000d; border-radius: 3px; margin: 0; }
.photo { display: block; width: 170px; height: 100px; border-radius: 8px; margin-bottom: 4px;
  background: linear-gradient(135deg, #d8c49a, #8c6f4a); }
.voice::before { content: "▶ ▁▃▅▇▅▃▁▃▅▃▁ 0:03"; color: #2f7d32; letter-spacing: 1px; }
"""


def drawn(line: Line) -> str:
    """Return one message as HTML; the bot's is HTML as it was sent."""
    if line.who == NOTE:
        return f'<div class="message note">{html.escape(line.text)}</div>'
    if line.who != BOT:
        extra = {"photo": '<span class="photo"></span>', "voice": '<span class="voice"></span>'}.get(
            line.kind, ""
        )
        return f'<div class="message person">{extra}{html.escape(line.text)}</div>'
    rows = "".join(
        '<div class="row">'
        + "".join(f'<span class="button">{html.escape(one)}</span>' for one in row)
        + "</div>"
        for row in line.buttons
    )
    return f'<div class="message">{line.text}</div>' + (f'<div class="buttons">{rows}</div>' if rows else "")


async def main() -> None:
    """Play the day and write the pictures."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--force-color-profile=srgb"]
        )
        page = await browser.new_page(viewport={"width": 420, "height": 100}, device_scale_factor=1.5)

        async def pause(name: str, lines: list[Line]) -> None:
            if name in SHOWN:
                await _taken(page, *SHOWN[name], lines)

        with tempfile.TemporaryDirectory() as directory:
            await play_day(Path(directory), pause)
        await browser.close()


async def _taken(page: Page, name: str, newest: int, lines: list[Line]) -> None:
    chat = [
        line for line in lines if line.who in (BOT, NOTE, "Ann") and not line.text.startswith("Ann presses")
    ]
    body = "".join(drawn(line) for line in chat[-newest:])
    await page.set_content(f"<style>{STYLE}</style><main>{body}</main>")
    await page.locator("main").screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    asyncio.run(main())
