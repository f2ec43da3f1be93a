"""A session's turn from settings and files: model, tools, instructions, limits, policy.

Here: the composition of one `TurnRun`, anew for each attempt. Not here: what features add to it
(`parts.py`), the loop, the journal, who drives the turn.
"""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bowerbird.agent.branch_files import BranchStore
from bowerbird.agent.prompt import files_block, hidden_names, load_preset, system_blocks
from bowerbird.agent.turn import Sampling, Storage, Summaries, TurnRun, Who
from bowerbird.app.families import ToolFamilies
from bowerbird.app.mapping import model_settings, skill_library, turn_limits, turn_policy
from bowerbird.app.model_imports import import_for
from bowerbird.app.sandboxes import Runtimes, SandboxNews, session_processes
from bowerbird.config import Loaded
from bowerbird.core.errors import ConfigError, InvalidArgument
from bowerbird.core.requests import Effort, Thinking
from bowerbird.core.threads import to_thread
from bowerbird.memory import read_memory
from bowerbird.memory.rewriting import FILE as MEMORY_FILE
from bowerbird.models.registry import ModelPool
from bowerbird.skills import SkillLibrary, prompt_lines
from bowerbird.tools import ReadTracker, Tool, Toolset
from bowerbird.tools.processes.family import Processes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bowerbird.models.protocol import Model
    from bowerbird.models.providers.content import BlobReader
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.sessions.turn_maker import TurnContext
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.workspace import Branch


