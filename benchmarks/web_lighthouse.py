"""What Lighthouse says of the first page: both faces, as a phone and as a desktop (UI-93).

Here: the runs and their printed table. Not here: the pages (`web/`), the server, Lighthouse itself: it is a program
of 250 packages that nothing else here needs, so whoever measures installs it (`npm install lighthouse` somewhere)
and names its command.

    python benchmarks/web_lighthouse.py --lighthouse DIR/node_modules/lighthouse/cli/index.js [--runs 3] [--json]

Each figure is the median of the runs. Network and processor are slowed down by simulation, Lighthouse's default, so
that another machine gives much the same figures; what the machine does beside it still shows. Exit code 1 where a
median is below 95.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "benchmarks"))

from support.fake_models import FakeModels  # noqa: E402 - after the path
from support.live_server import live_server  # noqa: E402
from web_scroll import table  # noqa: E402

LEAST = 95
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
FIGURES = ("performance", "accessibility", "best-practices", "seo")
TIMES = {
    "FCP": "first-contentful-paint",
    "LCP": "largest-contentful-paint",
    "TBT": "total-blocking-time",
    "SI": "speed-index",
    "CLS": "cumulative-layout-shift",
    "bytes": "total-byte-weight",
}


async def once(address: str, phone: bool, asked: argparse.Namespace, report: Path) -> dict[str, Any]:
    """One run; its report as Lighthouse writes it."""
    words = [
        asked.node, asked.lighthouse, address, "--quiet", "--output=json", f"--output-path={report}",
        f"--only-categories={','.join(FIGURES)}", f"--chrome-flags={' '.join(FLAGS)}",
        *(() if phone else ("--preset=desktop",)),
    ]  # fmt: skip
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    process = await asyncio.create_subprocess_exec(
        *words, env={**os.environ, "CHROME_PATH": chromium}, stdout=asyncio.subprocess.DEVNULL
    )
    if await process.wait() != 0:
        raise SystemExit(f"Lighthouse failed on {address}")
    return json.loads(await asyncio.to_thread(report.read_text, encoding="utf-8"))


async def run(asked: argparse.Namespace) -> list[dict[str, Any]]:
    """All four profiles."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place, FakeModels() as fake:
        (Path(place) / "workspace").mkdir()
        async with live_server(Path(place), fake) as server:
            for path in ("/", "/dev"):
                for phone in (True, False):
                    name = f"{'phone' if phone else 'desktop'} {path}"
                    if asked.only not in name:
                        continue
                    report = Path(asked.keep or place) / f"{name.replace(' ', '').replace('/', '_')}.json"
                    found = [
                        await once(server.address + path, phone, asked, report) for _ in range(asked.runs)
                    ]
                    row: dict[str, Any] = {"page": name}
                    for figure in FIGURES:
                        scores = [one["categories"][figure]["score"] or 0 for one in found]
                        row[figure] = round(100 * statistics.median(scores))
                    for short, audit in TIMES.items():
                        values = [one["audits"][audit]["numericValue"] for one in found]
                        row[short] = round(statistics.median(values), 3 if short == "CLS" else None)
                    row["requests"] = len(found[-1]["audits"]["network-requests"]["details"]["items"])
                    rows.append(row)
                    print(json.dumps(row), file=sys.stderr, flush=True)
    return rows


def main() -> int:
    """Measure, print, return the exit code."""
    parser = argparse.ArgumentParser(description="Lighthouse on the first page of both faces.")
    parser.add_argument("--lighthouse", required=True, metavar="FILE", help="Lighthouse's cli/index.js")
    parser.add_argument("--node", default="node")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", metavar="PART", help="'phone', 'desktop /dev', …")
    parser.add_argument(
        "--keep", default="", metavar="DIR", help="where the last report of each profile stays"
    )
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = asyncio.run(run(asked))
    print(json.dumps(rows) if asked.json else f"load {os.getloadavg()[0]:.1f}; ms, bytes\n{table(rows)}")
    return 0 if all(row[figure] >= LEAST for row in rows for figure in FIGURES) else 1


if __name__ == "__main__":
    sys.exit(main())
