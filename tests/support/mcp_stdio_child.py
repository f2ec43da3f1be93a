"""A `bowerbird mcp serve` whose application has the registry of tests, and whose libraries print.

Run as a program in the directory to be served. Prompts are those of `agent_registry.py`; `print TEXT` prints
where a careless library would.
"""

import os
import sys
from contextlib import asynccontextmanager
from typing import Any

from support.agent_registry import Registry, use_agents

import bowerbird.app
from bowerbird.cli.main import main

print("printed at import", file=sys.stderr)


class Noisy(Registry):
    async def run(self, name: str, request: Any, **more: Any) -> Any:
        if request.prompt.startswith("print "):
            print(request.prompt)
            os.system("echo a child says so")
        return await super().run(name, request, **more)


real = bowerbird.app.open_application


@asynccontextmanager
async def with_agents(*given: Any, **options: Any) -> Any:
    async with real(*given, **options) as application:
        use_agents(application, Noisy())
        yield application


bowerbird.app.open_application = with_agents  # type: ignore[assignment]
sys.argv = ["bowerbird", "mcp", "serve"]
main()
