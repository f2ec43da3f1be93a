"""Our side of ACP: what a program may ask of us, answered on the branch and in its sandbox only (PR-25).

Here: files, terminals, permissions, updates as events. Not here: the order of a run (`acp_run`).
"""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from acp import RequestError, schema

from bowerbird.core.errors import BowerbirdError, Stale
from bowerbird.core.ids import new_id
from bowerbird.core.threads import to_thread
from bowerbird.providers.contract.types import AgentEvent
from bowerbird.sandbox.run.command import exit_code

if TYPE_CHECKING:
    from acp.interfaces import Agent

    from bowerbird.providers.programs.transports import Attempt
    from bowerbird.sandbox.run.running import RunningCommand

_MOST_TERMINALS = 16
_TERMINAL_BYTES = 1 << 20
_CLOCKS_NS = 20_000_000  # the files' clock lags behind the other one by up to a tick
_PREFERRED = ("allow_once", "allow_always")
_REFUSING = ("reject_once", "reject_always")


def chosen_option(options: Sequence[tuple[str, str]], *, allow: bool) -> str | None:
    """Return the id of the option to take, from pairs of id and kind; None = cancel the question.

    Example:
        >>> chosen_option([("a", "reject_once"), ("b", "allow_once")], allow=True)
        'b'
    """
    for kind in (*(_PREFERRED if allow else ()), *_REFUSING):
        for option, its_kind in options:
            if its_kind == kind:
                return option
    return None


class Terminal:
    """A command that the program started through us."""

    def __init__(self, command: "RunningCommand", ended: "asyncio.Task[int]") -> None:
        self.command, self.ended = command, ended

    @property
    def status(self) -> schema.TerminalExitStatus | None:
        """How it ended; None while it runs."""
        if not self.ended.done() or self.ended.cancelled():
            return None
        return schema.TerminalExitStatus(exit_code=self.ended.result())