class SettingsTurnMaker:
    """Makes turns as settings say; shared by all sessions of a process.

    Args:
        loaded: settings. model: what sessions without a model of their own run on.
        attended: a person can be asked. blobs: reads files that messages name.
        sandboxes, runtimes: run commands and Python; whoever made them closes them.
        news: learns whose branch is whose.
        remembered: gives the memory that is kept of a session's user and workspace.
        named_hosts: gives the hosts that people wrote in a session.
    """

    def __init__(
        self,
        loaded: Loaded,
        *,
        model: str,
        attended: bool,
        blobs: "BlobReader",
        sandboxes: "SandboxHost",
        runtimes: Runtimes,
        news: SandboxNews,
        remembered: "Callable[[SessionRow], Awaitable[str]]",
        named_hosts: "Callable[[str], Awaitable[frozenset[str]]]",
    ) -> None:
        self._sandboxes = sandboxes
        self._runtimes = runtimes
        self._news = news
        self._remembered = remembered
        self._named_hosts = named_hosts
        self.settings = loaded.settings
        self.pool = ModelPool(model_settings(loaded), blobs)
        self._blobs = blobs
        self._left: list[ModelPool] = []  # of earlier settings; turns may still use them
        self._model = model
        self._attended = attended

    def use(self, loaded: Loaded, model: str) -> None:
        """Make turns that begin from now on from other settings; those that run keep theirs."""
        self._left.append(self.pool)
        self.settings = loaded.settings
        self.pool = ModelPool(model_settings(loaded), self._blobs)
        self._model = model
        self.__dict__.pop("_families", None)

    @property
    def usual_model(self) -> str:
        """What sessions run on that name no model, "" where nothing is chosen."""
        return self._model

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
        flags = context.flags
        name = self.model_of(session)
        await import_for(name, self.pool.settings)
        model, tier = self._open(name, context.tier or str(flags.get("tier") or ""))
        # A teammate's tools are fixed: none of them reads skills.
        library = self._skills(context.branch) if session.kind != "teammate" else None
        processes = await self._processes(context, flags)
        tools = self._tools(library, processes, plan=bool(flags.get("enable_plan_mode")))
        files = BranchStore(context.branch)
        provider, agent = settings.provider, settings.agent
        temperature = provider.temperature
        if temperature is None:  # sampled, the steps of a small model are often not its likeliest
            temperature = 0.0 if model.info.small else agent.temperature
        remember = _is_on(flags, "memory", self.settings.memory.enabled)
        named = await self._named_hosts(session.thread_id)
        system = await self._system(session, context.branch, library, processes.line, memory=remember)
        if model.info.small:
            system = (*system, await files_block(context.branch))
        return TurnRun(
            model=model,
            tools=tools,
            branch=context.branch,
            system=system,
            compact=flags.get("compact"),
            limits=turn_limits(settings, flags, model.info.name),
            policy=turn_policy(settings, flags, named),
            mode="plan" if flags.get("enable_plan_mode") else "normal",
            storage=Storage(spill=files.spill, transcripts=files),
            router=self.pool.router if name.startswith("tier:") else None,
            tier=tier,
            summaries=Summaries(
                model=self.pool.get(agent.compact_model) if agent.compact_model else None,
                temperature=agent.compact_temperature,
            ),
            sampling=Sampling(temperature=temperature, thinking=self._thinking(session, flags)),
            who=Who(agent="main", configurable={
                "channel": session.channel, "chat_id": session.chat_id, "user_id": context.sender.get("id")
            }),
            dated=True,
            opening=self._git_of(session, context.branch),
            full=(flags.get("tools") or agent.tools) == "full",
            reads=await to_thread(ReadTracker, context.branch.processes().directory / "reads"),
        )  # fmt: skip

    async def prepare(self) -> None:
        """Import and make what the first turn needs, before somebody asks for it; raises ConfigError."""
        await to_thread(self._families.make)
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
        return skill_library(self.settings, branch.root)

    async def _processes(self, context: "TurnContext", flags: dict[str, Any]) -> Processes:
        """Return what this turn can do with processes; the next command sees the user's edits."""
        host, branch = self._sandboxes, context.branch
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
            processes,
            attended=self._attended,
            plan=plan,
            tiers=self._tiers(),
            families=self._families,
        )

    @cached_property
    def _families(self) -> ToolFamilies:
        return ToolFamilies(self.settings, self._runtimes.python)

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
        kept = await self._remembered(session) if memory else ""
        offered = await to_thread(library.offered) if library is not None else []
        return system_blocks(
            instructions,
            workspace=branch.root,
            sandbox=sandbox,
            hidden=await hidden_names(branch),
            memory=[*((f.name, f.text) for f in remembered), *([(MEMORY_FILE, kept)] if kept else [])],
            skills=prompt_lines(offered) if offered else "",
        )

    def _git_of(self, session: "SessionRow", branch: "Branch") -> "Callable[[], Awaitable[str]] | None":
        root = branch.root
        if root is None or session.kind in ("subagent", "teammate") or not (root / ".git").exists():
            return None
        from bowerbird.workspace.git.repository import at_start

        kept = Path(self.settings.agent.data_dir)
        return lambda: to_thread(at_start, root, kept)

    def _thinking(self, session: "SessionRow", flags: dict[str, Any]) -> Thinking | None:
        agent = self.settings.agent
        said = flags.get("enable_thinking")
        enabled = agent.thinking_enabled if said is None else bool(said)
        if enabled is None:
            return None
        effort = str(session.thinking_effort or agent.thinking_effort)
        return Thinking(enabled=enabled, effort=cast("Effort", "max" if effort == "xhigh" else effort))

    async def aclose(self) -> None:
        """Close the models."""
        await self.pool.aclose()
        for former in self._left:
            await former.aclose()


def _is_on(flags: dict[str, Any], name: str, default: bool) -> bool:
    value = flags.get(name)
    return default if value is None else bool(value)


def offered_tools(
    settings: Any,
    library: SkillLibrary | None,
    processes: Processes,
    *,
    attended: bool,
    plan: bool = False,
    tiers: tuple[str, ...] = (),
    families: ToolFamilies | None = None,
) -> Toolset:
    """Return the tools that sessions are offered, in their fixed order, before those of parts.

    Args:
        settings: the tree. library: skills, None for none.
        processes: tools that run commands, or why there are none.
        attended: a person can answer.
        plan: the turn is in plan mode. tiers: of the router.
        families: made before, for all turns of a process; None makes them.
    """
    from bowerbird.tools.plan import NO_ANSWERER, model_tools

    made = families or ToolFamilies(settings)
    tools: list[Tool] = [*made.files, *processes.tools, *made.python, *made.think]
    tools += [*made.skills(library), *made.web]
    wanted = {"compact", "exit_plan_mode"} if plan else {"compact", "enter_plan_mode", "exit_plan_mode"}
    absent = dict(processes.absent or {})
    if attended:
        wanted.add("ask_user")
    else:
        absent["ask_user"] = NO_ANSWERER
    tools += [tool for tool in made.plan if tool.name in wanted]
    tools += model_tools(tiers) if tiers else []
    return Toolset(tools, absent=absent)
