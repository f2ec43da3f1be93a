"""One try of a task: a fresh directory, a turn on a branch of it, the hidden check on what would land.

Here: these steps, and whether a task can be judged at all. Not here: which tries there are
(`cli/run/evaluate.py`), how suites are read, the report.
"""

import asyncio
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.app.sandboxes import sandbox_settings
from bowerbird.core.errors import BowerbirdError, SessionError
from bowerbird.core.threads import to_thread
from bowerbird.evals.report import Try
from bowerbird.evals.suites import CannotJudge, Task
from bowerbird.sessions.values import NewSession, TurnInfo
from bowerbird.subagents.forking import checks_in

if TYPE_CHECKING:
    import pygit2

    from bowerbird.app import Application
    from bowerbird.config import Loaded
    from bowerbird.subagents.checks import Check
    from bowerbird.workspace import Branch

STOP_S = 30.0  # a turn that was stopped has this long to end
TIMED_OUT = 124


class Contender(msgspec.Struct, frozen=True):
    """Who is tried: a model of Bowerbird's own agent, or another vendor's agent."""

    name: str
    is_agent: bool = False


class Tries:
    """Runs tries in one application.

    Args:
        application: open; its sessions keep what was said and used. loaded: settings for checks.
    """

    def __init__(self, application: "Application", loaded: "Loaded") -> None:
        self._application = application
        self._sessions = application.sessions
        settings = sandbox_settings(loaded.settings, loaded.files)
        # A stranger's check is given nothing of the user's.
        self._checking = msgspec.structs.replace(settings, env={}, env_secrets=(), caches="off")

    # ------------------------------------------------------------ judging

    async def verify(self, task: Task) -> None:
        """Raise CannotJudge unless the check is red on the start, and green after the task's own solution."""
        with tempfile.TemporaryDirectory(prefix="bowerbird-eval-", ignore_cleanup_errors=True) as place:
            work = await to_thread(_begin, task, Path(place))
            branches = self._application.branches
            branch = await branches.create(str(work), name="eval", policy="review", hide=())
            try:
                await self._verify(task, branch)
            finally:
                await branches.remove(branch)

    async def _verify(self, task: Task, branch: "Branch") -> None:
        for what, command in task.needs.items():
            if not (await self._run(task, branch, command)).passed:
                raise CannotJudge(f"it needs {what}, which commands do not find here")
        if (await self._run(task, branch, task.check)).passed:
            raise CannotJudge("its check passes before anything was done")
        if task.solution or task.answer:
            solved = f"{{ {task.solution or ':'} ; }} && {task.check}"
            found = await self._run(task, branch, solved, task.answer)
            if not found.passed:
                raise CannotJudge(
                    f"its check does not pass after its own solution here ({_ended(found)}): {_last(found)}"
                )

    async def _run(self, task: Task, branch: "Branch", command: str, answer: str = "") -> "Check":
        """Run a command on a throw-away fork of a branch; hidden files are read-only, and outside of it."""
        async with _beside(task, answer) as beside:
            hidden = task.hidden or beside
            shown = tuple(dict.fromkeys((*self._checking.read_only, str(hidden), str(beside))))
            settings = msgspec.structs.replace(self._checking, read_only=shown)
            host = self._application.sandboxes
            known = {"CHECK": str(hidden), "ANSWER": f"{beside}/answer.txt", "PYTHONDONTWRITEBYTECODE": "1"}
            said = " ".join(f"{name}={shlex.quote(value)}" for name, value in known.items())
            async with checks_in(host.data_dir, settings, await host.status(), task.check_s) as check:
                return await check(branch, f"export {said}\n{command}")

    async def _judge(self, task: Task, thread_id: str, answer: str, found: Try) -> Try:
        branch = await self._sessions.branch(thread_id)
        landing = await to_thread(partial(_what_would_land, branch))
        try:
            check = await self._run(task, landing, task.check, answer)
        finally:
            await to_thread(partial(landing.discard, keep=False))
        return msgspec.structs.replace(
            found,
            state="right" if check.passed else "wrong",
            reason="" if check.passed else f"the check {_ended(check)}",
            output="" if check.passed else check.output_tail,
        )

    # ------------------------------------------------------------ a try

    async def run(self, who: Contender, task: Task, number: int) -> Try:
        """Try a task once; the directory of a try that is not right stays, for its branch to be looked at."""
        place = Path(await to_thread(partial(tempfile.mkdtemp, prefix="bowerbird-eval-")))
        keep = False
        try:
            found = Try(contender=who.name, task=task.name, number=number, digest=task.digest, state="failed")
            try:
                work = await to_thread(_begin, task, place)
                found = await self._tried(who, task, str(work), found)
            except (BowerbirdError, OSError) as error:
                found = msgspec.structs.replace(found, reason=str(error))
            keep = bool(found.session) and found.state != "right"
            return found
        finally:
            if not keep:
                await to_thread(partial(shutil.rmtree, place, ignore_errors=True))

    async def _tried(self, who: Contender, task: Task, work: str, found: Try) -> Try:
        flags = {"memory": False, "enable_approval": False}
        flags |= {"provider_agent": who.name} if who.is_agent else {"model": who.name}
        hide = self._application.loaded.settings.workspace.hidden
        made = await self._sessions.create(
            NewSession(title=f"eval: {task.name} {found.number}"[:80], flags=flags, workspace=work, hide=hide)
        )
        thread_id = made.thread_id
        found = msgspec.structs.replace(found, session=thread_id)
        began = time.monotonic()
        turn = self._agent_turn if who.is_agent else self._model_turn
        found, answer = await turn(who, task, thread_id, found)
        found = msgspec.structs.replace(found, seconds=round(time.monotonic() - began, 3))
        if made.branch_id is not None:
            await self._application.sandboxes.release(made.branch_id)
        if found.state != "judging":
            return found
        try:
            return await self._judge(task, thread_id, answer, found)
        except (BowerbirdError, OSError) as error:
            return msgspec.structs.replace(
                found, state="unjudged", reason=f"the check could not run: {error}"
            )

    async def _model_turn(self, _: Contender, task: Task, thread_id: str, found: Try) -> tuple[Try, str]:
        from bowerbird.sessions import shown

        await self._application.drive(thread_id)
        receipt = await self._sessions.submit(thread_id, task.request, door="eval")
        state, reason = "judging", ""
        try:
            async with asyncio.timeout(task.time_s):
                turn = await self._sessions.wait(receipt.turn_id)
        except TimeoutError:
            state, reason = "timeout", f"stopped after {task.time_s:g} s"
            turn = await self._stopped(thread_id, receipt.turn_id)
        if turn.state == "waiting":  # nobody is here to answer
            turn = await self._stopped(thread_id, receipt.turn_id)
        elif turn.state == "failed" and state == "judging":
            state, reason = "failed", str((turn.error or {}).get("message") or turn.stop_reason)
        used = msgspec.structs.asdict(await self._sessions.tokens(thread_id))
        records = await self._sessions.history(thread_id)
        steps = used["calls"] + sum(record.type == "tool_outcome" for record in records)
        tokens = sum(value for name, value in used.items() if name.endswith("_tokens"))
        found = msgspec.structs.replace(found, state=state, reason=reason, tokens=tokens, steps=steps, **used)
        return found, str((await shown.answered(self._sessions, turn))["text"])

    async def _stopped(self, thread_id: str, turn_id: str) -> "TurnInfo":
        with suppress(SessionError):  # it has just ended
            await self._sessions.cancel(thread_id)
        async with asyncio.timeout(STOP_S):
            return await self._sessions.wait(turn_id)

    async def _agent_turn(self, who: Contender, task: Task, thread_id: str, found: Try) -> tuple[Try, str]:
        from bowerbird.providers.contract.types import AgentRequest, BranchRef
        from bowerbird.sessions.provider_agents.part import ProviderAgents

        branch = (await self._sessions.row(thread_id)).branch_id
        assert branch is not None, "a new session has a branch"
        steps: list[str] = []
        request = AgentRequest(
            task.request, timeout=task.time_s, session_id=thread_id, branch=BranchRef(branch)
        )
        began = time.monotonic()
        response = await self._sessions.part(ProviderAgents).run(
            who.name, request, owner="",
            on_event=lambda event: steps.append(event.text) if event.kind == "tool" else None,
        )  # fmt: skip
        in_time = time.monotonic() - began < task.time_s
        state = "judging" if response.success else "failed" if in_time else "timeout"
        found = msgspec.structs.replace(
            found, state=state, reason=response.error or "", cost=response.cost, tokens=response.tokens_used,
            steps=len(steps) or None,
        )  # fmt: skip
        return found, response.content


