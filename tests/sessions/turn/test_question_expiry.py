"""How long a question can be answered (SE-21)."""

from pathlib import Path

from support.fake_models import FakeModels
from support.sessions import changed, place, writes

from bowerbird.agent.policy import Policy


async def test_a_question_whose_time_is_over_waits_for_nobody(tmp_path: Path, fake: FakeModels) -> None:
    """SE-21, SV-8: lists went on saying that the session asks, and every answer was refused."""
    fake.script(writes("a.txt", "x"))
    settings = changed(approval_expiry_days=0, approval_timeout_s=0.3)
    async with place(tmp_path, fake, settings=settings, policy=Policy.of({"ask": ["write_file"]})) as home:
        thread = await home.session()
        await home.service.submit(thread, "go")

        async def asks() -> bool:
            return (await home.service.get(thread)).pending == "approval"

        async def is_over() -> bool:
            return (await home.service.get(thread)).pending is None

        await home.until(asks)
        assert await home.service.asking() == {thread}
        await home.until(is_over)
        assert await home.service.pending() == [] and await home.service.asking() == set()
        assert [info.status for info in await home.service.list()] == ["waiting"]


async def test_a_question_can_be_answered_while_its_turn_waits_for_it(
    tmp_path: Path, fake: FakeModels
) -> None:
    """`approval.expiry_days: 0` means no longer than that; a question had expired when it was asked."""
    fake.script(writes("a.txt", "x"), {"text": "thanks"})
    settings = changed(approval_expiry_days=0, approval_timeout_s=60)
    async with place(tmp_path, fake, settings=settings, policy=Policy.of({"ask": ["write_file"]})) as home:
        thread = await home.session()
        receipt = await home.service.submit(thread, "go")

        async def asks() -> bool:
            return bool(await home.service.pending())

        await home.until(asks)
        (request,) = await home.service.pending()
        await home.service.answer(request.request_id, "approve")
        assert (await home.service.wait(receipt.turn_id)).state == "done"
