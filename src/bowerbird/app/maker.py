"""A session's turn from settings and files: model, tools, instructions, limits, policy.

Here: the composition of one `TurnRun`, anew for each attempt. Not here: the loop, the
journal, who drives the turn.
"""

import logging
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bowerbird.agent.branch_files import BranchStore
from bowerbird.agent.prompt import files_block, hidden_names, load_preset, system_blocks
from bowerbird.agent.turn import TurnRun
from bowerbird.app.families import ToolFamilies
from bowerbird.app.mapping import model_settings, turn_limits, turn_policy
from bowerbird.app.mcp import McpServers
from bowerbird.app.model_imports import import_for
from bowerbird.app.sandboxes import SandboxNews, session_processes
from bowerbird.app.tracing import TracedRouter
from bowerbird.config import Loaded
from bowerbird.core.errors import ConfigError, InvalidArgument
from bowerbird.core.requests import Effort, Thinking
from bowerbird.core.threads import to_thread
from bowerbird.memory import read_memory
from bowerbird.memory.rewriting import FILE as MEMORY_FILE
from bowerbird.models.registry import ModelPool
from bowerbird.skills import SkillLibrary, prompt_lines
from bowerbird.tools import Tool, Toolset
from bowerbird.tools.processes.family import Processes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bowerbird.agent.turn import Router
    from bowerbird.app.background import BackgroundEnds
    from bowerbird.app.boards import SessionRecords
    from bowerbird.app.tracing import Traces
    from bowerbird.models.protocol import Model
    from bowerbird.models.providers.content import BlobReader
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.sandbox.python.sessions import PythonSessions
    from bowerbird.sessions.subagents.runner import Children
    from bowerbird.sessions.teams.teams import Teams
    from bowerbird.sessions.turn_maker import TurnContext
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.workspace import Branch

_log = logging.getLogger(__name__)


