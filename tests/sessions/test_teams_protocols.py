"""Requests between lead and teammates that really complete (DE-62 … DE-64; issue 5, must-show 6)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.children import wrote
from support.fake_models import FakeModels
from support.teams import (
    ask,
    busy,
    do,
    new_lead,
    newest,
    opened,
    order,
    outcomes,
    play,
    reaches,
    requests_of,
    said,
    statuses,
    text_of,
    until,
)

from bowerbird.app import Application


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


async def checked(app: Application, lead: str, request_id: str) -> dict[str, Any]:
    return await do(app, lead, "check_protocol", request_id=request_id)


async def decided(app: Application, lead: str, request_id: str, status: str) -> dict[str, Any]:
    """Wait until a request has a state, without asking a model."""
    from bowerbird.store.rows.team_mail import requests_of as rows_of

    async def there() -> bool:
        rows = await app.store.read(lambda c: rows_of(c, lead))
        return any(row.request_id == request_id and row.status == status for row in rows)

    await until(there)
    return await checked(app, lead, request_id)


def answers(body: dict[str, Any], **answer: Any) -> dict[str, Any] | None:
    """The step that answers a shutdown request in the newest message, None without one."""
    if "shutdown_request" not in newest(body):
        return None
    given = {"to": "lead", "content": "my answer", "msg_type": "shutdown_response", **answer}
    return {"tools": [{"name": "send_message", "input": given}]}


async def test_a_shutdown_that_is_approved_merges_and_stops(fake: FakeModels, tmp_path: Path) -> None:
    """DE-52, DE-53, DE-63, acceptance 11: `check_protocol` says approved; it stops in the middle of its work."""

    def ann(body: dict[str, Any]) -> dict[str, Any]:
        if len(body["messages"]) <= 2:
            return wrote("ann.txt")
        return answers(body, approve=True, reason="finished") or busy(body)

    play(fake, {"ann": ann})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="work")
        made = await do(app, lead, "shutdown_request", teammate="ann")
        assert list(made) == ["request_id", "status"] and made["status"] == "pending"
        assert len(made["request_id"]) == 8 and int(made["request_id"], 16) >= 0
        await reaches(app, lead, ann="shutdown")
        found = await checked(app, lead, made["request_id"])
        assert list(found) == ["request_id", "kind", "teammate", "status", "created", "answered", "detail"]
        assert (found["kind"], found["teammate"], found["status"]) == ("shutdown", "ann", "approved")
        assert found["detail"] == "finished" and found["answered"]
        assert (await app.sessions.branch(lead)).changes().written == ("/ann.txt",)
        last = requests_of(fake, "ann")[-1]
        assert "shutdown_request" in newest(last), "nothing was asked of its model after the answer"
        assert (await do(app, lead, "check_protocol"))["requests"] == []


async def test_a_shutdown_that_is_rejected_lets_it_work_on(fake: FakeModels, tmp_path: Path) -> None:
    """DE-63: `rejected` with the reason; a second answer, or one to nothing, is an error (DE-62)."""

    def ann(body: dict[str, Any]) -> dict[str, Any]:
        if "more time" in text_of(body) and "twice" not in text_of(body):
            again = {"to": "lead", "content": "twice", "msg_type": "shutdown_response", "approve": True}
            return {"tools": [{"name": "send_message", "input": again}]}
        return answers(body, approve=False, reason="more time") or {"text": "done"}

    play(fake, {"ann": ann})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="work")
        made = await do(app, lead, "shutdown_request", teammate="ann")
        found = await decided(app, lead, made["request_id"], "rejected")
        assert found["detail"] == "more time"
        await reaches(app, lead, ann="idle")
        second = (await outcomes(app, f"{lead}.team.ann", "send_message"))[-1]
        assert second["status"] == "error" and "no shutdown request is open" in second["data"]["error"]
        stopped = await do(app, lead, "shutdown_request", teammate="ann", force=True)
        assert stopped == {"teammate": "ann", "status": "interrupted"}
        await reaches(app, lead, ann="interrupted")


async def test_a_shutdown_nobody_answers_expires_and_may_be_forced(fake: FakeModels, tmp_path: Path) -> None:
    """DE-63, acceptance 11: `expired`; `force` before that is refused, afterwards it cancels."""
    play(fake, {"ann": [{"hang": True}]})
    async with opened(tmp_path, fake, **{"teams.shutdown_s": 1.5}) as app:
        lead = await new_lead(app, tmp_path)
        await ask(app, lead, order(
            ("spawn_teammate", {"name": "ann", "role": "r", "prompt": "work"}),
            ("shutdown_request", {"teammate": "ann"}),
            ("shutdown_request", {"teammate": "ann", "force": True}),
        ))  # fmt: skip
        made, early = await outcomes(app, lead, "shutdown_request")
        assert early["status"] == "error" and "ask first, without force" in early["data"]["error"]
        await decided(app, lead, made["data"]["request_id"], "expired")
        await ask(app, lead, "news?")
        assert "did not answer shutdown request" in text_of(requests_of(fake, "main")[-1])
        await do(app, lead, "shutdown_request", teammate="ann", force=True)
        await fake.wait_closed(1)
        await reaches(app, lead, ann="interrupted")


async def test_who_stops_by_itself_makes_an_open_shutdown_approved(fake: FakeModels, tmp_path: Path) -> None:
    """DE-63."""
    play(fake, {"ann": [{"text": "I do not answer"}]})
    async with opened(tmp_path, fake, **{"teams.idle_s": 0.5}) as app:
        lead = await new_lead(app, tmp_path)
        await ask(app, lead, order(
            ("spawn_teammate", {"name": "ann", "role": "r", "prompt": "work"}),
            ("shutdown_request", {"teammate": "ann"}),
        ))  # fmt: skip
        (made,) = await outcomes(app, lead, "shutdown_request")
        await reaches(app, lead, ann="shutdown")
        assert (await checked(app, lead, made["data"]["request_id"]))["status"] == "approved"


def planner(body: dict[str, Any]) -> dict[str, Any]:
    """Asks for approval of a plan, tries to write meanwhile, writes when it may."""
    fresh = "".join(said(body["messages"][-1]))
    if "approved: carry it out" in fresh:
        return wrote("planned.txt")
    if "rejected: revise it" in fresh or (len(body["messages"]) <= 2 and "tool_result" not in newest(body)):
        plan = {"to": "lead", "content": "I will write planned.txt", "msg_type": "plan_approval_request"}
        return {"tools": [{"name": "send_message", "input": plan}]}
    if "pending" in newest(body):
        return wrote("too-early.txt")
    return {"text": "that is all"}


async def plan_of(app: Application, lead: str, nth: int) -> dict[str, Any]:
    """The record of the `nth` plan request, once it is there."""
    from bowerbird.store.rows.team_mail import requests_of as rows_of

    async def there() -> Any:
        rows = await app.store.read(lambda c: rows_of(c, lead))
        found = [row for row in rows if row.kind == "plan"]
        return found[nth] if len(found) > nth else None

    row = await until(there)
    return {"request_id": row.request_id, "detail": row.detail}


async def test_a_plan_is_reviewed_and_the_teammate_goes_on(fake: FakeModels, tmp_path: Path) -> None:
    """DE-54, DE-64, acceptance 11: only reading while it is open; rejected: revised; approved: carried out."""
    play(fake, {"ann": planner})
    async with opened(tmp_path, fake, **{"teams.idle_s": 1.0}) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="work")
        first = await plan_of(app, lead, 0)
        assert first["detail"] == "I will write planned.txt"
        (pending,) = (await do(app, lead, "check_protocol"))["requests"]
        assert (pending["kind"], pending["status"], pending["teammate"]) == ("plan", "pending", "ann")
        ann = f"{lead}.team.ann"
        await until(lambda: _has_ended(app, ann, 1))
        denied = (
            (await outcomes(app, ann, "write_file"))[-1] if await outcomes(app, ann, "write_file") else None
        )
        assert denied is None, "a denied call has no intent"
        assert "until it comes you may only read" in text_of(requests_of(fake, "ann")[-1])
        # It waits far longer than an idle teammate would.
        reviewed = await do(
            app, lead, "plan_review", request_id=first["request_id"], approve=False, feedback="smaller"
        )
        assert reviewed["status"] == "rejected"
        second = await plan_of(app, lead, 1)
        assert second["request_id"] != first["request_id"]
        assert "Your plan is rejected: revise it. smaller" in text_of(requests_of(fake, "ann")[-1])
        answer = order(("send_message", {
            "to": "ann", "content": "go", "msg_type": "plan_approval_response", "approve": True,
        }))  # fmt: skip
        await ask(app, lead, answer)
        await reaches(app, lead, ann="shutdown")
        assert (await app.sessions.branch(lead)).changes().written == ("/planned.txt",)
        assert (await checked(app, lead, second["request_id"]))["status"] == "approved"


async def _has_ended(app: Application, thread: str, count: int) -> bool:
    turns = await app.sessions.turns(thread)
    return sum(turn.state == "done" for turn in turns) >= count


async def test_a_plan_nobody_reviews_expires_and_both_are_told(fake: FakeModels, tmp_path: Path) -> None:
    """DE-64, acceptance 11."""
    play(fake, {"ann": planner})
    async with opened(tmp_path, fake, **{"teams.plan_s": 1.0}) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="work")
        plan = await plan_of(app, lead, 0)
        await decided(app, lead, plan["request_id"], "expired")
        await until(
            lambda: any("expired unanswered; ask again" in text_of(b) for b in requests_of(fake, "ann"))
        )
        await reaches(app, lead, ann="idle")
        await ask(app, lead, "news?")
        assert "of ann expired unanswered" in text_of(requests_of(fake, "main")[-1])
        await ask(app, lead, order(("plan_review", {"request_id": plan["request_id"], "approve": True})))
        late = (await outcomes(app, lead, "plan_review"))[-1]
        assert late["status"] == "error" and "is expired already" in late["data"]["error"]


async def test_a_request_of_a_teammate_that_fails_is_void(fake: FakeModels, tmp_path: Path) -> None:
    """DE-62."""
    play(fake, {"ann": [{"text": "resting"}, {"status": 400, "body": {"error": {"message": "no"}}}]})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="work")
        await reaches(app, lead, ann="idle")
        made = await do(app, lead, "shutdown_request", teammate="ann")
        await reaches(app, lead, ann="error")
        assert (await checked(app, lead, made["request_id"]))["status"] == "void"
        assert await statuses(app, lead) == {"ann": "error"}


async def test_a_plan_that_waits_outlives_a_restart(fake: FakeModels, tmp_path: Path) -> None:
    """DE-57, DE-64, DE-66: nothing of a request exists only in memory."""
    play(fake, {"ann": planner})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="work")
        plan = await plan_of(app, lead, 0)
        await until(lambda: _has_ended(app, f"{lead}.team.ann", 1))
    asked = len(requests_of(fake, "ann"))
    async with opened(tmp_path, fake) as app:
        await app.drive(lead)
        assert await statuses(app, lead) == {"ann": "working"}
        assert (await checked(app, lead, plan["request_id"]))["status"] == "pending"
        assert len(requests_of(fake, "ann")) == asked, "it waits; nothing is asked of its model"
        await do(app, lead, "plan_review", request_id=plan["request_id"], approve=True)
        await reaches(app, lead, ann="idle")
        assert (await app.sessions.branch(lead)).changes().written == ("/planned.txt",)
