"""Hidden files as commands and a model meet them, in both tiers (D-10)."""

import asyncio
from pathlib import Path

import pytest
from support.sandboxes import bench_of

from bowerbird.config.sections.ground import HIDE
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.tools import ReadTracker, ToolContext, ToolResult, Toolset
from bowerbird.tools.files.file_tools import file_tools
from bowerbird.tools.processes.process_tools import process_tools

SECRET = "SUPERSECRETVALUE42"
FILES = {".env": f"KEY={SECRET}\n", "app/.env.local": SECRET, "tls/server.key": SECRET, "app/a.txt": "a\n",
         ".env.example": "KEY=\n"}  # fmt: skip


@pytest.mark.parametrize("tier", ["overlay", "copy"])
async def test_commands_do_not_see_hidden_files_and_the_model_is_told(tmp_path: Path, tier: str) -> None:
    """D-10: in both tiers `.env` and private keys do not exist for commands; whoever names one hears why."""
    settings = SandboxSettings(tier="copy") if tier == "copy" else None
    async with bench_of(tmp_path, FILES, settings=settings, needs=tier, hide=HIDE) as bench:
        tools = Toolset([*file_tools(), *process_tools(bench.host)])

        async def use(name: str, /, **arguments: str) -> ToolResult:
            found = tools.resolve(name, arguments)
            assert found is not None
            context = ToolContext(
                branch=bench.branch.bound("t_1", "c"), turn="t_1", call="c", reads=ReadTracker(),
                cancel=asyncio.Event(),
            )  # fmt: skip
            return await found[0].call(found[1], context)

        read = await use(
            "bash", command="cat .env app/.env.local tls/server.key; grep -r SUPERSECRET . ; ls -A . app tls"
        )
        assert SECRET not in read.text and ".env.example" in read.text
        assert (
            ".env, app/.env.local, tls/server.key: hidden from agents by the setting workspace.hide"
            in read.text
        )
        absolute = await use("bash", command=f"cat {bench.root}/.env")
        assert SECRET not in absolute.text and "workspace.hide" in absolute.text
        told = await use("run_python", code="print(open('.env').read())")
        assert SECRET not in told.text and "workspace.hide" in told.text
        assert "workspace.hide" not in (await use("bash", command="cat app/a.txt .env.example")).text
        (bench.root / "app" / ".env.new").write_text(SECRET)  # the person makes one while the sandbox is warm
        assert SECRET not in (await use("bash", command="cat app/.env.new app/*")).text
        made = await use("bash", command="echo KEY=made > .env; rm -rf tls app/.env.local; echo x > b.txt")
        assert "workspace.hide" in made.text
        listed = await use("ls", path="/")
        assert "hidden from agents by the setting workspace.hide: .env" in listed.text
        refused = await use("read_file", path=".env")
        assert refused.is_error and "workspace.hide" in refused.text
        assert "/b.txt" in bench.branch.changes().written
        bench.branch.land(partial=True)
    assert {p: (bench.root / p).read_text() for p in FILES} == FILES and (bench.root / "b.txt").exists()