class SettingsTurnMaker:
    """Makes turns as settings say; shared by all sessions of a process.

    Args:
        loaded: settings. model: what sessions without a model of their own run on.
        attended: a person can be asked. blobs: reads files that messages name.
        sandboxes: run commands; whoever made them closes them. None = no commands.
        news: learns whose branch is whose.

    Attributes:
        mcp: the MCP servers; the first turn that may use one starts it.
        traces: records model calls of sessions that want it; None = nobody does.
        remembered: gives the memory that is kept of a session's user and workspace.
        named_hosts: gives the hosts that people wrote in a session.
        records: task boards and lists. background: ends of background commands. None = not kept.

    Raises:
        ConfigError: an MCP server has neither command nor url, or both.
    """

    def __init__(
        self,
        loaded: Loaded,
        *,
        model: str,
        attended: bool,
        blobs: "BlobReader | None" = None,
        sandboxes: "SandboxHost | None" = None,
        news: "SandboxNews | None" = None,
    ) -> None:
        self._sandboxes = sandboxes
        self._news = news
        self.settings = loaded.settings
        self.pool = ModelPool(model_settings(loaded), blobs)
        self._blobs = blobs
        self._left: list[ModelPool | McpServers] = []  # of earlier settings; turns may still use them
        self._model = model
        self._attended = attended
        self._python: PythonSessions | None = None
        self.mcp = McpServers(loaded.settings, sandboxes)
        self.traces: Traces | None = None
        self.records: SessionRecords | None = None
        self.background: BackgroundEnds | None = None
        self.children: Children | None = None
        self.teams: Teams | None = None
        self.remembered: Callable[[SessionRow], Awaitable[str]] | None = None
        self.named_hosts: Callable[[str], Awaitable[frozenset[str]]] | None = None

    def use(self, loaded: Loaded, model: str) -> None:
        """Make turns that begin from now on from other settings; those that run keep theirs (CF-13).

        Raises:
            ConfigError: an MCP server has neither command nor url, or both; nothing is changed.
        """
        mcp = McpServers(loaded.settings, self._sandboxes)
        if mcp.specs != self.mcp.specs:
            self._left.append(self.mcp)
            self.mcp = mcp
        self._left.append(self.pool)
        self.settings = loaded.settings
        self.pool = ModelPool(model_settings(loaded), self._blobs)
        self._model = model
        self.__dict__.pop("_families", None)
        if self.traces is not None:
            self.traces.use(self.pool.settings)

    def model_of(self, session: "SessionRow") -> str:
        """Return the name of the model that `session` runs on."""
        return str(session.flags.get("model") or self._model)

    def window_of(self, model: str) -> int:
        """Return the tokens of context a turn plans with.

        Args:
            model: `provider:model` that answers, "" for what sessions run on; one that cannot be opened
                has what settings say.
        """
        limit = self.settings.agent.context_window
        try:
            return min(limit, self._open(model or self._model, "")[0].info.context_window)
        except ConfigError:
            return limit  # say a session of the past, whose provider is no longer there

    async def make(self, context: "TurnContext") -> TurnRun:
        """See `sessions.setup.TurnMaker`."""
        settings, session = self.settings, context.session
        flags = {**session.flags, **context.changes}
        name = self.model_of(session)
        await import_for(name, self.pool.settings)
        model, tier = self._open(name, context.tier or str(flags.get("tier") or ""))
        router: Router | None = self.pool.router if name.startswith("tier:") else None
        compact_name = self.settings.agent.compact_model
        compact_model = self.pool.get(compact_name) if compact_name else None
        if flags.get("enable_tracing") and self.traces is not None:
            traced = await self.traces.tracer(session.thread_id, context.turn.turn_id)
            model, router = traced(model), TracedRouter(router, traced) if router is not None else None
            compact_model = traced(compact_model) if compact_model is not None else None
        # A teammate's tools are fixed: none of them reads skills (DE-55).
        library = self._skills(context.branch) if session.kind != "teammate" else None
        processes = await self._processes(context, flags)
        tools = self._tools(library, processes, plan=bool(flags.get("enable_plan_mode")))
        files = BranchStore(context.branch)
        provider, agent = settings.provider, settings.agent
        temperature = agent.temperature if provider.temperature is None else provider.temperature
        remember = _is_on(flags, "memory", self.settings.memory.enabled)
        named = await self.named_hosts(session.thread_id) if self.named_hosts is not None else ()
        system = await self._system(session, context.branch, library, processes.line, memory=remember)
        if model.info.small:
            system = (*system, await files_block(context.branch))
        run = TurnRun(
            model=model,
            tools=tools,
            more_tools=self.mcp.for_turn(context.branch),
            branch=context.branch,
            system=system,
            compact=flags.get("compact"),
            limits=turn_limits(settings, flags, model.info.name),
            policy=turn_policy(settings, flags, named),
            mode="plan" if flags.get("enable_plan_mode") else "normal",
            transcripts=files,
            spill=files.spill,
            notices=processes.notices if self.background is None else await self.background.notices(context),
            notes=None if self.records is None else await self.records.turn(context),
            router=router,
            tier=tier,
            compact_model=compact_model,
            compact_temperature=settings.agent.compact_temperature,
            temperature=temperature,
            thinking=self._thinking(session, flags),
            agent="main",
            configurable={
                "channel": session.channel, "chat_id": session.chat_id, "user_id": context.sender.get("id")
            },
            tail=f"Date: {datetime.now(UTC):%Y-%m-%d}",
        )  # fmt: skip
        if self.children is not None and session.kind != "teammate":
            run = self.children.completed(run, context)
        return run if self.teams is None else await self.teams.completed(run, context)

    async def prepare(self) -> None:
        """Import what the model of new sessions needs, before its first turn; raises ConfigError."""
        if self._model:
            await import_for(self._model, self.pool.settings)

    def model_named(self, name: str) -> "Model":
        """Return the open model `name`, a tier's too; raises ConfigError."""
        return self._open(name, "")[0]

    def _open(self, name: str, tier: str) -> "tuple[Model, str]":
        if not name.startswith("tier:"):
            return self.pool.get(name), ""
        router = self.pool.router
        if router is None:
            raise InvalidArgument("model_router is off; name a model instead of a tier")
        active = tier or name.removeprefix("tier:")
        return router.switch(active), active

    def _skills(self, branch: "Branch") -> SkillLibrary | None:
        section = self.settings.skills
        return SkillLibrary(branch.root, section.directory) if section.enabled else None

    async def _processes(self, context: "TurnContext", flags: dict[str, Any]) -> Processes:
        """Return what this turn can do with processes; the next command sees the user's edits."""
        host, branch = self._sandboxes, context.branch
        if host is None:
            return Processes()
        if self._news is not None:
            self._news.belongs(branch.id, context.session.thread_id)
        await host.new_turn(branch.id)
        families = self._families
        return await session_processes(
            host, self.settings, branch, flags.get("network"), lambda mode: families.processes(host, mode)
        )

    def _tools(self, library: SkillLibrary | None, processes: Processes, *, plan: bool) -> Toolset:
        return offered_tools(
            self.settings,
            library,
            self._interpreters(),
            processes,
            attended=self._attended,
            plan=plan,
            tiers=self._tiers(),
            families=self._families,
        )

    @cached_property
    def _families(self) -> ToolFamilies:
        return ToolFamilies(self.settings, self._interpreters(), self.records)

    def _interpreters(self) -> "PythonSessions":
        if self._python is None:
            from bowerbird.sandbox.python.sessions import DumpFiles, PythonSessions

            kept = DumpFiles(Path(self.settings.agent.data_dir) / "python")
            self._python = PythonSessions(dumps=kept)
        return self._python

    async def turn_ended(self, branch_id: str) -> None:
        """See `sessions.setup.TurnMaker`."""
        for servers in (self.mcp, *(left for left in self._left if isinstance(left, McpServers))):
            await servers.turn_ended(branch_id)
        if self.records is not None:
            self.records.turn_ended(branch_id)
        if self._sandboxes is not None:
            await self._sandboxes.turn_ended(branch_id)
        if self._python is None:
            return
        try:
            await self._python.end_turn(branch_id)
        except OSError as error:
            _log.warning("Python names of %s are not kept over a restart: %s", branch_id, error)

    async def rolled_back(self, branch_id: str) -> None:
        """See `sessions.setup.TurnMaker`."""
        if self.records is not None:
            self.records.went_back(branch_id)
        await self._interpreters().rolled_back(branch_id)

    def _tiers(self) -> tuple[str, ...]:
        router = self.pool.router
        return router.tiers if router is not None else ()

    async def _system(
        self,
        session: "SessionRow",
        branch: "Branch",
        library: SkillLibrary | None,
        sandbox: str,
        *,
        memory: bool,
    ) -> tuple[str, ...]:
        settings = self.settings
        preset = load_preset(session.preset or settings.agent.preset, Path(settings.agent.prompts_dir))
        instructions = session.system_prompt or preset.for_workspace(branch.root)
        remembered = await read_memory(branch, protected=settings.memory.protected) if memory else []
        kept = await self.remembered(session) if memory and self.remembered is not None else ""
        offered = await to_thread(library.offered) if library is not None else []
        return system_blocks(
            instructions,
            workspace=branch.root,
            sandbox=sandbox,
            hidden=await hidden_names(branch),
            memory=[*((f.name, f.text) for f in remembered), *([(MEMORY_FILE, kept)] if kept else [])],
            skills=prompt_lines(offered) if offered else "",
        )

    def _thinking(self, session: "SessionRow", flags: dict[str, Any]) -> Thinking:
        agent = self.settings.agent
        enabled = _is_on(flags, "enable_thinking", agent.thinking_enabled)
        effort = str(session.thinking_effort or agent.thinking_effort)
        return Thinking(enabled=enabled, effort=cast("Effort", "max" if effort == "xhigh" else effort))

    async def aclose(self) -> None:
        """Close MCP servers, interpreters and models."""
        await self.mcp.aclose()
        if self._python is not None:
            await self._python.aclose()
        await self.pool.aclose()
        for former in self._left:
            await former.aclose()


