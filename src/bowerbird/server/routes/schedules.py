"""Scheduled tasks (SV-31, AS-29 … AS-39).

Here: the routes, whose tasks a caller sees. Not here: what a task may be (`scheduler/task_rules.py`), when it
runs.
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.responses import Response

from bowerbird.scheduler.changes import Sees
from bowerbird.scheduler.schedules import Schedules
from bowerbird.scheduler.task_rules import InvalidTask, NewTask
from bowerbird.server.common.context import Caller, ServerContext
from bowerbird.server.common.errors import Problem, invalid, problem
from bowerbird.server.common.json_answers import answer, clean
from bowerbird.server.conversations.conversations import workspace_of
from bowerbird.server.routes.common import Context, Shown, StrictBody, User, Viewer

router = APIRouter(prefix="/api/schedules", tags=["schedules"])

TaskId = Annotated[str, Path(max_length=64, description="Id of a task: 8 hex digits.")]
Type = Literal["cron", "interval", "once"]
CatchUp = Literal["one", "skip", "all"]
Notify = Literal["silent", "loud", "never"]
Words = Annotated[str | None, Field(max_length=200)]


class ScheduleShown(Shown):
    """A task; times are UTC. `next_runs`: the next three. `conversation_id`: of all its runs."""

    id: str
    prompt: str
    type: Type
    value: str
    channel: str | None
    chat_id: str | None
    created_at: str
    last_run: str | None
    active: bool
    model_tier: str | None
    owner: str | None
    tz: str | None
    next_run: str | None
    catch_up: CatchUp
    notify: Notify
    last_status: str | None
    fail_count: int
    paused: bool
    workspace: str | None
    next_runs: list[str]
    conversation_id: str


class ScheduleRun(Shown):
    """One run; cost null = not known."""

    task_id: str
    due: str
    turn_id: str
    started_at: str
    ended_at: str | None
    status: Literal["running", "retrying", "done", "failed", "cancelled"]
    cost: float | None
    tries: int
    retry_at: str | None
    error: str | None


class NewSchedule(StrictBody):
    """A task to make; `workspace` is a registered name."""

    prompt: Annotated[str, Field(max_length=10_000)]
    type: str
    value: Annotated[str, Field(max_length=200)]
    tz: Words = None
    model_tier: Words = None
    catch_up: CatchUp = "one"
    notify: Notify = "silent"
    channel: Words = None
    chat_id: Words = None
    workspace: Words = None


class ScheduleChange(StrictBody):
    """What is to be changed; left out = as it is."""

    prompt: Annotated[str | None, Field(max_length=10_000)] = None
    type: str | None = None
    value: Words = None
    tz: Words = None
    model_tier: Words = None
    catch_up: CatchUp | None = None
    notify: Notify | None = None
    paused: bool | None = None


@router.get("", response_model=list[ScheduleShown], summary="Scheduled tasks")
async def schedules(
    context: Context,
    caller: Viewer,
    every: Annotated[bool, Query(alias="all", description="Those that are over, too.")] = False,
) -> Response:
    """The caller's, in the order they were made; an admin sees everybody's."""
    return answer(await _part(context).list(_sees(caller), every=every))


@router.post("", response_model=ScheduleShown, summary="Make a scheduled task")
async def add(wanted: NewSchedule, context: Context, caller: User) -> Response:
    """Its answers go to `channel` and `chat_id`; without, they are in its conversation."""
    given: dict[str, Any] = wanted.model_dump()
    if wanted.channel is not None and caller.role != "admin":
        raise invalid(("body", "channel"), "Invalid channel: only an admin may name a chat here")
    workspace = workspace_of(context, wanted.workspace)
    given |= {"prompt": clean(wanted.prompt), "owner": caller.owner, "workspace": workspace}
    new = NewTask(**given)
    try:
        return answer(await _part(context).add(new))
    except InvalidTask as error:
        raise _problem(error) from None


@router.get("/{task_id}", response_model=ScheduleShown, summary="One scheduled task")
async def one(task_id: TaskId, context: Context, caller: Viewer) -> Response:
    """With its next three runs."""
    return answer(await _part(context).get(task_id, _sees(caller)))


@router.patch("/{task_id}", response_model=ScheduleShown, summary="Change, pause or resume a scheduled task")
async def change(task_id: TaskId, wanted: ScheduleChange, context: Context, caller: User) -> Response:
    """A resumed task, and one with other times, is planned from now on."""
    given: dict[str, Any] = wanted.model_dump(exclude_none=True)
    for cleared in ("model_tier", "tz"):
        if cleared in wanted.model_fields_set and getattr(wanted, cleared) is None:
            given[cleared] = None
    if "prompt" in given:
        given["prompt"] = clean(given["prompt"])
    try:
        return answer(await _part(context).change(task_id, given, _sees(caller)))
    except InvalidTask as error:
        raise _problem(error) from None


@router.delete("/{task_id}", response_model=ScheduleShown, summary="Cancel a scheduled task")
async def cancel(task_id: TaskId, context: Context, caller: User) -> Response:
    """For good; a run under way goes to its end, and its conversation stays."""
    return answer(await _part(context).call_off(task_id, _sees(caller)))


@router.post("/{task_id}/run", response_model=ScheduleRun, summary="Run a scheduled task now")
async def run_now(task_id: TaskId, context: Context, caller: User) -> Response:
    """Beside its own times; 409 while a run of it is under way."""
    return answer(await _part(context).run_now(task_id, _sees(caller)))


@router.get("/{task_id}/runs", response_model=list[ScheduleRun], summary="Runs of a scheduled task")
async def runs(task_id: TaskId, context: Context, caller: Viewer) -> Response:
    """The last 100, newest first."""
    return answer(await _part(context).runs(task_id, _sees(caller)))


def _part(context: ServerContext) -> Schedules:
    return context.sessions.part(Schedules)


def _sees(caller: Caller) -> Sees:
    return lambda task: caller.owns(task.owner)


def _problem(error: InvalidTask) -> Problem:
    if not error.field:  # nothing that was sent is wrong: the scheduler is off, there is no room, it is over
        return problem("conflict", str(error))
    return invalid(("body", error.field), str(error))
