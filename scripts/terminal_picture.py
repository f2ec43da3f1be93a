"""The manual's recording of a terminal: a real conversation in tmux, drawn as an SVG that plays by itself.

Here: the story, taking screens while it runs, drawing them. Not here: the stage (`terminal_stage.py`),
pictures of the pages (`docs_pictures.py`).

    .venv/bin/python scripts/terminal_picture.py          # writes docs/images/terminal.svg

Wants tmux. The SVG has no script: each screen is a group that CSS shows for its time, so that it plays in an
`<img>`; where people ask for less motion, it is the last screen. What several screens share is in it once.
"""

import tempfile
import time
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.ansi import AnsiDecoder
from rich.color import ColorType
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from terminal_stage import ROOT, FakeModels, Stage, call

PICTURE = ROOT / "docs" / "images" / "terminal.svg"
COLUMNS, ROWS = 84, 26
CELL, LINE, SIZE, EDGE, BAR = 8.4, 19, 14, 18, 30
LONGEST_S = 1.6  # what changes more slowly is shown no longer than this, the last screen aside
LAST_S = 4.0
THEME = TerminalTheme(
    (24, 26, 32),
    (216, 219, 226),
    [(60, 64, 74), (240, 113, 120), (134, 204, 120), (229, 192, 123), (110, 168, 254), (198, 146, 233),
     (96, 200, 210), (216, 219, 226)],
    [(125, 131, 145), (250, 140, 146), (160, 222, 148), (240, 208, 150), (140, 188, 255), (214, 170, 242),
     (130, 220, 228), (255, 255, 255)],
)  # fmt: skip
TILL = """PRICES = {"roll": 60, "loaf": 420}


def total(basket):
    return sum(PRICES[name] for name in basket)
"""
OLD = "    return sum(PRICES[name] for name in basket)\n"
NEW = """    full = sum(PRICES[name] for name in basket)
    return full * 9 // 10 if len(basket) >= 10 else full
"""
CHECK = "python3 -c 'from till import *; assert total([\"roll\"] * 10) == 540'"
STEPS: list[dict[str, Any]] = [
    {
        "text": "I'll look at the till first.", "deltas": 6, "gap_s": 0.05,
        "tools": [call("read_file", path="till.py")],
    },
    {"ttft_s": 0.7, "tools": [call("edit_file", path="till.py", old=OLD, new=NEW)]},
    {"ttft_s": 0.7, "tools": [call("bash", command=CHECK)]},
    {
        "text": "From ten pieces on, **10 %** is taken off. Ten rolls are 5.40 now, and I checked it.",
        "deltas": 14, "gap_s": 0.05, "usage": {"input": 2100, "output": 160, "cache_read": 7400},
    },
]  # fmt: skip
FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
 width="{width}" height="{height}"
 role="img" aria-label="Bowerbird in a terminal: a change is made on a branch, landed and taken back">
<style>text{{font:{size}px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}}
.s{{visibility:hidden}}#s{last}{{visibility:visible}}
@media (prefers-reduced-motion:no-preference){{
.s{{animation:{seconds:.2f}s step-end infinite}}{rules}}}</style>
<rect width="{width}" height="{height}" rx="9" fill="{ground}"/>
<circle cx="24" cy="18" r="5.5" fill="#f07178"/><circle cx="42" cy="18" r="5.5" fill="#e5c07b"/>
<circle cx="60" cy="18" r="5.5" fill="#86cc78"/>
<defs>{lines}</defs>
<g transform="translate({left} {top})" fill="{ink}">{screens}</g></svg>
"""
SHOWN = (
    "@keyframes k{n}{{0%,{before:.3f}%{{visibility:hidden}}{first:.3f}%,{last:.3f}%{{visibility:visible}}"
    "{after:.3f}%,100%{{visibility:hidden}}}}#s{n}{{animation-name:k{n}}}"
)


@dataclass(frozen=True, slots=True)
class Screen:
    """What stood on the terminal, from `at` seconds on; the cursor as column and row."""

    at: float
    lines: tuple[str, ...]
    cursor: tuple[int, int]


class Camera:
    """Takes the stage's screen whenever it has changed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._began = time.monotonic()
        self.screens: list[Screen] = []

    def look(self) -> None:
        """Keep the screen if it is another one."""
        where = self._stage.tmux("display", "-p", "#{cursor_x} #{cursor_y}").split()
        lines = tuple(self._stage.tmux("capture-pane", "-pe").rstrip("\n").split("\n"))
        cursor = (int(where[0]), int(where[1]))
        if not self.screens or (lines, cursor) != (self.screens[-1].lines, self.screens[-1].cursor):
            self.screens.append(Screen(time.monotonic() - self._began, lines, cursor))

    def until(self, text: str) -> None:
        """Look until `text` stands on the screen."""
        end = time.monotonic() + 60
        while text not in self._stage.screen():
            if time.monotonic() > end:
                raise SystemExit(f"{text!r} did not appear; the screen:\n{self._stage.screen()}")
            self.look()
        self.rest(0.1)

    def rest(self, seconds: float) -> None:
        """Look for a while, as a reader does."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()

    def type(self, text: str) -> None:
        """Type as a person does, and look at each letter or two."""
        for at in range(0, len(text), 3):
            self._stage.type(text[at : at + 3], enter=False)
            self.rest(0.05)
        self.rest(0.4)
        self._stage.type("")


def record() -> list[Screen]:
    """Play the story; return its screens."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place, FakeModels() as fake:
        stage = Stage(Path(place), fake, columns=COLUMNS, rows=ROWS, colour=True)
        try:
            return _play(stage, fake)
        finally:
            stage.close()


