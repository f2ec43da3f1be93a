"""At which temperature and from which seed the embedded model answers."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from support.patience import HANG_S

from bowerbird.app import open_application
from bowerbird.config import load_settings
from bowerbird.core.messages import assistant_text, user_text
from bowerbird.core.requests import End, ModelEvent, ModelRequest, Start
from bowerbird.core.usage import Usage
from bowerbird.models.local import LocalModel
from bowerbird.models.protocol import complete
from bowerbird.sessions import NewSession


async def said(model: LocalModel, session: str, temperature: float) -> str:
    request = ModelRequest((user_text("go on"),), session=session, temperature=temperature, max_tokens=12)
    return (await complete(model, request)).message.text


async def test_sessions_differ_where_they_are_sampled_and_each_repeats_itself(model: LocalModel):
    """D-23: attempts of one model that all write the same do not compete."""
    first, second = await said(model, "a", 1.0), await said(model, "b", 1.0)
    assert first != second
    assert await said(model, "a", 1.0) == first


async def test_the_likeliest_text_is_that_of_every_session(model: LocalModel):
    assert await said(model, "a", 0.0) == await said(model, "b", 0.0)


@pytest.mark.parametrize(
    ("settings", "temperature"),
    [
        pytest.param({}, 0.0, id="usual"),
        pytest.param({"agent.temperature": 0.9}, 0.0, id="of-other-models"),
        pytest.param({"provider.temperature": 0.6}, 0.6, id="asked-for"),
    ],
)
async def test_a_session_takes_the_likeliest_step_unless_its_provider_is_set(
    tiny_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    temperature: float,
):
    """D-23: commands ran at 1.0, the setting of large models, and jobs of the demo came out by chance."""
    asked: list[ModelRequest] = []

    async def stream(self: LocalModel, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        asked.append(request)
        yield Start(self.info.name)
        yield End(assistant_text("here"), "end_turn", Usage(), model=self.info.name)

    monkeypatch.setattr(LocalModel, "stream", stream)
    project = tmp_path / "project"
    project.mkdir()
    given = {"agent.data_dir": str(tmp_path / "data"), "memory.enabled": False, **settings}
    loaded = load_settings(given, env={"HOME": str(tmp_path)}, cwd=tmp_path, home=tmp_path, workspace=project)
    async with open_application(
        loaded, workspace=project, model=f"local:{tiny_path}", attended=True
    ) as application:
        thread = (await application.sessions.create(NewSession(workspace=str(project)))).thread_id
        await application.drive(thread)
        await application.sessions.submit(thread, "Where is the port?")
        async with asyncio.timeout(HANG_S):
            while not asked:
                await asyncio.sleep(0.02)
    assert asked[0].temperature == temperature
