"""Files of an export that somebody else wrote: what cannot be is set aside and named, and stops no neighbour."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import place

from bowerbird.sessions.transfer.exporting import export_state
from bowerbird.sessions.transfer.importing import import_state

LINE = {"v": 1, "turn": None, "type": "settings", "at": "2026-11-27T10:00:00.000000+00:00", "body": {}}
TASK = {"id": "a1b2c3d4", "type": "interval", "value": "3600", "prompt": "p", "created_at": LINE["at"]}


@pytest.fixture
async def exported(tmp_path: Path, fake: FakeModels) -> tuple[Path, str]:
    fake.script({"text": "ok"})
    async with place(tmp_path / "one", fake) as home:
        thread = await home.session()
        await home.ask(thread)
        await export_state(home.store, tmp_path / "out")
    return tmp_path / "out", thread


@pytest.mark.parametrize(
    "numbers", [{"seq": 10**30}, {"seq": 0}, {"seq": -5}, {"seq": 1, "epoch": 10**30}, {"seq": 1, "v": 2**40}],
    ids=str,
)  # fmt: skip
@pytest.mark.timeout(HANG_S)
async def test_records_with_numbers_that_cannot_be_are_set_aside(
    tmp_path: Path, fake: FakeModels, exported: tuple[Path, str], numbers: dict[str, int], database_url: str
) -> None:
    """A number beyond the database's ended the whole import with an internal error."""
    source, thread = exported
    (source / "journal" / "0000000000aa.jsonl").write_text(json.dumps({"epoch": 1, **LINE, **numbers}) + "\n")
    async with place(tmp_path / "two", fake, url=database_url) as home:
        report = await import_state(home.store, source)
        assert report.exit_code == 3
        assert [info.thread_id for info in await home.service.list()] == [thread]


@pytest.mark.parametrize(
    "content", ["[" * 200_000, json.dumps([{**TASK, "fail_count": 10**30}]), '[{"fail_count": 1e400}]', None],
    ids=["deep", "many failures", "endless failures", "a pipe"],
)  # fmt: skip
@pytest.mark.timeout(HANG_S)
async def test_a_file_that_cannot_be_read_stops_no_neighbour(
    tmp_path: Path, fake: FakeModels, exported: tuple[Path, str], content: Any, database_url: str
) -> None:
    source, thread = exported
    path = source / "scheduled_tasks.json"
    path.unlink()
    if content is None:
        os.mkfifo(path)
    else:
        path.write_text(content.replace('"fail_count": 1e', json.dumps(TASK)[1:-1] + ', "fail_count": 1e'))
    async with place(tmp_path / "two", fake, url=database_url) as home:
        report = await import_state(home.store, source)
        counts = {file.file: (file.imported, file.set_aside) for file in report.files}
        assert report.exit_code == 3 and counts["scheduled_tasks.json"] == (0, 1)
        assert [info.thread_id for info in await home.service.list()] == [thread]
