"""Sessions and branches through the MCP server, their resources and prompts (PT-12, PT-13)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.mcp_clients import Era, http_client, token
from support.patience import HANG_S

from bowerbird.providers.programs.finding import installed_bin

CLAUDE = """#!/bin/sh
if [ "$1" = --version ]; then echo "2.1.0 (Claude Code)"; exit 0; fi
cat > made.txt
echo '{"type":"result","is_error":false,"result":"made","session_id":"s"}'
"""
WAIT = min(HANG_S, 600.0)


def wrote(path: str = "/note.txt", content: str = "a note\n") -> tuple[dict[str, Any], dict[str, Any]]:
    """A turn that writes a file."""
    return {"tools": [{"name": "write_file", "input": {"path": path, "content": content}}]}, {"text": "Done."}


@pytest.fixture
async def server(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake, server__auth="token", protocols__mcp__allow_land=True) as opened:
        yield opened


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert result.structured_content is not None
    return result.structured_content


async def worked(client: Client, server: LiveServer, **written: str) -> str:
    """Make a session whose agent has written a file; return its id."""
    server.fake.script(*wrote(**written))
    thread_id = str((await call(client, "session_create"))["thread_id"])
    sent = await call(client, "session_send", thread_id=thread_id, content="write", wait_s=WAIT)
    assert (sent["state"], sent["answer"], sent["changes"]) == (
        "done",
        "Done.",
        [written.get("path", "/note.txt")],
    )
    return thread_id


async def test_a_change_is_made_looked_at_landed_and_taken_back(server: LiveServer, tmp_path: Path) -> None:
    """PT-12: nothing reaches the directory before branch_land, and landing_undo takes it back."""
    file = tmp_path / "workspace/note.txt"
    async with http_client(server, headers=await token(server, "a")) as client:
        thread_id = await worked(client, server)
        assert not file.exists()
        seen = await call(client, "branch_diff", thread_id=thread_id)
        assert [(row["path"], row["op"]) for row in seen["summary"]] == [("/note.txt", "create")]
        assert "+a note" in seen["diff"]
        assert (await call(client, "branch_diff", thread_id=thread_id, path="note.txt", max_chars=5))[
            "truncated"
        ]
        landed = await call(
            client, "branch_land", thread_id=thread_id, snapshot_id=seen["snapshot_id"], paths=["note.txt"]
        )
        assert file.read_text() == "a note\n"
        assert "workspace" not in landed["landing"]
        undone = await call(client, "landing_undo", landing_id=landed["landing_id"])
        assert undone["status"] == "success"
        assert not file.exists()


async def test_the_session_of_an_agent_names_its_changes(server: LiveServer, tmp_path: Path) -> None:
    """PT-6: `branch_diff` takes the `session_id` of `execute_agent`; another user's is not found."""
    program = installed_bin(tmp_path / "data") / "claude"
    program.parent.mkdir(parents=True)
    program.write_text(CLAUDE)
    program.chmod(0o755)
    async with http_client(server, headers=await token(server, "a")) as client:
        ran = await call(client, "execute_agent", agent_name="claude_code", prompt="write it")
        assert ran["status"] == "success" and ran["session_id"].startswith("sess_"), ran
        seen = await call(client, "branch_diff", thread_id=ran["session_id"])
        assert [row["path"] for row in seen["summary"]] == ["/made.txt"] and "+write it" in seen["diff"]
    async with http_client(server, headers=await token(server, "b")) as other:
        refused = await call(other, "branch_diff", thread_id=ran["session_id"])
        assert refused["status"] == "error" and "not found" in refused["message"]


async def test_a_stale_snapshot_lands_and_discards_nothing(server: LiveServer, tmp_path: Path) -> None:
    """PT-12, acceptance 6."""
    async with http_client(server, headers=await token(server, "a")) as client:
        thread_id = await worked(client, server)
        seen = (await call(client, "branch_diff", thread_id=thread_id))["snapshot_id"]
        server.fake.script(*wrote(content="something else\n"))
        await call(client, "session_send", thread_id=thread_id, content="again", wait_s=WAIT)
        for tool in ("branch_land", "branch_discard"):
            for more in ({}, {"paths": ["note.txt"]} if tool == "branch_land" else {}):
                refused = await call(client, tool, thread_id=thread_id, snapshot_id=seen, **more)
                assert refused["status"] == "error"
                assert "branch_diff" in refused["message"]
        assert not (tmp_path / "workspace/note.txt").exists()
        now = (await call(client, "branch_diff", thread_id=thread_id))["snapshot_id"]
        gone = await call(client, "branch_discard", thread_id=thread_id, snapshot_id=now)
        assert gone["paths"] == ["/note.txt"]


async def test_what_a_person_must_accept_is_refused(server: LiveServer, tmp_path: Path) -> None:
    """PT-12, D-5: the caller is usually a model."""
    async with http_client(server, headers=await token(server, "a")) as client:
        thread_id = await worked(client, server, path="/.bashrc", content="echo\n")
        seen = await call(client, "branch_diff", thread_id=thread_id)
        assert [row["grade"] for row in seen["flagged"]] == ["needs_accept"]
        refused = await call(client, "branch_land", thread_id=thread_id, snapshot_id=seen["snapshot_id"])
    assert refused["status"] == "error"
    assert not (tmp_path / "workspace/.bashrc").exists()