@asynccontextmanager
async def _beside(task: Task, answer: str) -> AsyncGenerator[Path]:
    """Give a directory with what the check reads beside the task's own files."""

    def put() -> None:
        (place / "answer.txt").write_text(answer, encoding="utf-8", errors="surrogateescape")
        for name, text in task.extra.items():
            (place / name).write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
        if task.repo is not None and task.test_patch:
            _put_tests(task, place / "tests")

    place = Path(await to_thread(partial(tempfile.mkdtemp, prefix="bowerbird-check-")))
    try:
        await to_thread(put)
        yield place
    finally:
        await to_thread(partial(shutil.rmtree, place, ignore_errors=True))


def _what_would_land(branch: "Branch") -> "Branch":
    """Return a throw-away fork without what stays on the branch by itself: caches, and what git ignores."""
    fork = branch.fork("eval", carry=True, throwaway=True)
    landing = set(fork.changes(ignored=False).paths)
    left = [p for p in fork.changes().paths if p not in landing and ".git" not in p.split("/")]
    if left:
        fork.revert(left)
    return fork


def _begin(task: Task, place: Path) -> Path:
    """Make the directory that a try starts from. Blocks."""
    work = place / "work"
    if task.repo is not None:
        work.mkdir()
        _checkout(task, work)
    elif task.files is not None:
        shutil.copytree(task.files, work, symlinks=True)
    else:
        work.mkdir()
    return work


