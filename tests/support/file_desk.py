"""A workspace directory, a branch of it and one agent's file tools, for the tools' tests."""

from pathlib import Path
from typing import Any

from bowerbird.tools import ReadTracker, ToolContext, ToolResult, Toolset
from bowerbird.workspace import Workspace


class Desk:
    """A workspace directory, a branch of it and one agent's tools."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = Workspace(root)
        self.branch: Any = self.workspace.branch()
        self.tools = Toolset.builtin("files", "code")
        self.reads = ReadTracker()
        self.calls = 0

    def put(self, path: str, content: str | bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    def context(self, **changes: Any) -> ToolContext:
        self.calls += 1
        call = f"call_{self.calls}"
        return ToolContext(branch=self.branch.bound("t_1", call), call=call, reads=self.reads, **changes)

    async def use(self, name: str, /, **arguments: Any) -> ToolResult:
        found = self.tools.resolve(name, arguments)
        assert found is not None
        return await found[0].call(found[1], self.context())

    async def text(self, name: str, /, **arguments: Any) -> str:
        result = await self.use(name, **arguments)
        assert not result.is_error, result.text
        return result.text