async def test_anothers_session_does_not_exist(server: LiveServer) -> None:
    """PT-12: for admins neither; the words are those of an id that was never given."""
    async with http_client(server, headers=await token(server, "a")) as client:
        thread_id = await worked(client, server)
        seen = (await call(client, "branch_diff", thread_id=thread_id))["snapshot_id"]
        landing = (await call(client, "branch_land", thread_id=thread_id, snapshot_id=seen))["landing_id"]
    gone = {"status": "error", "message": f"Session {thread_id} not found."}
    async with http_client(server, headers=await token(server, "root", "admin")) as client:
        for tool, more in (
            ("session_send", {"content": "x"}), ("session_status", {}), ("session_cancel", {}),
            ("session_answer", {"decision": "approve"}), ("branch_diff", {}),
            ("branch_land", {"snapshot_id": seen}), ("branch_discard", {"snapshot_id": seen}),
        ):  # fmt: skip
            assert await call(client, tool, thread_id=thread_id, **more) == gone, tool
        assert (await call(client, "session_list"))["sessions"] == []
        assert (await call(client, "landing_undo", landing_id=landing))[
            "message"
        ] == "there is no such landing"
        assert (await client.list_resources()).resources == []
        for uri in (f"bowerbird://sessions/{thread_id}", f"bowerbird://sessions/{thread_id}/files/note.txt"):
            with pytest.raises(MCPError, match="not found"):
                await client.read_resource(uri)


async def test_a_message_with_a_key_is_one_message(server: LiveServer) -> None:
    """PT-12: `dedupe_key`; another user's same key is another message."""
    server.fake.script({"text": "one"}, {"text": "two"})
    turns: list[str] = []
    for user in ("a", "a", "b"):
        async with http_client(server, headers=await token(server, f"t{len(turns)}", user=user)) as client:
            listed = (await call(client, "session_list"))["sessions"]
            thread_id = (
                listed[0]["thread_id"] if listed else (await call(client, "session_create"))["thread_id"]
            )
            sent = await call(
                client, "session_send", thread_id=thread_id, content="hi", dedupe_key="k", wait_s=WAIT
            )
            turns.append(sent["turn_id"])
    assert turns[0] == turns[1] != turns[2]


async def test_a_turn_that_waits_is_shown_answered_and_cancelled(tmp_path: Path, fake: FakeModels) -> None:
    """PT-12: session_send returns the state and no error; session_answer and session_cancel go on from there."""
    flags = {"approval__default": "unsafe"}
    async with live_server(tmp_path, fake, **flags) as server, http_client(server) as client:
        server.fake.script(*wrote(), *wrote())
        thread_id = str((await call(client, "session_create"))["thread_id"])
        sent = await call(client, "session_send", thread_id=thread_id, content="write", wait_s=WAIT)
        assert sent["state"] == "waiting"
        status = await call(client, "session_status", thread_id=thread_id)
        [pending] = status["pending"]
        assert (status["state"], pending["kind"]) == ("waiting", "approval")
        answered = await call(client, "session_answer", thread_id=thread_id, decision="deny")
        assert answered == {"status": "success"}
        again = await call(client, "session_answer", thread_id=thread_id, decision="deny")
        assert again["status"] == "error"


async def test_wrong_wishes_are_told(server: LiveServer) -> None:
    """PT-12: what there is is named."""
    async with http_client(server, headers=await token(server, "a")) as client:
        assert "coding" in (await call(client, "session_create", preset="nope"))["message"]
        assert "registered" in (await call(client, "session_create", workspace="/etc"))["message"]
        idle = (await call(client, "session_create"))["thread_id"]
        assert (await call(client, "session_cancel", thread_id=idle))["status"] == "error"
        assert (await call(client, "session_status", thread_id=idle))["state"] == "idle"


@pytest.mark.parametrize(("era", "code"), [("auto", -32602), ("legacy", -32002)])
async def test_sessions_and_files_are_resources_and_presets_prompts(
    server: LiveServer, era: Era, code: int
) -> None:
    """PT-13."""
    async with http_client(server, era, await token(server, "a")) as client:
        thread_id = await worked(client, server)
        [listed] = (await client.list_resources()).resources
        assert str(listed.uri) == f"bowerbird://sessions/{thread_id}"
        assert len((await client.list_resource_templates()).resource_templates) == 2
        [content] = (await client.read_resource(str(listed.uri))).contents
        assert '"Done."' in content.text  # type: ignore[union-attr]
        [file] = (await client.read_resource(f"{listed.uri}/files/note.txt")).contents
        assert file.text == "a note\n"  # type: ignore[union-attr]
        for path in ("files/nope", "files/..%2F..%2Fetc%2Fpasswd", "files/", "other"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(f"{listed.uri}/{path}")
            assert (refused.value.code, refused.value.data) == (code, {"uri": f"{listed.uri}/{path}"})
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert "coding" in prompts
        [message] = (await client.get_prompt("coding")).messages
        assert len(message.content.text) > 100  # type: ignore[union-attr]


async def test_settings_say_which_tools_there_are(tmp_path: Path, fake: FakeModels) -> None:
    """PT-12: `protocols.mcp.expose`."""
    expose = ["session_*", "branch_land"]
    async with (
        live_server(tmp_path, fake, protocols__mcp__expose=expose) as server,
        http_client(server) as client,
    ):
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert names == {
        "session_create", "session_send", "session_status", "session_list", "session_cancel", "session_answer",
    }  # fmt: skip