def _is_on(flags: dict[str, Any], name: str, default: bool) -> bool:
    value = flags.get(name)
    return default if value is None else bool(value)


def offered_tools(
    settings: Any,
    library: SkillLibrary | None,
    python: "PythonSessions | None" = None,
    processes: Processes | None = None,
    *,
    attended: bool,
    plan: bool = False,
    tiers: tuple[str, ...] = (),
    families: ToolFamilies | None = None,
) -> Toolset:
    """Return the tools that sessions are offered, in their fixed order.

    Args:
        settings: the tree. library: skills, None for none. python: interpreters.
        processes: tools that run commands, or why there are none.
        attended: a person can answer.
        plan: the turn is in plan mode. tiers: of the router.
        families: made before, for all turns of a process; None makes them.
    """
    from bowerbird.tools.plan import model_tools

    runs, made = processes or Processes(), families or ToolFamilies(settings, python)
    tools: list[Tool] = [*made.files, *runs.tools, *made.python, *made.think]
    tools += [*made.skills(library), *made.web, *made.records]
    wanted = {"compact", "exit_plan_mode" if plan else "enter_plan_mode"}
    if attended:
        wanted.add("ask_user")
    tools += [tool for tool in made.plan if tool.name in wanted]
    tools += model_tools(tiers) if tiers else []
    return Toolset(tools, absent=runs.absent)
