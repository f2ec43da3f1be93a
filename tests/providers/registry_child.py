"""A process that asks an agent and is killed while it waits: `registry_child.py DATA_DIR URL`."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.provider_registry import registry_at

from bowerbird.providers.contract.types import AgentRequest


async def main() -> None:
    async with registry_at(Path(sys.argv[1]), sys.argv[2]) as registry:
        await registry.run("claude", AgentRequest("are you there?", session_id="mine"), owner="")


asyncio.run(main())