def _checkout(task: Task, work: Path) -> None:
    """Put a repository's files at a commit into a new repository of one commit: nothing later is in it."""
    import pygit2
    from pygit2.enums import CheckoutStrategy

    with _commit(task, "it cannot be checked out") as (repository, commit):
        strategy = CheckoutStrategy.FORCE | CheckoutStrategy.DONT_UPDATE_INDEX
        repository.checkout_tree(commit.tree, directory=os.fspath(work), strategy=strategy)
        new = pygit2.init_repository(os.fspath(work), initial_head="main")
        new.index.add_all()
        new.index.write()
        who = pygit2.Signature("eval", "eval@localhost", 0, 0)
        new.create_commit("HEAD", who, who, "start", new.index.write_tree(), [])


def _put_tests(task: Task, place: Path) -> None:
    """Put the files that the test patch touches, as it leaves them, into a directory."""
    import pygit2

    place.mkdir()
    with _commit(task, "its test_patch does not apply") as (_, commit):
        patch = pygit2.Diff.parse_diff(task.test_patch)
        for path in {delta.old_file.path for delta in patch.deltas}:
            if path in commit.tree:
                (place / path).parent.mkdir(parents=True, exist_ok=True)
                (place / path).write_bytes(commit.tree[path].read_raw())
        pygit2.init_repository(os.fspath(place)).apply(patch)
    shutil.rmtree(place / ".git")


@contextmanager
def _commit(task: Task, trouble: str) -> "Generator[tuple[Any, pygit2.Commit]]":
    """Give a task's repository and its commit; what git says against what is done with them is a refusal."""
    import pygit2

    try:
        repository = pygit2.Repository(str(task.repo))
        commit = repository.revparse_single(task.commit).peel(pygit2.Commit)
    except (pygit2.GitError, KeyError, ValueError) as error:
        raise CannotJudge(f"{task.repo} has no commit {task.commit}: {error}") from error
    try:
        yield repository, commit
    except (pygit2.GitError, KeyError, ValueError) as error:
        raise CannotJudge(f"{trouble}: {error}") from error


def _ended(check: "Check") -> str:
    return "ran out of time" if check.exit_code == TIMED_OUT else f"ended with exit code {check.exit_code}"


def _last(check: "Check") -> str:
    lines = [line for line in check.output_tail.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it printed nothing"
