"""Review of a session's changes: plan, land, undo, discard, check, comment. Every door lands here (R1).

Here: those operations. After each, the changed files of the session that it touched are counted again and
its viewers are told. Not here: what landing is (`workspace`), the questions and pictures of a door.

Two landings do not come this way. A policy lands inside a turn by `land_by_policy`, and the turn's end
counts in its own transaction (`turn/finish.py`). `sandbox/shell/shell_backend.py` works on a branch without a
session.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from bowerbird.core.errors import InvalidArgument, LandingRefused, UnknownSession, WorkspaceError
from bowerbird.core.events import Notice
from bowerbird.core.threads import in_thread, to_thread
from bowerbird.sessions.branches.landing_checks import Finding, LandingChecks
from bowerbird.sessions.commit_words import message_of
from bowerbird.sessions.inbox.comments import Remark, comment_text
from bowerbird.sessions.live.hub import Live, Published
from bowerbird.sessions.live.landing_watch import Told, watched
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.wishes import NO_CHECK, Commits, CommitWish, Discarded, ToLand, named_changes
from bowerbird.store.journal.outcomes import Event, settle
from bowerbird.store.rows.owners import sessions_of_branches
from bowerbird.store.rows.sessions import find_session, get_session

if TYPE_CHECKING:
    from bowerbird.sessions.branches.branches import Branches
    from bowerbird.sessions.branches.landing_checks import Checking
    from bowerbird.sessions.parts import SessionPart
    from bowerbird.store.store import Store
    from bowerbird.workspace import Branch, Committing, Conflict, GitStory, Landing, LandingPlan


class Sessions(Protocol):
    """What review needs of the sessions that it belongs to."""

    settings: SessionSettings
    live: Live

    @property
    def parts(self) -> "Sequence[SessionPart]":
        """The features of sessions."""
        ...

    @property
    def store(self) -> "Store":
        """The store all sessions are in."""
        ...

    async def branch(self, thread_id: str) -> "Branch":
        """Return a session's open branch."""
        ...

    async def note_changes(self, thread_id: str) -> int:
        """Count the changed files of a session's branch again."""
        ...


