"""Which file a change is made in: told by the task's words, or asked of the model, and never a wrong one (D-23)."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bowerbird.core.messages import ToolResultBlock, ToolUseBlock
from bowerbird.models.local.changing import NEEDS, Call, Calls, Choose, next_move
from bowerbird.models.local.rewrite import Rewrite
from bowerbird.models.local.situation import Done, Situation

SETS = Path(__file__).resolve().parents[2] / "benchmarks" / "embedded"
SEEN = [
    given for path in sorted(SETS.glob("*.toml")) if not (given := tomllib.loads(path.read_text()))["unseen"]
]
BLOG = {
    "README.md": "# Blog\nSet the title in the settings. The page shows 10 posts.",
    "settings.yaml": "title: Notes\nposts_per_page: 10\nlanguages:\n  - en\n",
    "src/render.ts": "export function renderPage(posts: Post[]) {\n  return posts.map(renderPost);\n}",
    "src/feed.ts": "const FEED_ITEMS = 20;\nexport function feed(posts: Post[]) { return posts; }",
    "src/feed.test.ts": "import { feed } from './feed';\ntest('feed', () => feed([]));",
    "style.css": "a { color: blue; }\nh1 { font-size: 2em; }",
    "Makefile": "build:\n\tnpm run build\nserve:\n\tnpx serve --port 5000\n",
}
BANK = {
    "Cargo.toml": '[package]\nname = "bank"\nversion = "0.2.0"\n',
    "src/account.rs": "pub const OVERDRAFT: i64 = 500;\npub fn withdraw(&mut self, amount: i64) {}",
    "src/interest.rs": "pub const YEARLY_RATE: f64 = 1.5;\npub fn add_interest(balance: f64) -> f64 { balance }",
    "src/main.rs": "mod account;\nmod interest;\nfn main() { account::open(); interest::add(); }",
    "tests/account.rs": "fn overdraft_is_kept() { assert!(withdraw(500)); }",
    "data/accounts.csv": "owner,balance\nAda,500\nBob,20\n",
}
LOOKS = {
    "web/index.html": "<h1>Boats</h1>",
    "web/boats.css": "h1 {\n  color: navy;\n}",
    "README.md": "The page.",
}
CASES = [
    (LOOKS, "Make the heading of the page teal.", "web/boats.css"),
    (BLOG, "Change the title to Field Notes.", "settings.yaml"),
    (BLOG, "Show 25 posts on a page instead of 10.", "settings.yaml"),
    (BLOG, "Put 50 items into the feed.", "src/feed.ts"),
    (BLOG, "The test of feed fails: fix it.", "src/feed.ts"),
    (BLOG, "Make the links red and underlined.", "style.css"),
    (BLOG, "Let make serve use port 6000.", "Makefile"),
    (BLOG, "Add German, de, to the languages.", "settings.yaml"),
    (BLOG, "Rename renderPost to renderEntry.", "src/render.ts"),
    (BANK, "Allow an overdraft of 800.", "src/account.rs"),
    (BANK, "Raise the yearly rate to 2.25.", "src/interest.rs"),
    (BANK, "Set the version in Cargo.toml to 0.3.0.", "Cargo.toml"),
    (BANK, "The interest is added wrongly: fix add_interest.", "src/interest.rs"),
    (BANK, "Give Bob a balance of 90 in accounts.csv.", "data/accounts.csv"),
]  # fmt: skip
KNOWN_WRONG = {  # of the sets that were unseen until lately: whoever mends one takes it out
    "I would like to type make length to have scripts/length.sh run. Can you add that target?",
}
LEAST_PICKED = 0.8


def picked(files: dict[str, str], task: str) -> str | None:
    """Return the file that is changed without asking; None where the model is asked, or none is found."""
    calls: list[Done] = []
    while True:
        now = Situation(task=task, files=tuple(sorted(files)), sorted=True, calls=tuple(calls))
        move: Any = next_move(now, NEEDS)
        if isinstance(move, Choose):
            assert move.likeliest in move.paths
        if isinstance(move, Rewrite):
            return move.path
        if not isinstance(move, Call | Calls):
            return None
        for one in move.calls if isinstance(move, Calls) else (move,):
            if one.tool not in ("search_files", "read_file"):
                return one.input["path"]
            call = ToolUseBlock(f"call_{len(calls)}", one.tool, one.input)
            calls.append(Done(call, ToolResultBlock(call.id, "…", data=result_of(one, files))))


def result_of(move: Call, files: dict[str, str]) -> dict[str, Any]:
    """Return what a search or a reading says for programs."""
    if move.tool == "read_file":
        begin = move.input["offset"] - 1
        lines = files[move.input["path"]].strip("\n").split("\n")
        end = begin + move.input.get("limit", 150)
        return {
            "content": "\n".join(lines[begin:end]),
            "next_offset": end + 1 if end < len(lines) else None,
        }
    pattern = re.compile(move.input["pattern"], re.IGNORECASE)
    rows = [
        {"path": f"/{path}", "line": n, "text": line}
        for path in sorted(files)
        for n, line in enumerate(files[path].strip("\n").split("\n"), 1)
        if pattern.search(line)
    ]
    return {"matches": rows}


@pytest.mark.parametrize(("files", "task", "path"), CASES, ids=[task for _, task, _ in CASES])
def test_the_file_is_picked_or_asked_for(files: dict[str, str], task: str, path: str):
    assert picked(files, task) in (path, None)


def test_most_files_of_the_sets_are_picked_without_asking_and_all_but_the_known_ones_rightly():
    jobs = [
        (g["files"], e["task"], e["path"])
        for g in SEEN
        for e in g.get("edits", ())
        if e["path"] in g["files"]
    ]
    found = [(picked(files, task), path, task) for files, task, path in [*jobs, *CASES]]
    assert {task for name, path, task in found if name not in (None, path)} == KNOWN_WRONG
    assert sum(row[0] is not None for row in found) >= LEAST_PICKED * len(found)