def _play(stage: Stage, fake: FakeModels) -> list[Screen]:
    for path in stage.project.iterdir():
        path.unlink()
    (stage.project / "till.py").write_text(TILL)
    stage.shell("git init -q; export COLORTERM=truecolor")
    stage.type("clear")
    while stage.screen().strip() != "$":
        time.sleep(0.05)
    fake.script(*STEPS)
    camera = Camera(stage)
    camera.rest(0.3)
    camera.type("bowerbird")
    camera.until("new session")
    camera.type("take 10 % off from ten pieces on, and check it")
    camera.until("1 file changed: ")
    camera.rest(1.2)
    camera.type("/land")
    camera.until("[y/N]")
    camera.type("y")
    camera.until("landed 1 change")
    camera.rest(0.8)
    camera.type("/undo")
    camera.until("back (1 change)")
    camera.rest(0.5)
    return camera.screens


# ------------------------------------------------------------------------ drawing


def drawn(screens: list[Screen]) -> str:
    """Return the screens as one SVG."""
    stays = [min(later.at - here.at, LONGEST_S) for here, later in pairwise(screens)] + [LAST_S]
    whole = sum(stays)
    known: dict[str, str] = {}
    groups: list[str] = []
    rules: list[str] = []
    begun = 0.0
    for number, (screen, stay) in enumerate(zip(screens, stays, strict=True)):
        first, last = 100 * begun / whole, 100 * (begun + stay) / whole
        begun += stay
        groups.append(f'<g class="s" id="s{number}">{_uses(screen, known)}</g>')
        before, after = max(first - 0.001, 0), min(last + 0.001, 100)
        rules.append(SHOWN.format(n=number, before=before, first=first, last=last, after=after))
    return FRAME.format(
        width=round(COLUMNS * CELL + 2 * EDGE), height=ROWS * LINE + 2 * EDGE + BAR, size=SIZE,
        last=len(screens) - 1, seconds=whole, rules="".join(rules), left=EDGE, top=EDGE + BAR,
        ground=_hex(THEME.background_color), ink=_hex(THEME.foreground_color),
        lines="".join(known.values()), screens="".join(groups),
    )  # fmt: skip


def _uses(screen: Screen, known: dict[str, str]) -> str:
    parts: list[str] = []
    column, row = screen.cursor
    if row < ROWS:
        parts.append(_box(column, 1, "#8b93a5", row * LINE))
    decoder = AnsiDecoder()  # tmux says a style once, also where it goes on in the next line
    for number, text in enumerate(decoder.decode_line(line) for line in screen.lines):
        if not (line := _line(text)):
            continue
        known.setdefault(line, f'<g id="l{len(known)}">{line}</g>')
        name = known[line][7 : known[line].index('"', 7)]
        parts.append(f'<use href="#{name}" y="{number * LINE}"/>')
    return "".join(parts)


def _line(text: Text) -> str:
    """Return a line's runs of one style, each in its columns."""
    boxes: list[str] = []
    runs: list[str] = []
    column = 0
    for part in text.divide(sorted({edge for span in text.spans for edge in (span.start, span.end)})):
        style = Style.combine([Style.null(), *(Style.parse(str(span.style)) for span in part.spans)])
        cells = part.cell_len
        fill, behind, more = _looks(style)
        if behind:
            boxes.append(_box(column, cells, behind, 0))
        if part.plain.strip():
            place = f'x="{column * CELL:.1f}" textLength="{cells * CELL:.1f}" lengthAdjust="spacingAndGlyphs"'
            runs.append(f"<text {place}{fill}{more}>{escape(part.plain, quote=False)}</text>")
        column += cells
    return "".join(boxes) + "".join(runs)


def _box(column: int, cells: int, colour: str, y: int) -> str:
    x, width = f"{column * CELL:.1f}", f"{cells * CELL:.1f}"
    return f'<rect x="{x}" y="{y - 15}" width="{width}" height="{LINE}" fill="{colour}"/>'


def _looks(style: Style) -> tuple[str, str, str]:
    fore, back = _colour(style, "color"), _colour(style, "bgcolor")
    if style.reverse:
        fore, back = back or _hex(THEME.background_color), fore or _hex(THEME.foreground_color)
    more = ' font-weight="700"' if style.bold else ""
    more += ' opacity="0.6"' if style.dim else ""
    more += ' font-style="italic"' if style.italic else ""
    return (f' fill="{fore}"' if fore else ""), back, more


def _colour(style: Style, which: str) -> str:
    colour = style.color if which == "color" else style.bgcolor
    if colour is None or colour.type is ColorType.DEFAULT:
        return ""
    return _hex(colour.get_truecolor(THEME, foreground=which == "color"))


def _hex(colour: Any) -> str:
    red, green, blue = colour
    return f"#{red:02x}{green:02x}{blue:02x}"


def main() -> None:
    """Record, draw, write."""
    screens = record()
    PICTURE.write_text(drawn(screens))
    print(f"{PICTURE.relative_to(ROOT)}: {len(screens)} screens, {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
