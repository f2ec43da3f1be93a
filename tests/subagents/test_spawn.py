"""Subagents of an agent: their forks, merges and results (DE-1 … DE-13, DE-19, DE-20)."""

import asyncio
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import call, events_of, fingerprint
from support.children import last_result, play, replaced, requests_of, wrote
from support.fake_models import FakeModels
from support.patience import patience

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.events import SubagentEnd, SubagentStart, ToolOutcome

EMPTY: dict[str, list[str]] = {
    "written": [], "deleted": [], "conflicts": [], "skipped": [], "merged": [], "unknown": [],
}  # fmt: skip


async def test_edits_in_separate_places_join_and_an_overlap_is_a_conflict(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """DE acceptance 1; DE-12; issue 5, must-show 1."""
    before = fingerprint(project)
    play(fake, {
        "one": [replaced("line 1\n", "LINE 1\n"), {"text": "did one"}],
        "two": [replaced("line 10\n", "LINE 10\n"), {"text": "did two"}],
        "three": [replaced("line 20\n", "LINE 20\n"), {"text": "did three"}],
        "four": [replaced("line 1\n", "Line one\n"), {"text": "did four"}],
    })  # fmt: skip
    agent = make(project)
    made = (await agent.spawn_subagents(["do one", "do two", {"prompt": "do three"}, "do four"])).record()
    entries = made["subagents"]
    assert [e["handle"] for e in entries] == [f"subagent_{n}" for n in range(4)]
    assert [e["result"] for e in entries] == ["did one", "did two", "did three", "did four"]
    assert entries[0]["diff"]["written"] == [
        {"path": "/a.txt", "kind": "modify", "size": 151, "added": 1, "removed": 1}
    ]
    assert "+LINE 1\n" in entries[0]["diff"]["patch"] and not entries[0]["diff"]["patch_truncated"]
    assert agent.branch.changes().record() == {"written": [], "deleted": []}

    assert (await agent.merge_subagent("subagent_0")).record() == {**EMPTY, "written": ["/a.txt"]}
    joined = {**EMPTY, "written": ["/a.txt"], "merged": ["/a.txt"]}
    assert (await agent.merge_subagent("subagent_1")).record() == joined
    assert (await agent.merge_subagent("subagent_2", ["a.txt", "none"])).record() == {
        **joined,
        "unknown": ["/none"],
    }
    conflict = {**EMPTY, "conflicts": ["/a.txt"], "skipped": ["/a.txt"]}
    assert (await agent.merge_subagent("subagent_3")).record() == conflict
    assert (await agent.merge_subagent("subagent_0")).record() == EMPTY
    text = agent.branch.read_overlay("a.txt").decode()
    assert text.startswith("LINE 1\n") and "LINE 10\n" in text and text.endswith("LINE 20\n")

    forced = (await agent.merge_subagent("subagent_3", force=True)).record()
    lost = forced.pop("lost")
    assert list(lost) == ["/a.txt"] and "+LINE 10\n" in lost["/a.txt"]  # engine finding 8: it is said
    assert forced == {**EMPTY, "written": ["/a.txt"], "conflicts": ["/a.txt"]}
    assert agent.branch.read_overlay("a.txt").startswith(b"Line one\n")
    assert (await agent.merge_subagent("subagent_3")).record() == EMPTY
    assert fingerprint(project) == before


async def test_equal_edits_never_conflict(fake: FakeModels, make: Any, project: Path) -> None:
    """Issue 5, must-show 1; DE-12."""
    play(fake, {"same": [replaced("line 5\n", "five\n"), {"text": "ok"}]})
    agent = make(project)
    await agent.spawn_subagents(["same", "same"])
    assert (await agent.merge_subagent("subagent_0")).record()["written"] == ["/a.txt"]
    assert (await agent.merge_subagent("subagent_1")).record() == EMPTY


async def test_a_model_spawns_merges_and_discards_with_tools(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """DE-5 … DE-8 through the loop, DE-17's events, usage as part of the caller's totals."""
    play(fake, {
        "red": [wrote("red.txt"), {"text": "red is there"}],
        "blue": [wrote("blue.txt"), {"text": "blue is there"}],
        "lead": [
            {"tools": [call("spawn_subagents", tasks=["write red", {"task": "write blue", "agent_type": "code"}])]},
            {"tools": [call("read_subagent", handle="subagent_0")]},
            {"tools": [call("read_subagent", handle="subagent_1", path="blue.txt")]},
            {"tools": [call("merge_subagent", handle="subagent_0"),
                       call("discard_subagent", handle="subagent_1")]},
            {"tools": [call("merge_subagent", handle="subagent_1")]},
            {"text": "done"},
        ],
    })  # fmt: skip
    agent = make(project)
    events = await events_of(agent, "lead them")
    result = events[-1].result
    assert result.text == "done" and result.changes.record() == {"written": ["/red.txt"], "deleted": []}
    lead = requests_of(fake, "lead")
    made = json.loads(last_result(lead[1]))
    assert [e["result"] for e in made["subagents"]] == ["red is there", "blue is there"]
    assert "create /red.txt +1 -0" in last_result(lead[2]) and "+x\n" in last_result(lead[2])
    assert last_result(lead[3]) == "x\n"
    assert json.loads(last_result(lead[4])) == {"discarded": "subagent_1"}
    assert json.loads(last_result(lead[5])) == {"error": "unknown subagent handle: 'subagent_1'"}
    assert list(agent.subagents) == ["subagent_0"]

    starts = [e for e in events if isinstance(e, SubagentStart)]
    ends = {e.handle: e for e in events if isinstance(e, SubagentEnd)}
    assert {s.task for s in starts} == {"write red", "write blue"}
    red = ends["subagent_0"]
    assert (red.summary, red.agent_type, red.status, red.tool_count) == (
        "red is there",
        "general",
        "finished",
        1,
    )
    assert red.parent_id == agent.branch.id and red.subagent_id == f"{agent.branch.id}.sub0"
    assert red.usage.model_calls == 2
    assert result.usage.subagents.model_calls == 4 and result.usage.model_calls == 10
    assert result.usage.subagents.input_tokens == sum(e.usage.input_tokens for e in ends.values())


async def test_a_child_starts_from_its_own_instructions_and_one_message(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """DE-3: what is inherited and what is not."""
    play(fake, {"small": [{"text": "ok"}], "lead": [
        {"tools": [call("spawn_subagents", tasks=["small task"])]}, {"text": "done"},
    ]})  # fmt: skip

    async def extra(text: str) -> str:
        """Say it again.

        Args:
            text: what.
        """
        return text

    fake.without.add("no temperature")
    agent = make(
        project, tools=[extra], instructions="Be the lead.", temperature=0.25, name="chief",
        examples=[{"input": "a", "output": "b"}],
    )  # fmt: skip
    await agent.run("lead now")
    (child,) = requests_of(fake, "small")
    system = json.dumps(child["system"])
    assert "You are a subagent" in system and "Be the lead." not in system and '"output"' not in system
    assert "Agent: chief_sub0" in system
    assert [m["role"] for m in child["messages"]] == ["user"] and child["temperature"] == 0.25
    names = {tool["name"] for tool in child["tools"]}
    assert {"extra", "write_file", "think"} <= names
    assert not names & {"ask_user", "spawn_subagents", "task", "run_tournament", "exit_plan_mode"}
    lead = requests_of(fake, "lead")[0]
    assert {"spawn_subagents", "merge_subagent", "discard_subagent", "read_subagent", "task"} <= {
        tool["name"] for tool in lead["tools"]
    }
    assert "- explore:" in json.dumps(lead["system"])
    described = next(t["description"] for t in lead["tools"] if t["name"] == "merge_subagent")
    assert "variables are not" in described  # DE-19


async def test_without_depth_nothing_is_offered_or_runs(fake: FakeModels, make: Any) -> None:
    """DE-2."""
    fake.script({"tools": [call("spawn_subagents", tasks=["x"])]}, {"text": "ok"})
    agent = make(max_subagent_depth=0)
    events = await events_of(agent, "go")
    assert next(e for e in events if isinstance(e, ToolOutcome)).status == "error"
    assert "spawn_subagents" not in {tool["name"] for tool in fake.requests[0]["tools"]}
    with pytest.raises(InvalidArgument, match="max_subagent_depth is 0"):
        await agent.spawn_subagents(["x"])


async def test_one_failure_does_not_touch_the_others(fake: FakeModels, make: Any, project: Path) -> None:
    """DE acceptance 4, DE-13: a provider's refusal is an error, `Type: message`."""
    play(fake, {
        "bad": [wrote("half.txt"), {"status": 400, "body": {"type": "error", "error": {
            "type": "invalid_request_error", "message": "no such thing"}}}],
        "good": [{"text": "fine"}],
        "lead": [{"tools": [call("spawn_subagents", tasks=["bad", "good"])]}, {"text": "went on"}],
    })  # fmt: skip
    agent = make(project)
    result = await agent.run("lead")
    assert result.stop_reason == "completed" and result.text == "went on"
    bad, good = json.loads(last_result(requests_of(fake, "lead")[1]))["subagents"]
    assert good["result"] == "fine" and set(bad) == {"handle", "task", "error"}
    kind, _, message = bad["error"].partition(": ")
    assert kind == "ModelError" and "no such thing" in message
    # Its fork is kept.
    assert (await agent.merge_subagent("subagent_0")).record()["written"] == ["/half.txt"]


async def test_a_child_ended_by_a_limit_is_an_error_with_its_partial_answer(
    fake: FakeModels, make: Any
) -> None:
    """DE-13."""
    play(fake, {"long": [*[{"tools": [call("ls", path="/", limit=n)]} for n in (1, 2)], {"text": "so far"}]})
    agent = make(max_iterations=2)
    (entry,) = (await agent.spawn_subagents(["long"])).record()["subagents"]
    assert entry["error"].startswith("max_iterations: ") and "so far" in entry["error"]
    assert "result" not in entry


async def test_no_tasks_unknown_handles_and_strange_entries(fake: FakeModels, make: Any) -> None:
    """DE-5, DE-10."""
    play(fake, {"odd": [{"text": "odd one"}]})
    agent = make()
    assert (await agent.spawn_subagents([])).record() == {"error": "no tasks provided"}
    unknown = {"error": "unknown subagent handle: 'x'"}
    assert (await agent.merge_subagent("x")).record() == unknown and (
        await agent.discard_subagent("x")
    ).record() == unknown
    made = (
        (await agent.spawn_subagents([{"odd": 1}, {"task": "odd", "agent_type": "wizard"}, " "])).record()
    )["subagents"]
    assert made[0]["task"] == '{"odd": 1}' and made[0]["result"] == "odd one"
    assert "there is no agent_type 'wizard'; there are general, code, explore" in made[1]["error"]
    assert "empty" in made[2]["error"] and made[2]["handle"] is None
    tiers = (await agent.spawn_subagents([{"task": "odd", "model_tier": "best"}])).record()["subagents"]
    assert "there is no model tier 'best'" in tiers[0]["error"]  # MO-45


async def test_a_discarded_fork_is_gone_from_disk_and_its_number_is_not_used_again(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """DE-4, DE-7."""
    play(fake, {"write": [wrote("big.txt", "y" * 5000), {"text": "ok"}]})
    agent = make(project)
    await agent.spawn_subagents(["write"])
    fork = agent.subagents["subagent_0"].processes().directory
    assert fork.is_dir()
    assert (await agent.discard_subagent("subagent_0")).record() == {"discarded": "subagent_0"}
    assert not fork.exists()
    made = (await agent.spawn_subagents(["write"])).record()
    assert made["subagents"][0]["handle"] == "subagent_1"


async def test_handles_survive_between_steps(fake: FakeModels, make: Any, project: Path) -> None:
    """AG acceptance 12, AG-35."""
    play(fake, {
        "write": [wrote("w.txt"), {"text": "ok"}],
        "lead": [
            {"tools": [call("spawn_subagents", tasks=["write"])]},
            {"text": "now what?"},
            {"tools": [call("merge_subagent", handle="subagent_0")]},
            {"text": "merged"},
        ],
    })  # fmt: skip
    agent = make(project, autonomous=False)
    step = await agent.step("lead")
    step = await agent.step(step.messages)
    step = await agent.step([*step.messages, {"role": "user", "content": "merge"}])
    assert [p["name"] for p in step.pending_calls] == ["merge_subagent"]
    await agent.step(step.messages)
    assert agent.branch.changes().written == ("/w.txt",)


async def test_binaries_are_told_by_size_and_hash_and_long_patches_are_cut(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """DE-11."""
    (project / "old.bin").write_bytes(b"\0" * 100)
    long = "".join(f"{n} some words on a line\n" for n in range(1000))
    play(fake, {
        "bin": [{"tools": [call("move_file", src="old.bin", dst="n.bin")]}, {"text": "ok"}],
        "long": [wrote("long.txt", long), {"text": "ok"}],
    })  # fmt: skip
    agent = make(project)
    binary, text = (await agent.spawn_subagents(["bin", "long"])).record()["subagents"]
    assert binary["diff"]["deleted"] == ["/old.bin"]
    assert (
        f"Binary file /n.bin: 100 bytes, sha256:{sha256(bytes(100)).hexdigest()}" in binary["diff"]["patch"]
    )
    assert "Binary file /old.bin: deleted" in binary["diff"]["patch"]
    assert "literal" not in binary["diff"]["patch"]
    assert text["diff"]["patch_truncated"] and len(text["diff"]["patch"]) == 8000
    assert text["diff"]["written"][0]["added"] == 1000


async def test_cancelling_the_caller_cancels_its_children_within_100_ms(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """DE-18: forks stay readable, the record says why they ended."""
    play(fake, {
        "slow": [wrote("early.txt"), {"hang": True}],
        "lead": [{"tools": [call("spawn_subagents", tasks=["slow", "slow"])]}, {"text": "never"}],
    })  # fmt: skip
    agent = make(project)
    run = asyncio.create_task(agent.run("lead"))
    await fake.wait_requests(5)
    loop = asyncio.get_running_loop()
    started = loop.time()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert loop.time() - started < patience(2)
    await fake.wait_closed(2)
    assert (await agent.merge_subagent("subagent_0")).record()["written"] == ["/early.txt"]
    assert agent.subagents["subagent_1"].read_overlay("early.txt") == b"x\n"


async def test_cancelling_a_direct_call_stops_its_children(fake: FakeModels, make: Any) -> None:
    """DE-18, DE-20."""
    play(fake, {"slow": [{"hang": True}]})
    agent = make()
    spawning = asyncio.create_task(agent.spawn_subagents(["slow", "slow"]))
    await fake.wait_requests(2)
    spawning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await spawning
    await fake.wait_closed(2)
    assert list(agent.subagents) == ["subagent_0", "subagent_1"]


async def test_two_calls_at_once_have_handles_of_their_own(fake: FakeModels, make: Any) -> None:
    """DE-4: numbers are counted up per session whoever asks."""
    play(fake, {"go": [{"text": "ok"}]})
    agent = make()
    made = await asyncio.gather(agent.spawn_subagents(["go", "go"]), agent.spawn_subagents(["go"]))
    handles = [e["handle"] for one in made for e in one.record()["subagents"]]
    assert sorted(handles) == ["subagent_0", "subagent_1", "subagent_2"]


async def test_a_file_of_a_fork_is_shown_whatever_it_is(fake: FakeModels, make: Any, project: Path) -> None:
    """DE-8: content, an empty file, a binary one, a deletion, nothing at all."""
    (project / "old.bin").write_bytes(b"\0" * 100)
    play(fake, {
        "files": [{"tools": [call("write_file", path="empty", content=""), call("delete_file", path="a.txt")]},
                  {"text": "ok"}],
        "lead": [
            {"tools": [call("spawn_subagents", tasks=["files"])]},
            {"tools": [call("read_subagent", handle="subagent_0", path=p)
                       for p in ("empty", "/a.txt", "old.bin", "none")]},
            {"text": "done"},
        ],
    })  # fmt: skip
    events = await events_of(make(project), "lead")
    shown = {e.call: e for e in events if isinstance(e, ToolOutcome) and e.tool == "read_subagent"}
    empty, gone, binary, none = shown.values() if len(shown) == 4 else pytest.fail(str(shown))
    by_path = {(o.data or {}).get("path"): o for o in (empty, gone, binary, none)}
    assert by_path["/empty"].content == "" and by_path["/a.txt"].content == "/a.txt is deleted"
    assert "a binary file of 100 bytes" in by_path["/old.bin"].content
    assert by_path[None].is_error


async def test_a_name_with_dots_is_the_file_of_that_name_and_leads_nowhere_else(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """DE-8: dots within a name are letters, `..` stays within the fork."""
    (project.parent / "outside.txt").write_text("not yours")
    names = ("..notes.txt", "a..b/c...d.txt")
    asked = (*names, "a..b/../..notes.txt", "../outside.txt")
    play(fake, {
        "files": [{"tools": [call("write_file", path=name, content=f"in {name}") for name in names]},
                  {"text": "ok"}],
        "lead": [
            {"tools": [call("spawn_subagents", tasks=["files"])]},
            *({"tools": [call("read_subagent", handle="subagent_0", path=path)]} for path in asked),
            {"text": "done"},
        ],
    })  # fmt: skip
    events = await events_of(make(project), "lead")
    shown = [e for e in events if isinstance(e, ToolOutcome) and e.tool == "read_subagent"]
    assert [each.content for each in shown[:3]] == [f"in {name}" for name in (*names, names[0])]
    assert shown[3].is_error and "not yours" not in shown[3].content


async def test_what_a_child_said_and_did_is_kept_on_its_fork(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """DE-17: its transcript is readable, and in no diff or merge."""
    play(fake, {"small": [wrote("x"), {"text": "all of it"}]})
    agent = make(project)
    await agent.spawn_subagents(["small"])
    fork = agent.subagents["subagent_0"]
    (name,) = (row["name"] for row in (await fork.ls("/.transcripts"))["entries"])
    kept = (await fork.read_bytes(f"/.transcripts/{name}")).decode()
    assert '"write_file"' in kept and "all of it" in kept
    assert (await agent.merge_subagent("subagent_0")).record()["written"] == ["/x"]
