"""Images a run reads reach the provider as images (TO-11, MO-7)."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import call, results
from support.fake_models import FakeModels
from support.pictures import png

from bowerbird.core.errors import InvalidArgument

PNG = png(more=bytes(range(256)) * 4)
ENCODED = base64.b64encode(PNG).decode()


def images(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Sources of the images in the tool results of a request."""
    parts = [part for r in results(body) if isinstance(r["content"], list) for part in r["content"]]
    return [part["source"] for part in parts if part["type"] == "image"]


async def test_an_image_read_by_a_tool_is_in_the_next_request_and_in_no_change(
    fake: FakeModels, make: Any, project: Path
) -> None:
    (project / "cat.png").write_bytes(PNG)
    fake.script({"tools": [call("read_file", path="cat.png")]}, {"text": "a cat"})
    agent = make(project)
    result = await agent.run("what is on it?")
    assert images(fake.requests[1]) == [{"type": "base64", "media_type": "image/png", "data": ENCODED}]
    assert ENCODED not in str(result.messages) and "sha256:" in str(result.messages)
    assert result.changes.record() == {"written": [], "deleted": []}


async def test_an_image_of_an_earlier_run_is_still_known_on_the_branch_and_on_its_forks(
    fake: FakeModels, make: Any, project: Path
) -> None:
    (project / "cat.png").write_bytes(PNG)
    fake.script({"tools": [call("read_file", path="cat.png")]}, {"text": "a cat"})
    agent = make(project)
    first = await agent.run("what is on it?")
    (project / "cat.png").unlink()
    said = [*first.messages, {"role": "user", "content": "sure?"}]
    await agent.run(said)
    await agent.run(said, branch=agent.branch.fork())
    assert [len(images(body)) for body in fake.requests[2:]] == [1, 1]


async def test_a_stored_image_with_other_bytes_is_described_and_never_sent(
    fake: FakeModels, make: Any, project: Path
) -> None:
    (project / "cat.png").write_bytes(PNG)
    fake.script({"tools": [call("read_file", path="cat.png")]}, {"text": "a cat"})
    agent = make(project)
    first = await agent.run("what is on it?")
    agent.branch.write_private(f"/.agent/blobs/{hashlib.sha256(PNG).hexdigest()}", b"something else")
    await agent.run([*first.messages, {"role": "user", "content": "sure?"}])
    assert images(fake.requests[-1]) == []
    assert "[image: image/png, not available]" in str(results(fake.requests[-1])[0])


async def test_a_picture_beside_a_text_in_a_message_reaches_the_model_and_what_is_none_is_refused(
    fake: FakeModels, make: Any, project: Path
) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": ENCODED}
    said = {
        "role": "user",
        "content": [{"type": "text", "text": "what?"}, {"type": "image", "source": source}],
    }
    fake.script({"text": "a cat"}, {"text": "sure"})
    agent = make(project)
    result = await agent.run([said])
    sent = [part["source"] for part in fake.requests[0]["messages"][-1]["content"] if part["type"] == "image"]
    assert sent == [source]
    assert ENCODED not in str(result.messages) and result.changes.record() == {"written": [], "deleted": []}
    await agent.run([*result.messages, {"role": "user", "content": "sure?"}])
    assert ENCODED in str(fake.requests[1])
    for strange in (base64.b64encode(b"text").decode(), "%"):
        part = {"type": "image", "source": {**source, "data": strange}}
        with pytest.raises(InvalidArgument, match=r"messages\[0\]"):
            await agent.run([{"role": "user", "content": [part]}])
    assert fake.request_count == 2
