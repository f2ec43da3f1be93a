"""Instructions of other agents, read where there is no AGENTS.md (UI-79)."""

import pytest

from bowerbird.memory import read_memory
from bowerbird.workspace import Workspace


@pytest.mark.parametrize(
    ("files", "read"),
    [
        (("CLAUDE.md", "GEMINI.md"), ["CLAUDE.md"]),
        ((".cursorrules",), [".cursorrules"]),
        (("AGENTS.md", "CLAUDE.md"), ["AGENTS.md"]),
        (("MEMORY.md", "GEMINI.md"), ["MEMORY.md", "GEMINI.md"]),
    ],
)
async def test_the_first_that_exists_stands_for_agents_md(tmp_path, files, read):
    """UI-79: one of them, as landed."""
    project = tmp_path / "project"
    project.mkdir()
    for name in files:
        (project / name).write_text(f"rules of {name}\n")
    with Workspace(project, data_dir=tmp_path / "data") as workspace:
        branch = workspace.branch()
        found = await read_memory(branch)
    assert [file.name for file in found] == read
    assert found[-1].text == f"rules of {read[-1]}"
