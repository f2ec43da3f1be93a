"""What a person always allows is kept with the answer and holds in later turns (UI-71)."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.sessions import QUICK, Place, changed, place

from bowerbird.agent.policy import Policy
from bowerbird.core.errors import InvalidArgument, NotFound
from bowerbird.core.events import CallAnswer
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.permission_rules import PermissionRules
from bowerbird.sessions.service import SessionService
from bowerbird.sessions.settings import SessionSettings
from bowerbird.tools import Tool

ASKS = Policy.of({"enable_approval": True})


async def send(text: str) -> str:
    """Send a text.

    Args:
        text: What to send.
    """
    return f"sent {text}"


SEND = {"tools": [{"name": "send", "input": {"text": "hi"}}]}
OK = {"text": "ok"}


def writes(path: str) -> dict[str, Any]:
    return {"tools": [{"name": "write_file", "input": {"path": path, "content": "x"}}]}


def opened(
    directory: Path, fake: FakeModels, settings: SessionSettings = QUICK
) -> AbstractAsyncContextManager[Place]:
    def parts(service: SessionService) -> Sequence[SessionPart]:
        return (PermissionRules(service.store),)

    tools = (Tool(send, effect="outside"),)
    return place(directory, fake, tools=tools, policy=ASKS, parts=parts, settings=settings)


async def state(home: Place, thread: str, *steps: dict[str, Any]) -> str:
    """Return how a turn of these steps stands once it is over or waits for somebody."""
    home.fake.script(*steps)
    receipt = await home.service.submit(thread, "go")
    found = ""

    async def stands() -> bool:
        nonlocal found
        [found] = [turn.state for turn in await home.service.turns(thread) if turn.turn_id == receipt.turn_id]
        return found in ("done", "failed", "waiting")

    await home.until(stands)
    return found


async def over(home: Place, thread: str) -> None:
    async def ended() -> bool:
        return (await home.service.turns(thread))[-1].state == "done"

    await home.until(ended)


async def test_always_in_a_directory_holds_there_in_every_session_and_after_a_restart(
    tmp_path: Path, fake: FakeModels
) -> None:
    """UI-71: kept with the answer, listed, taken back."""
    async with opened(tmp_path, fake) as home:
        first, second = await home.session(), await home.session()
        elsewhere = await home.session(workspace=str(tmp_path))
        assert await state(home, first, writes("src/a.py"), writes("src/b.py"), OK) == "waiting"
        [question] = await home.service.pending()
        assert question.tools[0]["rules"] == ["write_file(src/*)"]
        await home.service.answer(question.request_id, "always_workspace", by="ada")
        await over(home, first)  # the second call of the turn was not asked about
        assert await state(home, second, writes("src/c.py"), OK) == "done"
        assert await state(home, second, writes("top.py"), OK) == "waiting", "another directory"
        await home.service.cancel(second)
        assert await state(home, elsewhere, writes("src/a.py"), OK) == "waiting", "another workspace"
        await home.service.cancel(elsewhere)
    fake.reset()
    async with opened(tmp_path, fake) as home:
        rules = home.service.part(PermissionRules)
        [row] = await rules.list("")
        assert (row.scope, row.target, row.by) == ("workspace", str(home.project), "ada")
        assert await state(home, first, writes("src/d.py"), OK) == "done"
        assert await rules.list("ada") == []
        with pytest.raises(NotFound):
            await rules.remove(row.id, "ada")
        await rules.remove(row.id, "")
        assert await state(home, first, writes("src/e.py"), OK) == "waiting"
        await home.service.cancel(first)
        with pytest.raises(NotFound, match="permissions"):
            await rules.remove(row.id, "")


@pytest.mark.parametrize("decision", ["always_session", "always_everywhere", "auto_approve"])
@pytest.mark.parametrize("timeout_s", [300.0, 0.05])
async def test_a_call_that_is_denied_by_itself_does_not_run_whatever_is_allowed_beside_it(
    tmp_path: Path, fake: FakeModels, decision: str, timeout_s: float
) -> None:
    """At once, and in a turn that went on because the time to answer was over; no rule is kept of it."""
    both = {
        "tools": [*writes("src/a.py")["tools"], *writes("src/b.py")["tools"], *writes("lib/c.py")["tools"]]
    }
    async with opened(tmp_path, fake, changed(approval_timeout_s=timeout_s)) as home:
        thread = await home.session()
        assert await state(home, thread, both, OK) == "waiting"
        await asyncio.sleep(timeout_s * 4 if timeout_s < 1 else 0)
        [question] = await home.service.pending()
        denied = {str(tool["id"]): CallAnswer("deny") for tool in question.tools[1:]}
        await home.service.answer(question.request_id, decision, by="ada", calls=denied)
        await over(home, thread)
        branch = await home.service.branch(thread)
        assert branch.changes().written == ("/src/a.py",)
        kept = {row.rule for row in await home.service.part(PermissionRules).list(None)}
        assert kept == (set() if decision == "auto_approve" else {"write_file(src/*)"})


async def test_always_in_a_session_ends_with_it_and_everywhere_holds_everywhere(
    tmp_path: Path, fake: FakeModels
) -> None:
    """UI-71: the three reaches of a rule."""
    async with opened(tmp_path, fake) as home:
        first, second = await home.session(), await home.session(workspace=str(tmp_path))
        assert await state(home, first, SEND, OK) == "waiting"
        await home.service.answer(None, "always_session", thread_id=first)
        await over(home, first)
        assert await state(home, first, SEND, OK) == "done"
        assert await state(home, second, SEND, OK) == "waiting"
        await home.service.answer(None, "always_everywhere", thread_id=second)
        await over(home, second)
        third = await home.session(workspace=None)
        assert await state(home, third, SEND, OK) == "done"
        rules = home.service.part(PermissionRules)
        assert [(row.scope, row.rule) for row in await rules.list(None)] == [
            ("everywhere", "send"), ("session", "send"),
        ]  # fmt: skip
        await home.service.delete(first)
        assert [row.scope for row in await rules.list(None)] == ["everywhere"]


async def test_what_cannot_be_allowed_for_good_stays_asked(tmp_path: Path, fake: FakeModels) -> None:
    """UI-71: no rule reaches a marked path; a wrong answer changes nothing."""
    async with opened(tmp_path, fake) as home:
        thread = await home.session()
        assert await state(home, thread, writes(".github/workflows/ci.yml"), OK) == "waiting"
        with pytest.raises(InvalidArgument, match="for good"):
            await home.service.answer(None, "always_workspace", thread_id=thread)
        await home.service.answer(None, "approve", thread_id=thread)
        await over(home, thread)
        assert await home.service.part(PermissionRules).list(None) == []


async def test_the_newest_thousand_rules_of_a_person_are_kept(tmp_path: Path, fake: FakeModels) -> None:
    from bowerbird.store.rows.permission_rules import MOST, add_rules

    async with opened(tmp_path, fake) as home:
        many = [f"bash(make {n})" for n in range(MOST + 7)]
        await home.store.write(lambda c: add_rules(c, "ada", "everywhere", "", many[:5], "ada"))
        await home.store.write(lambda c: add_rules(c, "ada", "everywhere", "", many, "ada"))
        await home.store.write(lambda c: add_rules(c, "bob", "everywhere", "", ["bash(ls *)"], "bob"))
        rules = home.service.part(PermissionRules)
        assert [row.rule for row in await rules.list("ada")] == many[: -MOST - 1 : -1]
        assert len(await rules.list(None)) == MOST + 1