class BranchClient:
    """Answers one program's requests.

    Attributes:
        listening: whether updates count: those of a session that is loaded tell the past.
        texts: what it said, in pieces. cost: in US dollars, where it says so.
        denied: what was not permitted.
    """

    def __init__(self, attempt: "Attempt", *, allow: bool = True) -> None:
        self.listening = False
        self.texts: list[str] = []
        self.cost: float | None = None
        self.denied: list[str] = []
        self._attempt, self._allow = attempt, allow
        self._terminals: dict[str, Terminal] = {}
        self._seen: dict[str, str | None] = {}  # by path, the hash of what it read or wrote last
        self._warned: set[str] = set()
        self._began_ns = time.time_ns() - _CLOCKS_NS

    def on_connect(self, conn: "Agent") -> None:
        """Nothing to do: requests to the program come from elsewhere."""

    # ------------------------------------------------------------ what it tells

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Take one update; kinds that are not known here are passed over."""
        if not self.listening:
            return
        if isinstance(update, schema.AgentMessageChunk | schema.AgentThoughtChunk):
            text = update.content.text if isinstance(update.content, schema.TextContentBlock) else ""
            spoken = isinstance(update, schema.AgentMessageChunk)
            if spoken:
                self.texts.append(text)
            if text:
                self._attempt.emit(AgentEvent("text" if spoken else "thinking", text))
        elif isinstance(update, schema.ToolCallStart):
            if self.texts:
                self.texts.append("\n\n")
            self._attempt.emit(AgentEvent("tool", update.title or "", {"input": update.raw_input}))
        elif isinstance(update, schema.UsageUpdate) and update.cost is not None:
            self.cost = update.cost.amount if update.cost.currency == "USD" else None

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[schema.PermissionOption], **_: Any
    ) -> schema.RequestPermissionResponse:
        """Answer a question: inside the branch what the agent's mode allows, else refuse."""
        chosen = chosen_option([(o.option_id, o.kind) for o in options], allow=self._allow)
        kinds = {o.option_id: o.kind for o in options}
        if chosen is None or kinds[chosen] not in _PREFERRED:
            self.denied.append(str(getattr(tool_call, "title", None) or "a tool"))
        if chosen is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)

    # ------------------------------------------------------------ files

    def _on_branch(self, path: str) -> str:
        root = self._attempt.sandbox.root
        parts = path.split("/")
        if not (path == root or path.startswith(root + "/")) or ".." in parts or "\0" in path:
            raise RequestError(-32602, f"{path[:200]!r} is outside the branch, which is {root}")
        return path[len(root) :] or "/"

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_: Any
    ) -> schema.ReadTextFileResponse:
        """Read a file of the branch."""
        place = self._on_branch(path)
        try:
            found = await self._attempt.branch.read_file(place, max(1, line or 1), max(0, limit or 0))
        except BowerbirdError as error:
            raise RequestError(-32602, str(error)) from error
        self._seen[place] = found["hash"]
        self._warned.discard(place)
        return schema.ReadTextFileResponse(content=str(found["content"]))

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> schema.WriteTextFileResponse:
        """Write a file of the branch; over what it has not seen it is refused once, then it is a conflict."""
        place, branch = self._on_branch(path), self._attempt.branch
        try:
            seen = self._seen.get(place) or await self._not_seen(place)
            must = None if place in self._warned else seen
            record = await branch.write_file(place, content, if_hash=must, seen=seen)
        except Stale as error:
            self._warned.add(place)
            raise RequestError(-32602, str(error)) from error
        except BowerbirdError as error:
            raise RequestError(-32602, str(error)) from error
        self._seen[place] = record["hash"]
        self._warned.discard(place)
        return schema.WriteTextFileResponse()

    async def _not_seen(self, place: str) -> str | None:
        """Return "" for what its user saved since the program began, which reads in ways of its own, too."""
        branch = self._attempt.branch
        found = await branch.stat(place)
        if found is None or found["type"] != "file" or found["mtime_ns"] < self._began_ns:
            return None
        return "" if await to_thread(branch.read_overlay, place) is None else None

    # ------------------------------------------------------------ terminals

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[schema.EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **_: Any,
    ) -> schema.CreateTerminalResponse:
        """Start a command in the sandbox."""
        if len(self._terminals) >= _MOST_TERMINALS:
            raise RequestError(-32602, f"{_MOST_TERMINALS} terminals are open; release some first")
        sandbox = self._attempt.sandbox
        if cwd is not None:
            self._on_branch(cwd)
        # Some give a whole line as the command: a shell reads both forms.
        words = ["/bin/sh", "-c", command] if not args else [command, *args]
        given = {variable.name: variable.value for variable in env or []}
        most = min(max(1, output_byte_limit or _TERMINAL_BYTES), _TERMINAL_BYTES)
        try:
            request = sandbox.request(words, cwd=cwd or "/", timeout=sandbox.longest_s, max_output_bytes=most)
            request = msgspec.structs.replace(request, env={**self._attempt.env, **given})
            running = await sandbox.begin(request, call=new_id("term"))
        except BowerbirdError as error:
            raise RequestError(-32602, str(error)) from error
        name = new_id("term")
        ended = asyncio.create_task(self._until_end(running), name="terminal of an agent")
        self._terminals[name] = Terminal(running, ended)
        return schema.CreateTerminalResponse(terminal_id=name)

    async def _until_end(self, running: "RunningCommand") -> int:
        try:
            return exit_code((await running.wait()).ending)
        finally:
            await self._attempt.sandbox.end(running)

    def _terminal(self, terminal_id: str) -> Terminal:
        found = self._terminals.get(terminal_id)
        if found is None:
            raise RequestError(-32602, f"there is no terminal {terminal_id[:100]!r}")
        return found

    async def terminal_output(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> schema.TerminalOutputResponse:
        """Return what a command printed so far."""
        found = self._terminal(terminal_id)
        text = found.command.output.so_far()
        cut = found.command.output.total_bytes > len(text.encode("utf-8", "replace"))
        return schema.TerminalOutputResponse(output=text, truncated=cut, exit_status=found.status)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> schema.WaitForTerminalExitResponse:
        """Wait until a command has ended."""
        code = await asyncio.shield(self._terminal(terminal_id).ended)
        return schema.WaitForTerminalExitResponse(exit_code=code)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> schema.KillTerminalResponse:
        """Kill a command's whole tree."""
        self._terminal(terminal_id).command.stop("cancel")
        return schema.KillTerminalResponse()

    async def release_terminal(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> schema.ReleaseTerminalResponse:
        """Kill a command if it runs, and forget it."""
        found = self._terminal(terminal_id)
        found.command.stop("cancel")
        del self._terminals[terminal_id]
        await asyncio.wait({found.ended})
        return schema.ReleaseTerminalResponse()

    async def close(self) -> None:
        """Kill what runs in terminals."""
        for terminal in self._terminals.values():
            terminal.command.stop("cancel")
        if self._terminals:
            await asyncio.wait([terminal.ended for terminal in self._terminals.values()])

    # ------------------------------------------------------------ what we do not offer

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        """Refuse: nobody sits at a run."""
        raise RequestError.method_not_found("elicitation/create")

    async def complete_elicitation(self, elicitation_id: str, **_: Any) -> None:
        """Refuse likewise."""
        raise RequestError.method_not_found("elicitation/complete")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Refuse: no extension is known."""
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Pass over."""