class Review:
    """Reviews the sessions of a store; belongs to its service.

    Args:
        checking: gives what runs the command of `landing.check`; None = this process checks nothing.
    """

    def __init__(self, sessions: Sessions, branches: "Branches", checking: "Checking | None" = None) -> None:
        self._sessions = sessions
        self._branches = branches
        self._checks = LandingChecks(checking) if checking is not None else None

    # ------------------------------------------------------------ landing

    async def plan(
        self, thread_id: str, paths: Sequence[str] | None = None, include: Sequence[str] = ()
    ) -> "LandingPlan":
        """Return what a landing would do; each entry says its `grade`: `needs_accept`, `held`, `free`."""
        branch = await self._sessions.branch(thread_id)
        return await to_thread(branch.plan_landing, paths or None, None, include)

    async def review(self, thread_id: str) -> dict[str, Any]:
        """Return `diff` and `plan` of one state, as plain data: what a person is shown before a landing."""
        branch = await self._sessions.branch(thread_id)
        found, git, plan = await to_thread(branch.review)
        return {"diff": found.record() | {"git": git.record()}, "plan": plan.record()}

    async def conflict(self, thread_id: str, path: str) -> "Conflict":
        """Return where a file conflicts with what is in the directory by now; see `Branch.conflict`."""
        return await to_thread((await self._sessions.branch(thread_id)).conflict, path)

    async def diff(
        self, thread_id: str, paths: Sequence[str] | None = None, since: str | None = None
    ) -> dict[str, Any]:
        """Return the changes as plain data.

        Those of everything come with what happened in git (`git`), and without what stays on the branch by
        itself (`folded`).
        """
        branch = await self._sessions.branch(thread_id)
        if paths or since:
            return (await to_thread(branch.diff, paths or None, since)).record() | {"git": []}
        found, git = await to_thread(branch.reviewed)
        return found.record() | {"git": git.record()}

    async def git(self, thread_id: str) -> "GitStory":
        """Return what happened in git on a session's branch."""
        return await to_thread((await self._sessions.branch(thread_id)).git_story)

    async def land(
        self, thread_id: str, wanted: ToLand, *, actor: str, door: str, told: Told | None = None
    ) -> "Landing":
        """Bring changes of a session into its directory, all or nothing; see `Branch.land`.

        Args:
            actor, door: who, through what. told: see `Branch.land`; of another thread.

        Raises:
            LandingRefused, Stale, InvalidWorkspace …: nothing changed. BranchBusy: a command writes them.
        """
        branch = await self._sessions.branch(thread_id)
        await self._branches.require_quiet(branch.id)
        row = await self._sessions.store.read(lambda c: get_session(c, thread_id))
        changed = (await to_thread(lambda: branch.changes(ignored=False))).paths
        named = await to_thread(named_changes, changed, wanted.paths)
        for part in self._sessions.parts:
            await part.landing(row, [*named, *wanted.include])
        if wanted.commit is not None and wanted.commit.branch and wanted.commits:
            raise InvalidArgument("either --branch or --commits: on another branch only files are committed")
        patch = partial(branch.unified, wanted.paths or changed, ignored=False)
        making = await self._committing(thread_id, wanted.commit, patch)
        chosen = msgspec.structs.asdict(wanted)
        del chosen["commit"]
        async with watched(self._sessions.live, thread_id, also=told) as heard:
            landing = await in_thread(
                lambda: branch.land(
                    **chosen, commit=making, session=thread_id, actor=actor, door=door, told=heard
                )
            )
        if landing.refused and not landing.entries and not landing.history:
            # By `partial`: nothing was done, no landing is kept.
            text = f"nothing landed: {len(landing.refused)} paths are refused, and there are no others"
            raise LandingRefused(text, landing.record()["refused"])
        if landing.kind == "commit" and wanted.commit is not None:
            await self._tell(branch.id, f"committed {len(landing.entries)} paths on {wanted.commit.branch}")
        elif landing.entries or landing.history:
            await self._tell(branch.id, f"landed {len(landing.entries)} paths as {landing.id}", landing)
        return landing

    async def land_upload(
        self,
        carrier: "Branch",
        files: list[tuple[str, Path]],
        accept: Sequence[str],
        *,
        actor: str,
        door: str,
    ) -> list[str]:
        """Land a person's own files from a branch that only carries uploads; returns their paths.

        Raises:
            LandingRefused, ReadOnly, PathEscape …: nothing was changed.
        """

        def work() -> list[str]:
            carrier.begin_turn()  # what the user changed since the last upload is no conflict
            paths = carrier.take(files)
            try:
                carrier.land(paths, accept=accept, force=True, actor=actor, door=door)
            except WorkspaceError:
                changed = frozenset(carrier.changes().paths)
                left = [path for path in paths if path in changed]
                if left:
                    carrier.revert(left)
                raise
            return paths

        return await in_thread(work)

    async def landings(self, directory: str) -> "list[Landing]":
        """Return what landed in a directory and was undone there, the oldest first."""
        workspace = await self._branches.workspace(directory)
        return await to_thread(workspace.landings)

    async def undo(
        self,
        directory: str,
        landing_id: str,
        *,
        paths: Sequence[str] | None = None,
        hunks: Sequence[str] | None = None,
        force: bool = False,
        actor: str,
        door: str,
        told: Told | None = None,
        commit: CommitWish | None = None,
    ) -> "Landing":
        """Take a landing back; see `Landing.undo`.

        Args:
            told, commit: as of `land`.

        Raises:
            NotFound: there is no such landing. LandingRefused: files were edited since; nothing changed.
        """
        workspace = await self._branches.workspace(directory)
        some = None if paths is None else list(paths)
        parts = None if hunks is None else list(hunks)
        landing = await in_thread(workspace.landing, landing_id)
        found = await self._sessions.store.read(lambda c: sessions_of_branches(c, [landing.branch]))
        thread_id = found[landing.branch][0] if landing.branch in found else None
        if commit is not None and commit.message is None:
            made = next((one.commit for one in landing.history if one.commit is not None), None)
            subject = made.subject if made is not None and made.id else f"landing {landing_id}"
            body = f"\n\nThis reverts commit {made.id}." if made is not None and made.id else ""
            commit = msgspec.structs.replace(commit, message=f'Revert "{subject}"{body}')
        making = await self._committing(thread_id or landing.branch, commit)
        async with watched(self._sessions.live, thread_id, also=told) as heard:
            undone = await in_thread(
                lambda: landing.undo(some, force, parts, actor=actor, door=door, told=heard, commit=making)
            )
        await self._tell(
            undone.branch, f"took {landing_id} back as {undone.id}", undone, half=parts is not None
        )
        return undone

    async def _committing(
        self, thread_id: str, wish: CommitWish | None, patch: Callable[[], str] = str
    ) -> "Committing | None":
        from bowerbird.workspace import Committing, CommittingAside  # few landings are commits

        if wish is None:
            return None
        message = (wish.message or "").strip()
        if not message:
            row = await self._sessions.store.read(lambda c: find_session(c, thread_id))
            message = await message_of(self._sessions.parts, row, patch)
        if wish.branch is not None:
            return CommittingAside(message, thread_id, wish.branch, own=wish.own_git)
        return Committing(message, thread_id, own=wish.own_git)

    async def fix(
        self, directory: str, landing_id: str, how: Literal["retry", "take_back", "give_up"]
    ) -> "Landing":
        """Lead a landing that needs attention out of it; see `Workspace.fix_landing`."""
        workspace = await self._branches.workspace(directory)
        fixed = await in_thread(workspace.fix_landing, landing_id, how)
        await self._tell(fixed.branch, f"{landing_id} is {fixed.state} now", fixed)
        return fixed

    # ------------------------------------------------------------ discarding

    async def discard(self, thread_id: str, paths: Sequence[str] | None = None) -> Discarded:
        """Throw unlanded changes away: those at some paths, or all, which can be restored for 7 days.

        Raises:
            TurnRunning: a turn works on them. BranchBusy: a command writes them.
        """
        branch = await self._sessions.branch(thread_id)
        await self._branches.require_quiet(branch.id)
        if paths is not None:
            gone = Discarded(tuple(await in_thread(branch.revert, list(paths))))
        else:
            from bowerbird.sessions.branches.discard import discard_changes

            changes = await in_thread(branch.changes)
            old = await discard_changes(self._sessions.store, self._branches, thread_id)
            gone = Discarded(changes.paths, old)
        await self.settled(thread_id, "discard")
        await self._sessions.note_changes(thread_id)
        self._say(thread_id, f"discarded {len(gone.paths)} paths")
        return gone

    # ------------------------------------------------------------ judging

    async def begin_check(self, thread_id: str) -> Finding:
        """Start the command of `landing.check` on a copy of the branch; the one that runs already goes on.

        Raises:
            InvalidArgument: none is configured, or this process runs none.
        """
        command = self._sessions.settings.landing_check
        if not command or self._checks is None:
            raise InvalidArgument(NO_CHECK)
        return await self._checks.begin(await self._sessions.branch(thread_id), command)

    async def check(self, thread_id: str) -> Finding:
        """Do the same and return what it found; raises InvalidArgument like `begin_check`."""
        begun = await self.begin_check(thread_id)
        assert self._checks is not None, "it has begun"
        return await self._checks.ended((await self._sessions.branch(thread_id)).id) or begun

    def newest_check(self, branch_id: str | None) -> dict[str, Any]:
        """Return what was found last on a branch here; `command` is empty where no check is configured."""
        found = None
        if self._checks is not None and branch_id is not None:
            found = self._checks.newest(branch_id)
        return (found or Finding(self._sessions.settings.landing_check, None, "none")).record()

    async def stop_check(self, branch_id: str) -> None:
        """End the check of a branch that is about to go."""
        if self._checks is not None:
            await self._checks.stop(branch_id)

    async def comment(self, thread_id: str, remarks: Sequence[Remark]) -> str:
        """Return the message that says remarks about changed lines; a door submits it as any other."""
        return await comment_text(await self._sessions.branch(thread_id), remarks)

    async def aclose(self) -> None:
        """End the checks that run."""
        if self._checks is not None:
            await self._checks.aclose()

    # ------------------------------------------------------------ telling

    async def settled(
        self,
        thread_id: str,
        kind: Literal["land", "discard", "undo"],
        landing: "Landing | None" = None,
        *,
        half: bool = False,
    ) -> None:
        """Note what became of the changes of a session's turns."""
        branch = await self._sessions.branch(thread_id)
        pending = await to_thread(lambda: branch.changes(ignored=False).paths)
        event = outcome_of(kind, pending, landing, half=half)
        await self._sessions.store.write(lambda c: settle(c, thread_id, event))

    async def _tell(
        self, branch_id: str, text: str, landing: "Landing | None" = None, *, half: bool = False
    ) -> None:
        """Count the changes of the session whose branch landed, or came back, and tell its viewers."""
        found = await self._sessions.store.read(lambda c: sessions_of_branches(c, [branch_id]))
        if branch_id in found:
            thread_id = found[branch_id][0]
            with suppress(UnknownSession):  # deleted by now: the files are as the landing says all the same
                if landing is not None and landing.kind != "commit":
                    is_back = landing.kind == "undo" or landing.state == "undone"
                    await self.settled(thread_id, "undo" if is_back else "land", landing, half=half)
                await self._sessions.note_changes(thread_id)
                self._say(thread_id, text)

    def _say(self, thread_id: str, text: str) -> None:
        self._sessions.live.publish(Published(thread_id, None, None, Notice("landing", text)))


