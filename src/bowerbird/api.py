"""The public face of the library: where agents meet settings.

Here: `Agent` with models from settings, `create_agent` with the journal of threads. Not here: the
loop (`agent`), sessions, opening an application (`app`), any door.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast, overload

from bowerbird.agent.agent import Agent as BoundAgent
from bowerbird.agent.inputs import chat_messages
from bowerbird.agent.options import MEMORY
from bowerbird.agent.result import OutputT
from bowerbird.agent.thread_messages import ThreadMessage, plain_messages, thread_message
from bowerbird.agent.value import AgentChanges
from bowerbird.core.errors import (
    BowerbirdError,
    InvalidArgument,
    ModelError,
    NoModel,
    SessionError,
    UnknownSession,
)
from bowerbird.core.ids import new_id
from bowerbird.core.messages import Message, message_to_data
from bowerbird.core.threads import to_thread

if TYPE_CHECKING:
    from bowerbird.agent.delegates import LibraryDelegate
    from bowerbird.app import Application
    from bowerbird.app.features.mcp import McpServers
    from bowerbird.config import AppConfig, Loaded
    from bowerbird.models.protocol import Model
    from bowerbird.sessions.values import Receipt, TurnInfo
    from bowerbird.tools.processes.family import ProcessSetup
    from bowerbird.workspace import Workspace

__all__ = ["Agent", "Checkpointer", "ThreadAgent", "create_agent"]

OtherT = TypeVar("OtherT")


class Agent(BoundAgent[OutputT]):
    __doc__ = BoundAgent.__doc__

    __slots__ = ()

    if TYPE_CHECKING:  # as above, of this class

        @overload
        def replace(self, **changes: Unpack[AgentChanges]) -> Self: ...
        @overload
        def replace(
            self, *, data_model: type[OtherT] | None, **changes: Unpack[AgentChanges]
        ) -> "Agent[OtherT]": ...
        def replace(self, **changes: Any) -> "Agent[Any]": ...

    async def _open_model(self) -> "tuple[Model, bool]":
        model = self._options.language_model
        if model is not None and not isinstance(model, str):
            return model, False
        return await to_thread(_model_from_settings, model, self._options.workdir), True

    async def _new_delegate(self) -> "LibraryDelegate | None":
        return await to_thread(_delegation_from_settings, self, self._handle.setup)

    def _new_workspace(self) -> "Workspace":
        return _workspace_from_settings(self._options.workdir, self._options.data_dir)

    async def _process_setup(self) -> "ProcessSetup":
        return await to_thread(_setup_from_settings, self._options.workdir)


def _workspace_from_settings(workdir: Path | None, data_dir: str | Path | None) -> "Workspace":
    """Open `workdir` as the command does: same place, hidden paths, limits and flags. Blocks.

    Raises:
        ConfigError: the settings are wrong. StoreError: the data directory cannot be made.
    """
    from bowerbird.app.mapping import git_rules, landing_rules, workspace_limits
    from bowerbird.app.own import make_data_dir
    from bowerbird.config import load_settings
    from bowerbird.workspace import Workspace

    loaded = load_settings(workspace=workdir)
    place = loaded.settings.agent.data_dir if data_dir is None else data_dir
    return Workspace(
        workdir,
        data_dir=place if place == MEMORY else make_data_dir(str(place)),
        hide=loaded.settings.workspace.hidden,
        limits=workspace_limits(loaded.settings),
        rules=landing_rules(loaded, workdir),
        git=git_rules(loaded.settings),
        trash_days=None,  # sessions there say what can still be restored (`sessions.retention`)
    )


def _setup_from_settings(workdir: Path | None) -> "ProcessSetup":
    """Return how the settings for `workdir` say that processes are run."""
    from bowerbird.app.sandboxes import process_settings, sandbox_settings
    from bowerbird.config import load_settings
    from bowerbird.tools.processes.family import ProcessSetup

    loaded = load_settings(workspace=workdir)
    return ProcessSetup(sandbox_settings(loaded.settings, loaded.files), process_settings(loaded.settings))


def _delegation_from_settings(agent: Agent[Any], setup: "ProcessSetup | None") -> "LibraryDelegate":
    """Return what runs the subagents of `agent` as the settings for its directory say."""
    from bowerbird.app.features.subagents import subagent_rules
    from bowerbird.config import load_settings
    from bowerbird.subagents.in_process import InProcessRunner
    from bowerbird.subagents.offers import LibraryDelegation

    options = agent._options  # pyright: ignore[reportPrivateUsage] - this module is the class's second half
    settings = load_settings(workspace=options.workdir).settings
    runner = InProcessRunner(
        agent,
        setup if setup is not None else _setup_from_settings(options.workdir),
        model=settings.agent.subagent_model,
        tiers=tuple(sorted(settings.model_router.tiers)) if settings.model_router.enabled else (),
        provider=settings.provider.name,
    )
    rules = subagent_rules(settings, max_depth=options.max_subagent_depth)
    return LibraryDelegation(runner, rules, runner.forks)


def _model_from_settings(name: str | None, workdir: Path | None) -> "Model":
    """Open the model called `name`, or the configured one; raises NoModel when it cannot be asked."""
    from bowerbird.app import choose_model, model_settings
    from bowerbird.config import load_settings
    from bowerbird.models import open_model, open_router

    loaded = load_settings(workspace=workdir)
    settings = model_settings(loaded)
    if name is None and settings.router.enabled:
        return open_router(settings)
    if name is not None and name.startswith("tier:"):
        return open_router(settings).switch(name.removeprefix("tier:"))
    return open_model(choose_model(loaded, name).name, settings)


async def create_agent(config: "AppConfig") -> "tuple[ThreadAgent, Checkpointer, McpServers | None]":
    """Return an agent whose threads are durable, the store they are in, and the MCP client.

    Args:
        config: settings. `load_settings(kind="serve").settings` are those of a server: WORKSPACE_DIR,
            DATABASE_URL and `.env` count. `load_settings().settings` are those of the command, where they do
            not; agents then work in `agent.workspace`.

    Returns:
        The agent, its checkpointer (the journal's store), and the client of the MCP servers, None when
        there are none configured. Closing the checkpointer closes that too.

    Raises:
        ConfigError: settings or a default tier are unusable; what was opened is closed.

    Example:
        agent, checkpointer, mcp_client = await create_agent(load_settings(kind="serve").settings)
        answer = await agent.ainvoke(
            {"messages": [{"role": "user", "content": "hello"}]},
            config={"configurable": {"thread_id": "telegram_12345"}},
        )
        await checkpointer.aclose()
    """
    from bowerbird.app import open_application
    from bowerbird.app.features.mcp import SessionMcp

    loaded = _loaded(config)
    router = config.model_router
    name = (
        f"tier:{router.default_tier}" if router.enabled else f"{config.provider.name}:{_model_name(loaded)}"
    )
    async with AsyncExitStack() as opening:
        application = await opening.enter_async_context(open_application(loaded, model=name))
        # A model that cannot be built must be said now, not at the first message.
        if router.enabled:
            _ = application.maker.pool.router
        else:
            application.maker.pool.get(name)
        workspace = Path(config.agent.workspace)
        await to_thread(workspace.mkdir, parents=True, exist_ok=True)
        held = opening.pop_all()
    servers = application.sessions.part(SessionMcp).servers
    return ThreadAgent(application, workspace), Checkpointer(held), servers if servers.specs else None


class Checkpointer:
    """The store that an agent's threads are in; closing it ends everything the agent opened."""

    def __init__(self, held: AsyncExitStack) -> None:
        self._held = held
        self._closing = asyncio.Lock()

    async def aclose(self) -> None:
        """Stop running turns, which stay resumable, and close the store; may be called again."""
        async with self._closing:
            await self._held.aclose()


class ThreadAgent:
    """An agent with a journal per thread: one thread is serial, threads are parallel."""

    def __init__(self, application: "Application", workspace: Path) -> None:
        self._application = application
        self._workspace = workspace
        self._making = asyncio.Lock()

    async def ainvoke(
        self, state: Mapping[str, Any], config: Mapping[str, Any] | None = None
    ) -> dict[str, list[ThreadMessage]]:
        """Answer `state["messages"]` in a thread.

        Args:
            state: `{"messages": [{"role": "user", "content": …}]}`; the thread's earlier ones are known.
                Texts, pairs `("user", …)` and message objects of LangChain are taken, too.
            config: `{"configurable": {"thread_id": …, "channel"?, "chat_id"?, "user_id"?}}`.

        Returns:
            `{"messages": […]}`: all messages of the thread, the answer last. Each is a dictionary with the
            attributes `content` (its text), `type` and `tool_calls`.

        Raises:
            InvalidArgument: no thread id, or no user message. ModelError: the model failed.
        """
        thread_id, receipt = await self._submit(state, config)
        ended = await self._application.sessions.wait(receipt.turn_id)
        _raise_failure(ended)
        return {"messages": await self._messages(thread_id)}

    async def astream(
        self, state: Mapping[str, Any], config: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[dict[str, list[ThreadMessage]], None]:
        """Yield `{"messages": [message]}` for each message of the turn as it is stored; see `ainvoke`."""
        thread_id, receipt = await self._submit(state, config)
        sessions = self._application.sessions
        shown = 0
        waiting = asyncio.ensure_future(sessions.wait(receipt.turn_id))
        try:
            with sessions.subscribe(thread_id) as news:
                while not waiting.done():
                    heard = asyncio.ensure_future(anext(news))
                    await asyncio.wait({waiting, heard}, return_when=asyncio.FIRST_COMPLETED)
                    committed = heard.done() and heard.result().seq is not None
                    heard.cancel()
                    if committed:
                        for message in (fresh := await self._messages(thread_id, receipt.turn_id))[shown:-1]:
                            yield {"messages": [message]}
                        # The newest one may still grow: results join their message one by one.
                        shown = max(shown, len(fresh) - 1)
            _raise_failure(await waiting)
            for message in (await self._messages(thread_id, receipt.turn_id))[shown:]:
                yield {"messages": [message]}
        finally:
            waiting.cancel()

    async def _submit(
        self, state: Mapping[str, Any], config: Mapping[str, Any] | None
    ) -> "tuple[str, Receipt]":
        given = cast("Mapping[str, Any]", (config or {}).get("configurable") or {})
        thread_id = given.get("thread_id")
        if not isinstance(thread_id, str) or not thread_id:
            raise InvalidArgument("config['configurable']['thread_id'] is missing; name the thread")
        if "messages" not in state:
            raise InvalidArgument("the state has no 'messages'")
        said = _newest_of_user(chat_messages({"messages": plain_messages(state["messages"])}))
        await self._ensure(thread_id, given)
        await self._application.drive(thread_id)
        content = [block for m in said for block in message_to_data(m)["content"]]
        receipt = await self._application.sessions.submit(
            thread_id,
            {"content": content},
            door=str(given.get("channel") or "library"),
            sender={"id": given.get("user_id")},
            dedupe_key=new_id("i"),
        )
        if receipt.open_request is not None:
            raise SessionError(
                f"thread {thread_id} has an open question, {receipt.open_request}; the message was kept "
                "and is read once that is answered or its turn is cancelled"
            )
        return thread_id, receipt

    async def _ensure(self, thread_id: str, given: Mapping[str, Any]) -> None:
        from bowerbird.sessions.values import NewSession
        from bowerbird.store.rows.sessions import get_session

        async with self._making:  # two first messages of one thread make it once
            sessions = self._application.sessions
            try:
                await sessions.store.read(lambda c: get_session(c, thread_id))
            except UnknownSession:
                settings = self._application.loaded.settings
                new = NewSession(
                    thread_id=thread_id,
                    kind="chat" if given.get("channel") else "cli",
                    channel=_text(given.get("channel")),
                    chat_id=_text(given.get("chat_id")),
                    owner=_text(given.get("user_id")),
                    workspace=str(self._workspace.resolve()),
                    policy=settings.workspace.landing,
                )
                await sessions.create(new)

    async def _messages(self, thread_id: str, turn_id: str | None = None) -> list[ThreadMessage]:
        """Return the messages of a thread, or of one turn of it."""
        from bowerbird.sessions.journal.history import load

        records = await self._application.sessions.history(thread_id)
        mine = [r for r in records if turn_id is None or r.turn == turn_id]
        return [thread_message(m) for m in load(mine, turn_id or "").history.messages]


def _raise_failure(turn: "TurnInfo") -> None:
    if turn.state != "failed":
        return
    error = turn.error or {}
    message = str(error.get("message") or f"the turn failed: {turn.stop_reason}")
    if turn.stop_reason == "error":
        raise ModelError(message, kind="server", retryable=bool(error.get("retryable")))
    raise BowerbirdError(message)


def _newest_of_user(messages: Sequence[Message]) -> list[Message]:
    newest: list[Message] = []
    for message in reversed(messages):
        if message.role != "user":
            break
        newest.insert(0, message)
    if not newest:
        raise InvalidArgument("the last of 'messages' is not the user's; there is nothing to answer")
    return newest


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _loaded(config: "AppConfig | Loaded") -> "Loaded":
    """Return settings made by a program in the form that names their origins."""
    from bowerbird.config import Loaded
    from bowerbird.config.layers import Leaf, Origin

    if isinstance(config, Loaded):
        return config
    by_program = Origin("flag", "given by the program")
    leaves = {
        (section, key): Leaf(getattr(getattr(config, section), key), by_program)
        for section in config.model_fields_set
        for key in getattr(getattr(config, section), "model_fields_set", ())
    }
    return Loaded(
        settings=config, leaves=leaves, errors=(), warnings=(), notes=(), bad={}, file=None, files=(),
        base_dir=Path.cwd(),
    )  # fmt: skip


def _model_name(loaded: "Loaded") -> str:
    from bowerbird.app import model_settings

    name = model_settings(loaded).model
    if not name:
        raise NoModel("provider.model is blank; name a model")
    return name
