"""A process that drives one turn whose model makes a task, killed at a named write point (`crash_child.py`)."""

import sys
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.agent_turns import NAME
from support.crash_child import Killer, arm, serve
from support.sessions import PlainMaker

from bowerbird.boards.boards import Boards
from bowerbird.boards.todos import Todos
from bowerbird.boards.tool_calls import BoardToolCalls
from bowerbird.core.errors import SessionError
from bowerbird.models import ModelSettings, ProviderSettings, RetryPolicy
from bowerbird.models.registry import open_model
from bowerbird.sessions import NewSession, SessionService, SessionSettings
from bowerbird.store import Store, StoreOptions
from bowerbird.tools.together.board import board_tools
from bowerbird.tools.together.todo import todo_tools


async def drive(config: dict[str, Any]) -> None:
    """Submit the turn, or go on with it, and wait until it stops."""
    if config.get("kill"):
        arm(Killer(config["kill"]))
    settings = ModelSettings(
        providers={"anthropic": ProviderSettings(api_key="test-key", base_url=config["models"])},
        retry=RetryPolicy(retries=0),
    )
    store = await Store.open(
        "sqlite:///agent.db", data_dir=Path(config["data"]), options=StoreOptions(min_free_mb=0)
    )
    tools = (*board_tools(BoardToolCalls(Boards(store))), *todo_tools(Todos(store)))
    maker = PlainMaker(settings, tools, model=open_model(NAME, settings))
    try:
        async with SessionService(store, maker, settings=SessionSettings(), attended=False) as service:
            thread = config["thread"]
            try:
                await service.get(thread)
            except SessionError:
                await service.create(NewSession(thread_id=thread, workspace=config["project"]))
            receipt = await service.submit(thread, "go", dedupe_key="the turn")
            await service.wait(receipt.turn_id)
    finally:
        await maker.aclose()
        await store.aclose()


if __name__ == "__main__":
    serve(drive)
