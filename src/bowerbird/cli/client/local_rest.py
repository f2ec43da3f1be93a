"""What this machine's records answer beside sessions: subagents, tournaments, memory, usage, tools.

Here: those of the local client. Not here: sessions, turns, review (`local.py`).
"""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from bowerbird.cli.client.protocol import Contest, Row
from bowerbird.cli.terminal.exits import USAGE, CliExit
from bowerbird.cli.terminal.text import one_line
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import to_iso
from bowerbird.sessions import shown
from bowerbird.sessions.live.hub import Published

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.core.events import SubagentEnd, SubagentStart
    from bowerbird.scheduler.schedules import Schedules
    from bowerbird.sessions.lookup import By, OutcomesBy
    from bowerbird.sessions.permission_rules import PermissionRules
    from bowerbird.sessions.provider_agents.part import ProviderAgents
    from bowerbird.sessions.subagents.for_doors import DoorSubagents
    from bowerbird.sessions.subagents.runner import Children
    from bowerbird.sessions.upkeep.memory_rewriting import Remembering
    from bowerbird.subagents.calls import Calls

MOST_NAMES = 200_000
MOST_RUNS = 50


class LocalRest:
    """The half of `LocalClient` that is not about a session's own turns and files."""

    def __init__(self, application: "Application", directory: Path) -> None:
        from bowerbird.app.mapping import session_defaults

        self._application = application
        self._directory = directory
        self._sessions = application.sessions
        self._defaults = session_defaults(application.loaded.settings)

    # ------------------------------------------------------------ subagents

    @property
    def _children(self) -> "Children":
        from bowerbird.sessions.subagents.runner import Children

        return self._sessions.part(Children)

    @property
    def _subagents(self) -> "DoorSubagents":
        from bowerbird.sessions.subagents.for_doors import DoorSubagents

        return DoorSubagents(self._application.store, self._children)

    async def subagents(self, thread_id: str) -> list[Row]:
        """See `Client`."""
        return [child.record() for child in await self._subagents.all(thread_id)]

    async def subagent(self, thread_id: str, handle: str) -> Row:
        """See `Client`."""
        doors = self._subagents
        child = await doors.one(thread_id, handle)
        diff, transcript = await doors.diff(child), await doors.transcript(child)
        return {**child.record(), "diff": diff, "transcript": transcript}

    async def subagent_file(self, thread_id: str, handle: str, path: str) -> Row:
        """See `Client`."""
        return await self._subagents.file(thread_id, handle, path)

    async def merge_subagent(
        self, thread_id: str, handle: str, paths: Sequence[str] | None, *, force: bool
    ) -> Row:
        """See `Client`."""
        found = await self._subagents.merge(thread_id, handle, paths, force=force)
        await self._sessions.note_changes(thread_id)
        return found

    async def discard_subagent(self, thread_id: str, handle: str) -> None:
        """See `Client`."""
        await self._subagents.discard(thread_id, handle)

    async def attempt(self, wanted: Contest, show: Callable[[Published], None]) -> Row:
        """See `Client`; who stops it stops the attempts."""
        thread_id = await self._contest_session(wanted)

        def emit(event: "SubagentStart | SubagentEnd") -> None:
            show(Published(thread_id, None, None, event))

        calls = await self._calls(thread_id, emit)
        checks = wanted.checks or calls.tree.rules.checks
        found = await calls.tournament(
            wanted.task, wanted.attempts, wanted.checks, wanted.models, wanted.merge, wanted.agents
        )
        if "error" in found:
            raise CliExit(USAGE, str(found["error"]))
        records = await calls.tree.records.of(thread_id)
        return {
            "id": calls.caller.call,
            "conversation_id": thread_id,
            "state": "finished",
            "task": wanted.task,
            "checks": list(checks),
            "merge": wanted.merge,
            "attempts": [child.record() for child in records if child.call == calls.caller.call],
            "winner": found["winner"],
            "ranking": found["ranking"],
            "note": found.get("note"),
            "merged": found.get("merge"),
            "error": None,
        }

    async def _contest_session(self, wanted: Contest) -> str:
        from bowerbird.sessions.values import NewSession

        new = NewSession(
            kind="cli",
            title=one_line(wanted.task, 100),
            workspace=str(self._directory),
            hide=self._application.loaded.settings.workspace.hidden,
        )
        made = await self._sessions.create(new)
        await self._application.drive(made.thread_id)
        return made.thread_id

    async def _calls(self, thread_id: str, emit: "Callable[[SubagentStart | SubagentEnd], None]") -> "Calls":
        from bowerbird.app.mapping import turn_limits, turn_policy

        settings = self._application.loaded.settings
        flags = dict((await self._sessions.get(thread_id)).flags)
        policy, limits = turn_policy(settings, flags), turn_limits(settings, flags, "")
        return await self._children.on_behalf(thread_id, policy, limits, emit=emit)

    # ------------------------------------------------------------ what a message is made of

    async def names(self, thread_id: str | None) -> list[str]:
        """See `Client`."""
        if thread_id is not None:
            browse = (await self._sessions.branch(thread_id)).browse()
        else:
            browse = (await self._application.branches.workspace(str(self._directory))).browse()
        return (await to_thread(browse.names, MOST_NAMES))[0]

    async def file(self, thread_id: str, path: str) -> Row:
        """See `Client`."""
        from bowerbird.sessions.file_text import shown_file

        browse = (await self._sessions.branch(thread_id)).browse()
        return await to_thread(lambda: shown_file(browse.open(f"/{path}")))

    async def custom_commands(self, thread_id: str | None) -> list[Row]:
        """See `Client`."""
        from bowerbird.skills.commands import custom_commands

        found = await to_thread(custom_commands, self._directory, Path.home())
        return [command.record() for command in found]

    async def run_command(self, thread_id: str, command: str, stop: asyncio.Event) -> Row:
        """See `Client`."""
        from bowerbird.sessions.own_commands import OwnCommands

        await self._application.start()
        return await self._sessions.part(OwnCommands).run(thread_id, command, stop)

    async def remember(self, thread_id: str | None, fact: str) -> list[str]:
        """See `Client`."""
        _, forgotten = await self._memory.add("", str(self._directory), fact)
        return forgotten

    # ------------------------------------------------------------ the rest

    @property
    def _memory(self) -> "Remembering":
        from bowerbird.sessions.upkeep.memory_rewriting import Remembering

        return self._sessions.part(Remembering)

    async def memory(self) -> list[Row]:
        """See `Client`."""
        found = await self._memory.versions("", str(self._directory))
        return [shown.memory_version(each, current=index == 0) for index, each in enumerate(found)]

    async def file_versions(self, path: str) -> list[Row]:
        """See `Client`."""
        from bowerbird.sessions.kept_files import KeptFiles, version_row

        found = await self._sessions.part(KeptFiles).versions(str(self._directory), path)
        return [version_row(version) for version in found]

    async def restore_file(self, path: str, landing: str) -> Row:
        """See `Client`."""
        from bowerbird.sessions.kept_files import KeptFiles

        kept = self._sessions.part(KeptFiles)
        made = await kept.restore(str(self._directory), landing, path, actor="", door="cli")
        return {"landing": made.id, "paths": [entry.path.lstrip("/") for entry in made.entries]}

    async def restore_memory(self, version: int) -> Row:
        """See `Client`."""
        made = await self._memory.restore("", str(self._directory), version)
        return shown.memory_version(made, current=True)

    @property
    def _schedules(self) -> "Schedules":
        from bowerbird.scheduler.schedules import Schedules

        return self._sessions.part(Schedules)

    async def scheduled_tasks(self, *, every: bool) -> list[Row]:
        """See `Client`."""
        return await self._schedules.list(every=every)

    async def add_task(self, wanted: Mapping[str, Any]) -> Row:
        """See `Client`."""
        from bowerbird.scheduler.task_rules import NewTask

        return await self._schedules.add(NewTask(**wanted, workspace=str(self._directory)))

    async def change_task(self, task_id: str, changes: Mapping[str, Any]) -> Row:
        """See `Client`."""
        return await self._schedules.change(task_id, changes)

    async def cancel_task(self, task_id: str) -> Row:
        """See `Client`."""
        return await self._schedules.call_off(task_id)

    async def task_runs(self, task_id: str) -> list[Row]:
        """See `Client`."""
        return list(await self._schedules.runs(task_id))

    async def run_task(self, task_id: str) -> Row:
        """See `Client`."""
        from bowerbird.app import choose_model

        loaded = self._application.loaded
        self._application.maker.use(loaded, choose_model(loaded).name)
        task = await self._schedules.get(task_id)
        await self._application.drive(task["conversation_id"])
        return await self._schedules.run_now(task_id)

    async def agents(self) -> list[Row]:
        """See `Client`."""
        from bowerbird.app.offers import SettingsOffers

        return [dataclasses.asdict(row) for row in await SettingsOffers(self._application, "").agents()]

    async def probe_agent(self, name: str, *, live: bool) -> Row:
        """See `Client`."""
        return msgspec.structs.asdict(await self._others.registry.probe_agent(name, live=live))

    async def run_agent(self, name: str, wanted: Mapping[str, Any], told: Callable[[Row], None]) -> Row:
        """See `Client`."""
        from bowerbird.sessions.provider_agents.asking import event_row, request_of
        from bowerbird.sessions.provider_agents.shown import response_row

        request = request_of(wanted, workspace=str(self._directory))
        response = await self._others.run(
            name, request, owner="", on_event=lambda event: told(event_row(event))
        )
        return response_row(response)

    async def agent_memory(self, session_id: str) -> list[Row]:
        """See `Client`."""
        return [msgspec.structs.asdict(log) for log in await self._others.memory(session_id, "")]

    async def agent_conversation(self, session_id: str) -> str | None:
        """Return the session whose branch has what a session with an agent changed. Raises UnknownSession."""
        return await self._others.conversation(session_id, "")

    async def agent_runs(self) -> list[Row]:
        """See `Client`."""
        return await self._others.runs(None, MOST_RUNS)

    @property
    def _others(self) -> "ProviderAgents":
        from bowerbird.sessions.provider_agents.part import ProviderAgents

        return self._sessions.part(ProviderAgents)

    async def permissions(self) -> list[Row]:
        """See `Client`."""
        return [shown.permission(row) for row in await self._permissions.list(None)]

    async def remove_permission(self, rule_id: int) -> None:
        """See `Client`."""
        await self._permissions.remove(rule_id, None)

    @property
    def _permissions(self) -> "PermissionRules":
        from bowerbird.sessions.permission_rules import PermissionRules

        return self._sessions.part(PermissionRules)

    async def usage(self, by: str, since: str | None, until: str | None) -> Row:
        """See `Client`."""
        start, end = _day(since), _day(until, later=1)
        key = cast("By", by)
        rows = await self._sessions.lookup.usage(key, since=start, until=end, owner=None)
        return {"by": by, "from": since, "to": until, "rows": rows}

    async def outcomes(self, by: str, since: str | None, until: str | None) -> Row:
        """See `Client`."""
        start, end = _day(since), _day(until, later=1)
        key = cast("OutcomesBy", by)
        rows = await self._sessions.lookup.outcomes(key, since=start, until=end, owner=None)
        return {"by": by, "from": since, "to": until, "rows": rows}

    async def tools(self) -> list[Row]:
        """See `Client`."""
        from bowerbird.app.offers import SettingsOffers

        offers = SettingsOffers(self._application, "")
        return [shown.tool_row(tool) for tool in await offers.tools()]

    async def models(self) -> list[Row]:
        """See `Client`."""
        from bowerbird.app.offers import SettingsOffers

        found = await to_thread(SettingsOffers(self._application, "").models)
        return [model.record() for model in found]

    async def no_processes(self) -> str | None:
        """See `Client`."""
        from bowerbird.tools.processes.process_tools import processes_unavailable

        return processes_unavailable(await self._application.sandboxes.status())


def _day(text: str | None, *, later: int = 0) -> str | None:
    """Return the first moment of a UTC day, or of the one so many days `later`."""
    if text is None:
        return None
    day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    return to_iso(day + timedelta(days=later))
