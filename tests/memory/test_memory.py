"""Memory files: AG-66, AS-41, AS-42."""

from pathlib import Path

from bowerbird.core.errors import NotFound
from bowerbird.memory import MAX_MEMORY_BYTES, read_memory


class Branch:
    """A branch whose overlay is a dict over the workspace's directory."""

    def __init__(self, root: Path | None, **overlay: bytes) -> None:
        self.root = root
        self._overlay = {f"{name}.md": text for name, text in overlay.items()}

    async def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        if path in self._overlay:
            data = self._overlay[path]
        elif self.root is not None and (self.root / path).is_file():
            data = (self.root / path).read_bytes()
        else:
            raise NotFound(f"{path} does not exist", path)
        return data[offset : None if length is None else offset + length]


async def test_files_come_in_their_order_and_absent_ones_are_skipped(tmp_path: Path) -> None:
    """AG-66."""
    for name in ("AGENTS.md", "MEMORY.md", "IDENTITY.md"):
        (tmp_path / name).write_text(f"{name} text\n")
    found = await read_memory(Branch(tmp_path))
    assert [(f.name, f.text, f.cut) for f in found] == [
        ("IDENTITY.md", "IDENTITY.md text", False),
        ("MEMORY.md", "MEMORY.md text", False),
        ("AGENTS.md", "AGENTS.md text", False),
    ]


async def test_an_agents_edit_of_a_protected_file_counts_after_landing_only(tmp_path: Path) -> None:
    """AS-42."""
    for name in ("AGENT.md", "MEMORY.md"):
        (tmp_path / name).write_text("as landed")
    branch = Branch(tmp_path, AGENT=b"edited", MEMORY=b"edited", IDENTITY=b"invented")
    assert [(f.name, f.text) for f in await read_memory(branch)] == [
        ("AGENT.md", "as landed"), ("MEMORY.md", "edited"),
    ]  # fmt: skip


async def test_a_long_file_is_cut_at_32_kib_on_a_character(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("é" * MAX_MEMORY_BYTES)
    (tmp_path / "AGENT.md").write_text("a" * (MAX_MEMORY_BYTES + 1))
    agent, memory = await read_memory(Branch(tmp_path))
    assert (agent.cut, memory.cut) == (True, True)
    assert len(agent.text.encode()) == MAX_MEMORY_BYTES
    assert set(memory.text) == {"é"}


async def test_a_protected_link_out_of_the_workspace_is_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_text("secret")
    root = tmp_path / "ws"
    root.mkdir()
    (root / "AGENT.md").symlink_to(outside)
    (root / "real.md").write_text("inside")
    (root / "IDENTITY.md").symlink_to("real.md")
    assert [(f.name, f.text) for f in await read_memory(Branch(root))] == [("IDENTITY.md", "inside")]


async def test_other_names_and_a_branch_of_nothing() -> None:
    branch = Branch(None, NOTES=b"mine", AGENT=b"not landed anywhere")
    assert [f.text for f in await read_memory(branch, ["NOTES.md", "AGENT.md"])] == ["mine"]
