"""What every command asks of sessions, be they in this process or on a server (R1, UI-85).

Here: the protocol and its few values; data are plain and in the form of REST, whoever answers. Not here: the
answers (`local.py`, `server.py`).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from bowerbird.cli.client.preferences import Preferences
    from bowerbird.cli.terminal.run_options import RunOptions
    from bowerbird.cli.turn.answer import Answer
    from bowerbird.sessions.inbox.comments import Remark
    from bowerbird.sessions.live.hub import Published
    from bowerbird.sessions.live.landing_watch import Told
    from bowerbird.sessions.wishes import ToLand

Row = dict[str, Any]
Fix = Literal["retry", "take_back", "give_up"]


class News(msgspec.Struct, frozen=True):
    """Something that happened in a session.

    Attributes:
        published: as this program knows it, None for what a terminal does not show, and for a connection.
        lines: the frames of the wire that say it, for `--json`; empty unless they were asked for.
        todos: the list of tasks as it is now, where a frame of its own says it.
        usage: of the turn that ended, where a frame says it.
        is_lost: the connection to the server is, until the next news.
    """

    published: "Published | None"
    lines: Sequence[str] = ()
    todos: "Sequence[Mapping[str, Any]] | None" = None
    usage: "Mapping[str, Any] | None" = None
    is_lost: bool = False


class Client(Protocol):
    """Sessions, their turns and their review; every `thread_id` is whole, see `find`.

    Attributes:
        where: what it works with, for messages: a directory, or a server's address.
        model: what sessions without a model of their own run on, as far as it is known.
        is_server: whether somebody else drives the turns.
    """

    where: str
    model: str
    is_server: bool
    preferences: "Preferences"

    # ------------------------------------------------------------ which session

    async def find(self, given: str | None) -> str:
        """Return the id of a session: given, by 4 characters or more of it, else the newest here.

        Raises:
            UnknownSession, CliExit: none, or several, which are listed.
        """
        ...

    def is_path(self, word: str) -> bool:
        """Whether a word that could be a session is a path."""
        ...

    def paths(self, words: Sequence[str]) -> list[str]:
        """Return paths as the branch knows them; raises CliExit for one outside."""
        ...

    async def session_for(self, options: "RunOptions") -> str:
        """Return the session to talk in: the one to resume, changed as asked, else one made now."""
        ...

    # ------------------------------------------------------------ sessions

    async def sessions(self, *, every: bool, words: str = "") -> list[Row]:
        """Return sessions, the newest first: of this directory, or all; with words, those that have them."""
        ...

    async def show(self, thread_id: str, *, messages: bool = True) -> Row:
        """Return one session."""
        ...

    async def messages(self, thread_id: str) -> list[Row]:
        """Return what was said and called."""
        ...

    async def change(self, thread_id: str, changes: dict[str, Any]) -> None:
        """Change a session's settings: `title`, `model`, `enable_plan_mode` …"""
        ...

    async def delete(self, thread_id: str) -> None:
        """Delete a session with its branch; both can be restored for 7 days."""
        ...

    async def fork(self, thread_id: str, turn_id: str | None) -> str:
        """Return the id of a copy of a session, as it was at the end of a turn."""
        ...

    # ------------------------------------------------------------ turns

    async def drive(self, thread_id: str) -> None:
        """Run this session's turns here, where nobody else does."""
        ...

    async def send(self, thread_id: str, text: str, pictures: Sequence[bytes] = ()) -> Row:
        """Send a message, with pictures; return its receipt: `inbox_id`, `turn_id`, `position`."""
        ...

    async def comment(self, thread_id: str, remark: "Remark") -> Row:
        """Send a remark about lines of a change; return the receipt."""
        ...

    async def take_back(self, thread_id: str, inbox_id: str) -> None:
        """Cancel a message whose turn has not begun; raises SessionError when it has."""
        ...

    async def cancel(self, thread_id: str) -> str:
        """Stop the running turn and return its id; raises SessionError when nothing runs."""
        ...

    async def leave(self, thread_id: str, turn_id: str) -> None:
        """Stop a running turn so that it can be resumed, because this program ends."""
        ...

    async def resume(self, thread_id: str) -> str:
        """Go on with the last turn, which failed or whose process died; return its id.

        Raises:
            TurnRunning: it runs. SessionError: there is nothing to go on with.
        """
        ...

    async def compact(self, thread_id: str, focus: str) -> None:
        """Have the history summarised before the next model call."""
        ...

    async def turns(self, thread_id: str) -> list[Row]:
        """Return the turns of a session in order."""
        ...

    async def turn(self, thread_id: str, turn_id: str) -> Row:
        """Return how a turn stands, with its answer so far and the question that waits."""
        ...

    async def pending(self) -> list[Row]:
        """Return the questions that wait for a person, the oldest first."""
        ...

    async def answer(self, thread_id: str, request_id: str, answer: "Answer") -> None:
        """Answer a question; raises AlreadyAnswered, NoPendingRequest."""
        ...

    def follow(
        self, thread_id: str, after: int, *, lines: bool = False, say: Callable[[str], None] | None = None
    ) -> AsyncGenerator[News]:
        """Yield what happens in a session after a cursor, for ever; a server's first news is the connection.

        Args:
            lines: make the wire's frames too. say: told when a connection is lost, and when it is back.
        """
        ...

    # ------------------------------------------------------------ what a message is made of

    async def names(self, thread_id: str | None) -> list[str]:
        """Return the paths of a branch's files but ignored ones; without a session, of the directory."""
        ...

    async def file(self, thread_id: str, path: str) -> Row:
        """Return a branch's file: `path`, `size`, `content` (None for a binary one), `truncated`.

        Raises:
            BowerbirdError: there is no such file, or it is a directory.
        """
        ...

    async def custom_commands(self, thread_id: str | None) -> list[Row]:
        """Return the commands of a session's directory and of this person: `name`, `body` and the like."""
        ...

    async def run_command(self, thread_id: str, command: str, stop: asyncio.Event) -> Row:
        """Run a person's command on the branch: `exit_code`, `output`, `stopped`.

        Args:
            stop: setting it ends the command.

        Raises:
            TurnRunning: the agent works. BowerbirdError: it is refused, or none can run.
        """
        ...

    async def remember(self, thread_id: str | None, fact: str) -> list[str]:
        """Add a line to the memory of a session's directory, or the command's; return lines without room."""
        ...

    # ------------------------------------------------------------ review

    async def changed(self, thread_id: str) -> list[str]:
        """Return the paths that a session's branch changes."""
        ...

    async def diff(self, thread_id: str, paths: Sequence[str] | None = None) -> Row:
        """Return the changes with their hunks."""
        ...

    async def git(self, thread_id: str) -> list[Row]:
        """Return what happened in git on the branch, by repository."""
        ...

    async def patch(self, thread_id: str, paths: Sequence[str] | None = None) -> str:
        """Return the changes as a patch."""
        ...

    async def plan(
        self, thread_id: str, paths: Sequence[str] | None = None, include: Sequence[str] = ()
    ) -> Row:
        """Return what a landing would do."""
        ...

    async def land(self, thread_id: str, wanted: "ToLand", told: "Told | None" = None) -> Row:
        """Land; return the record. Raises LandingRefused with the paths; nothing changed then.

        Where there is nothing to land the record is empty, or it raises NothingToLand.

        Args:
            told: how far it is, of any thread.
        """
        ...

    async def check(self, thread_id: str, begun: Callable[[str], None]) -> Row:
        """Run the command of `landing.check` and return what it found; CliExit where there is none.

        Args:
            begun: told the command.
        """
        ...

    async def landings(self) -> list[Row]:
        """Return the records of landings, the newest first."""
        ...

    async def undo(
        self, landing_id: str, *, force: bool, commit: bool = False, told: "Told | None" = None
    ) -> Row:
        """Take a landing back, as a commit, too; return the record. Raises LandingRefused: edited since."""
        ...

    async def fix(self, landing_id: str, how: Fix) -> Row:
        """Lead a landing that needs attention out of it; return its record."""
        ...

    async def discard(self, thread_id: str) -> Row:
        """Throw all unlanded changes away; return `paths` and the `branch` that is in the trash."""
        ...

    # ------------------------------------------------------------ subagents

    async def subagents(self, thread_id: str) -> list[Row]:
        """Return the records of a session's subagents."""
        ...

    async def subagent(self, thread_id: str, handle: str) -> Row:
        """Return one with its diff and transcript."""
        ...

    async def subagent_file(self, thread_id: str, handle: str, path: str) -> Row:
        """Return a subagent's version of a file: `path`, `deleted`, `text`."""
        ...

    async def merge_subagent(
        self, thread_id: str, handle: str, paths: Sequence[str] | None, *, force: bool
    ) -> Row:
        """Merge one into its session's branch; return what became of each path."""
        ...

    async def discard_subagent(self, thread_id: str, handle: str) -> None:
        """Throw one and its fork away."""
        ...

    async def attempt(self, wanted: "Contest", show: "Callable[[Published], None]") -> Row:
        """Run a tournament on a new session; return it once it has ended.

        Args:
            show: told of each attempt's beginning and end.
        """
        ...

    # ------------------------------------------------------------ the rest

    async def memory(self) -> list[Row]:
        """Return the versions of the memory, the newest first."""
        ...

    async def file_versions(self, path: str) -> list[Row]:
        """Return the landed versions of `MEMORY.md` or a skill's directory, the newest first."""
        ...

    async def restore_file(self, path: str, landing: str) -> Row:
        """Land the version after a landing again; return the new landing."""
        ...

    async def restore_memory(self, version: int) -> Row:
        """Make an earlier version count again; return the new one."""
        ...

    async def scheduled_tasks(self, *, every: bool) -> list[Row]:
        """Return the scheduled tasks, those that are over too for `every`."""
        ...

    async def add_task(self, wanted: Mapping[str, Any]) -> Row:
        """Make a scheduled task on this directory; return it. Raises InvalidArgument."""
        ...

    async def change_task(self, task_id: str, changes: Mapping[str, Any]) -> Row:
        """Change a scheduled task, pause or resume it; return it. Raises NotFound."""
        ...

    async def cancel_task(self, task_id: str) -> Row:
        """Take a scheduled task out for good; return it. Raises NotFound."""
        ...

    async def task_runs(self, task_id: str) -> list[Row]:
        """Return the runs of a scheduled task, newest first. Raises NotFound."""
        ...

    async def run_task(self, task_id: str) -> Row:
        """Begin a run of a scheduled task, here where nobody else drives it; return the run."""
        ...

    async def agents(self) -> list[Row]:
        """Return the agents that work can be given to: types of subagents, then other vendors'."""
        ...

    async def probe_agent(self, name: str, *, live: bool) -> Row:
        """Return whether another vendor's agent can be used now."""
        ...

    async def run_agent(self, name: str, wanted: Mapping[str, Any], told: Callable[[Row], None]) -> Row:
        """Run one of them and return its answer; `told` hears its events. Raises InvalidArgument."""
        ...

    async def agent_memory(self, session_id: str) -> list[Row]:
        """Return the newest 50 messages of a session with one. Raises UnknownSession."""
        ...

    async def agent_runs(self) -> list[Row]:
        """Return the newest runs of them, newest first."""
        ...

    async def permissions(self) -> list[Row]:
        """Return what this person always allows, newest first: `id`, `scope`, `target`, `rule` …"""
        ...

    async def remove_permission(self, rule_id: int) -> None:
        """Forget one of them; raises NotFound."""
        ...

    async def usage(self, by: str, since: str | None, until: str | None) -> Row:
        """Return tokens and money by `day`, `model`, `user` or `conversation`, for UTC days."""
        ...

    async def outcomes(self, by: str, since: str | None, until: str | None) -> Row:
        """Return what became of agents' changes, by `model`, `preset` or `agent`, for UTC days."""
        ...

    async def tools(self) -> list[Row]:
        """Return the tools that a new session is offered."""
        ...

    async def models(self) -> list[Row]:
        """Return the models that a session can run on, those that settings name first."""
        ...

    async def no_processes(self) -> str | None:
        """Return why tools that run processes are missing, None when they are not."""
        ...


class Contest(msgspec.Struct, frozen=True, kw_only=True):
    """A tournament to run: several attempts at one task, judged by commands."""

    task: str
    attempts: int | None = None
    checks: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    merge: Literal["none", "best"] = "none"
