"""Several calls answered one by one, and a command that is edited, in the page (UI-71)."""

import asyncio

import msgspec
import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import is_idle, log, say, serious_findings

pytestmark = pytest.mark.timeout(patience(60))


async def test_one_call_is_left_out_and_another_runs_edited(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-71: the page shows the command that ran, and the model is told of it."""
    commands = ["echo first", "echo second", "echo third"]
    calls = [{"name": "bash", "input": {"command": command}} for command in commands]
    fake.script({"tools": calls}, {"text": "Done."})
    await page.goto("/dev")
    await page.get_by_role("button", name="New chat").first.click()
    await page.get_by_role("checkbox", name="Approval").check()
    await page.get_by_role("button", name="Begin").click()
    await say(page, "go")
    ask = page.get_by_role("region", name="Approval needed")
    await ask.get_by_role("checkbox", name="Run this one").nth(1).uncheck()
    await ask.get_by_role("button", name="Edit the command").first.click()
    await ask.get_by_role("textbox", name="Command to run instead").fill("echo edited | rev")
    assert await serious_findings(page) == []
    await ask.get_by_role("button", name="Approve", exact=True).click()
    await expect(log(page).get_by_text("Done.")).to_be_visible()
    await is_idle(page)
    await expect(log(page).get_by_text("echo edited | rev").first).to_be_visible()
    told = str(fake.requests[-1])
    assert "What ran: echo edited | rev" in told and "detide" in told
    assert "User denied this tool call" in told and "third" in told


async def test_what_nobody_would_see_in_a_command_is_named_before_it_is_allowed(
    page: Page, fake: FakeModels
) -> None:
    """UI-71, UI-87: a right-to-left override turns the words of a command around, in the question and afterwards."""
    command = "echo \u202egpj.elif\u202c; echo done"
    write = {"name": "write_file", "input": {"path": "/notes\nmore.txt", "content": "a\u200bb"}}
    fake.script({"tools": [{"name": "bash", "input": {"command": command}}, write]}, {"text": "Done."})
    await page.goto("/dev")
    await page.get_by_role("button", name="New chat").first.click()
    await page.get_by_role("checkbox", name="Approval").check()
    await page.get_by_role("button", name="Begin").click()
    await say(page, "go")
    ask = page.get_by_role("region", name="Approval needed")
    await expect(ask).to_contain_text("echo ‹U+202E›gpj.elif‹U+202C›; echo done")
    await expect(ask).to_contain_text("/notes‹U+000A›more.txt")
    await ask.get_by_role("button", name="Approve", exact=True).click()
    await is_idle(page)
    await expect(log(page).locator("details.tool summary").first).to_contain_text("echo ‹U+202E›gpj")


@pytest.mark.parametrize("button", ["Approve all in this conversation", "Always allow"])
async def test_a_call_that_was_left_out_stays_out_whatever_button_answers_for_the_rest(
    page: Page, fake: FakeModels, button: str
) -> None:
    calls = [
        {"name": "bash", "input": {"command": f"printf %s%s {word}"}} for word in ("le ftout", "al lowed")
    ]
    fake.script({"tools": calls}, {"text": "Done."})
    await page.goto("/dev")
    await page.get_by_role("button", name="New chat").first.click()
    await page.get_by_role("checkbox", name="Approval").check()
    await page.get_by_role("button", name="Begin").click()
    await say(page, "go")
    ask = page.get_by_role("region", name="Approval needed")
    await ask.get_by_role("checkbox", name="Run this one").first.uncheck()
    await ask.get_by_role("button", name=button, exact=True).click()
    await is_idle(page)
    told = str(fake.requests[-1])
    assert "leftout" not in told and "allowed" in told


async def test_a_question_that_nobody_answered_in_time_is_answered_later(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """It stays in the page, over a reload, and what is said meanwhile waits for it."""
    server.sessions.use(msgspec.structs.replace(server.sessions.settings, approval_timeout_s=0.5))
    fake.script(
        {"tools": [{"name": "bash", "input": {"command": "echo late | rev"}}]},
        {"text": "First."},
        {"text": "Second."},
    )
    await page.goto("/dev")
    await page.get_by_role("button", name="New chat").first.click()
    await page.get_by_role("checkbox", name="Approval").check()
    await page.get_by_role("button", name="Begin").click()
    await say(page, "go")
    ask = page.get_by_role("region", name="Approval needed")
    await expect(log(page).get_by_text("approval_timeout").first).to_be_visible()
    await say(page, "and then")
    await expect(page.get_by_text("Waits until the question above is answered")).to_be_visible()
    await page.reload()
    await ask.get_by_role("button", name="Approve", exact=True).click()
    await expect(log(page).get_by_text("Second.")).to_be_visible()
    assert "etal" in str(fake.requests[1]) and "and then" in str(fake.requests[2])


async def test_a_press_meant_for_the_question_before_does_not_answer_the_next(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """Another door answers while a finger is on its way; the next question is drawn where it lands."""
    steps = [{"tools": [{"name": "bash", "input": {"command": f"echo {word}"}}]} for word in ("one", "two")]
    fake.script(*steps, {"text": "Done."})
    await page.goto("/dev")
    await page.get_by_role("button", name="New chat").first.click()
    await page.get_by_role("checkbox", name="Approval").check()
    await page.get_by_role("button", name="Begin").click()
    await say(page, "go")
    ask = page.get_by_role("region", name="Approval needed")
    await expect(ask).to_contain_text("echo one")
    press = asyncio.ensure_future(
        page.evaluate(
            """() => new Promise((pressed) => {
                const press = () => {
                    const next = [...document.querySelectorAll("section.ask")].find((one) => one.textContent.includes("echo two"));
                    if (!next) return void requestAnimationFrame(press);
                    next.querySelector("button.primary").click();
                    pressed();
                };
                press();
            })"""
        )
    )
    (first,) = (await server.http.get("/api/approvals")).json()
    await server.http.post(f"/api/approvals/{first['request_id']}", json={"decision": "approve"})
    await press
    await page.wait_for_timeout(300)
    (second,) = (await server.http.get("/api/approvals")).json()
    assert second["request_id"] != first["request_id"]
    await ask.get_by_role("button", name="Approve", exact=True).click()
    await is_idle(page)
    await expect(log(page).get_by_text("Done.")).to_be_visible()
