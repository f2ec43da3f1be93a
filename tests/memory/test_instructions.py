"""Instructions for agents at the top of a directory: which are read, in which order, each once."""

from pathlib import Path

import pytest

from bowerbird.memory import read_memory
from bowerbird.memory.files import MAX_IMPORTED
from bowerbird.workspace import Workspace


async def read_of(
    tmp_path: Path, files: dict[str, str], links: dict[str, str] | None = None
) -> list[tuple[str, str]]:
    project = tmp_path / "project"
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    for name, to in (links or {}).items():
        (project / name).symlink_to(to)
    with Workspace(project, data_dir=tmp_path / "data") as workspace:
        return [(file.name, file.text) for file in await read_memory(workspace.branch())]


@pytest.mark.parametrize(
    ("files", "read"),
    [
        ("CLAUDE.md GEMINI.md", "CLAUDE.md"),
        (".cursorrules", ".cursorrules"),
        ("GEMINI.md .cursorrules", "GEMINI.md"),
        ("CLAUDE.md AGENTS.md GEMINI.md", "AGENTS.md CLAUDE.md"),
        ("MEMORY.md GEMINI.md", "MEMORY.md GEMINI.md"),
        ("MEMORY.md AGENTS.md GEMINI.md", "MEMORY.md AGENTS.md"),
        ("CLAUDE.local.md .claude/CLAUDE.md AGENTS.md", "AGENTS.md .claude/CLAUDE.md CLAUDE.local.md"),
        ("AGENTS.override.md AGENTS.md CLAUDE.md", "AGENTS.override.md CLAUDE.md"),
    ],
)
async def test_each_agents_file_is_read_where_that_agent_reads_it(
    tmp_path: Path, files: str, read: str
) -> None:
    found = await read_of(tmp_path, {name: f"rules of {name}\n" for name in files.split()})
    assert found == [(name, f"rules of {name}") for name in read.split()]


@pytest.mark.parametrize("to", ["@AGENTS.md\n", "@./AGENTS.md\n\n", "always test\n"])
async def test_what_is_the_same_is_sent_once(tmp_path: Path, to: str) -> None:
    """An import of the other, or the same words."""
    files = {"AGENTS.md": "always test\n", "CLAUDE.md": to}
    assert await read_of(tmp_path, files) == [("AGENTS.md", "always test")]


@pytest.mark.parametrize(("real", "link"), [("AGENTS.md", "CLAUDE.md"), ("CLAUDE.md", "AGENTS.md")])
async def test_a_link_from_one_to_the_other_is_sent_once(tmp_path: Path, real: str, link: str) -> None:
    found = await read_of(tmp_path, {real: "always test\n"}, {link: real})
    assert found == [("AGENTS.md", "always test")]


async def test_a_file_that_imports_the_other_and_says_more_is_read_itself(tmp_path: Path) -> None:
    files = {"AGENTS.md": "always test\n", "CLAUDE.md": "@AGENTS.md\n\nUse tabs.\n"}
    assert await read_of(tmp_path, files) == [
        ("AGENTS.md", "always test"),
        ("CLAUDE.md", "@AGENTS.md\n\nUse tabs."),
    ]


async def test_imports_of_markdown_inside_the_directory_are_read_and_nothing_else_is(tmp_path: Path) -> None:
    """A repository must not have the user's other files sent by naming them."""
    (tmp_path / "secret.md").write_text("outside")
    found = await read_of(
        tmp_path,
        {
            "CLAUDE.md": "See @docs/style.md, @.env, @../secret.md, mail a@b.md, `@docs/code.md`\n",
            "docs/style.md": "Style. @more.md @style.md\n",
            "docs/more.md": "More.\n",
            "docs/code.md": "only named\n",
            ".env": "TOKEN=1\n",
        },
        {"out.md": str(tmp_path / "secret.md")},
    )  # fmt: skip
    assert [name for name, _ in found] == ["CLAUDE.md", "docs/style.md", "docs/more.md"]


async def test_imported_files_have_a_bound_together(tmp_path: Path) -> None:
    many = {f"docs/{n}.md": f"{n} " + "x" * 20_000 for n in range(9)}
    found = await read_of(tmp_path, {"CLAUDE.md": " ".join(f"@{name}" for name in many) + " Rules."} | many)
    assert len(found) == 2 and sum(len(text) for _, text in found[1:]) <= MAX_IMPORTED
