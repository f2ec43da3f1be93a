"""The manual's page of marked paths, made from the table.

Here: the page as text; `python -m bowerbird.workspace.marks.page > docs/reference/marked-paths.md` writes it,
a test compares. Not here: the table (`table.py`).
"""

import sys

from bowerbird.workspace.marks.table import FLAGS, HELD, NEEDS_ACCEPT, Row

HEAD = """# Marked paths

Made from the table in `src/bowerbird/workspace/marks/table.py`; do not edit by hand.

A landing looks at every path for two grades of caution:

- **needs_accept**: the path lands only when a person names it (`--accept PATH`, a tick of its own in the
  browser), under every landing policy.
- **held**: a landing by a person takes it and shows the mark; `turn` and `step` leave it on the branch.

Names are compared at any depth and as the least careful file system would compare them: without regard to
case, without characters that HFS+ ignores, and with the short names of NTFS. `name/` is a directory and
everything in it; `*` stands for any characters; a leading `/` means the top of the workspace.
[`landing.flag`, `landing.unflag`](settings.md) add and remove marks.

## Marks that follow from more than a name

| mark | grade | which paths |
|---|---|---|
| `git-exec` | needs_accept | everything in a git directory (also of submodules and linked working trees) \
except objects, refs, logs, `HEAD`, `index` and `packed-refs`; pointers to other object stores; every \
path that the repository's configuration names, such as its `core.hooksPath` |
| `git-dir` | needs_accept | everything that makes a directory a git directory: a `.git` that is new, and \
a bare repository, which is any directory with `HEAD` and `objects` and `refs`, or with `HEAD` and \
`commondir`. A new `.git` is accepted whole by its own name |
| `git-data` | held | objects, refs, logs, `HEAD`, `index`, `packed-refs` of a git directory that is \
there; none of it lands as a file |
| `symlink-out` | needs_accept | a link whose target is absolute, leaves the workspace when followed \
through other links, or has `..` behind a name |
| `symlink-in` | needs_accept | a link to a path that needs acceptance, or in the place of a directory of \
the table |
| `setuid` | needs_accept | a file that asks for another user's rights |
| `case-clash` | refused | a name that equals another one on the workspace's file system |
| `configured` | needs_accept | what `landing.flag` names |
| `exec-bit` | held | a file that becomes executable |
| `permissions` | held | a file that more people may read or write than before, a new one that everybody may \
write, one that its owner may no longer read or write |
| `dotfile` | held | any other path with a name in it that begins with a dot |
| `hard-link` | held | a changed file that has other names in your directory or beyond it (hard links): a \
landing replaces the file under this name, and the others keep the old bytes |
| `tainted` | held | whatever a turn wrote that had read something from outside: the web, a tool of an \
MCP server |

What git writes for itself only (`COMMIT_EDITMSG`, `ORIG_HEAD`, sample hooks, locks) stays on the branch, like
a cache, unless it is named.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *_section("needs_accept", NEEDS_ACCEPT), *_section("held", HELD)])


def _section(title: str, rows: tuple[Row, ...]) -> list[str]:
    lines = [f"## {title}", "", "| mark | paths | reason |", "|---|---|---|"]
    for row in rows:
        patterns = " ".join(f"`{pattern}`" for pattern in row.patterns.split())
        lines.append(f"| `{row.flag}` | {patterns} | {row.reason} |")
    said = [f"- `{name}`: {FLAGS[name].reason}" for name in dict.fromkeys(row.flag for row in rows)]
    return [*lines, "", *said, ""]


if __name__ == "__main__":
    sys.stdout.write(page())
