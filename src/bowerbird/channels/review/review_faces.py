"""How the cards of a review look (AS-25, AS-26). Pure.

Here: text and buttons of a summary and of the questions that follow. Not here: what the buttons do
(`review_cards.py`).
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from bowerbird.channels.cards import Face, Option
from bowerbird.channels.review.summary import MOST_FILES, Summary, plural, quoted, text_of

if TYPE_CHECKING:
    from bowerbird.workspace import Landing

PAGE = 8  # files to tick on one page
LABEL_CHARS = 48


def whole(summary: Summary) -> Face:
    """Return a summary with everything that can be done with it."""
    if summary.is_empty:
        return Face("There is nothing to land.")
    first = [Option("Land", "land", who="owner")]
    if len(summary.rows) > 1:
        first.append(Option("Choose", "choose", who="owner"))
    return Face(text_of(summary), (first, [Option("Diff", "diff"), Option("Discard", "discard")]))


def ask_flagged(paths: Sequence[str], verb: str) -> Face:
    """Return the question that names the paths which land only when a person accepts them."""
    names = [f"- `{quoted(path)}`" for path in paths[:MOST_FILES]]
    if len(paths) > MOST_FILES:
        names.append(f"… and {len(paths) - MOST_FILES} more")
    text = "\n".join(["**These files do something by themselves once they land:**", *names])
    return Face(text, ([Option("Land these, too", verb, who="owner")], [Option("Back", "back")]))


def ask_discard(summary: Summary) -> Face:
    """Return the question before everything is thrown away."""
    text = f"**Throw {plural(len(summary.rows), 'changed file')} away?** They can be restored for 7 days."
    return Face(text, ([Option("Discard all", "discardall")], [Option("Back", "back")]))


def choosing(summary: Summary, ticked: Collection[int], page: int) -> Face:
    """Return the list of files with ticks, a page of it."""
    pages = max(1, -(-len(summary.rows) // PAGE))
    page = min(max(page, 0), pages - 1)
    rows: list[Sequence[Option]] = []
    for index in range(page * PAGE, min(len(summary.rows), (page + 1) * PAGE)):
        row = summary.rows[index]
        mark = "☑" if index in ticked else "☐"
        flag = "" if row.grade == "free" else " ⚠"
        rows.append((Option(f"{mark}{flag} {_short(row.path)}", "tick", str(index), who="owner"),))
    if pages > 1:
        turn = [("‹", page - 1), ("›", page + 1)]
        rows.append([Option(label, "page", str(to), who="owner") for label, to in turn if 0 <= to < pages])
    count = len(ticked)
    rows.append([Option(f"Land {plural(count, 'file')}", "landsome", who="owner"), Option("Back", "back")])
    where = f" (page {page + 1} of {pages})" if pages > 1 else ""
    return Face(f"**Tick what is to land**{where}", rows)


def landed_text(landing: "Landing") -> str:
    """Return what is said of a landing."""
    added = sum(1 for entry in landing.entries if entry.op in ("create", "mkdir"))
    gone = sum(1 for entry in landing.entries if entry.op in ("delete", "rmdir"))
    rest = len(landing.entries) - added - gone
    parts = [
        f"{count} {word}" for count, word in ((added, "new"), (rest, "changed"), (gone, "deleted")) if count
    ]
    files = plural(len(landing.entries), "file")
    return f"Landed {files} ({', '.join(parts)}) as {landing.id}." if parts else f"Landed as {landing.id}."


def _short(path: str) -> str:
    name = quoted(path)
    return name if len(name) <= LABEL_CHARS else "…" + name[1 - LABEL_CHARS :]