def outcome_of(
    kind: Literal["land", "discard", "undo"],
    pending: Collection[str],
    landing: "Landing | None" = None,
    *,
    half: bool = False,
) -> Event:
    """Return what the rows of a session's changes are told of a landing, an undo or a discard."""
    if landing is None:
        return Event(kind, frozenset(pending))
    paths = frozenset(entry.path for entry in landing.entries)
    return Event(kind, frozenset(pending), paths, landing.undoes or landing.id, half)


def land_by_policy(branch: "Branch", told: Told, thread_id: str) -> "tuple[Landing, str] | None":
    """Land all that needs nobody's word; return it and what to tell people, None for nothing. Blocks."""
    if not branch.changes(ignored=False).paths and not branch.has_new_commits:
        return None
    # What was written after something from outside was read arrives nowhere by itself.
    commits: Commits | None = "never" if branch.is_tainted else None
    landing = branch.land(
        partial=True,
        automatic=True,
        commits=commits,
        session=thread_id,
        actor="policy",
        door="policy",
        told=told,
    )
    refused = "".join(f"; not landed: {row.path} ({row.reason})" for row in landing.refused)
    arrived = sum(len(one.refs) for one in landing.history)
    history = f", {arrived} refs of git arrived" if arrived else ""
    return landing, f"{len(landing.entries)} paths landed{history}{refused}"
