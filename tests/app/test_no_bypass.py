"""Law 3: permission is asked where a tool runs. For every built-in tool, every mode, every policy, a model
that calls what it was not offered is denied at execution (AG-59 … AG-64, TO-10, TO-49; issue 4, point 9).

One turn per mode and policy: the model calls every tool there is, by its name and by each alias, whether it
was told of it or not. What ran is what the journal's intents say, and what the branch shows.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.permission_rules import ROWS, all_calls, expected

import bowerbird
from bowerbird.app import Application, open_application
from bowerbird.config import load_settings
from bowerbird.core.events import ToolIntent, ToolOutcome
from bowerbird.models import open_model
from bowerbird.sessions import NewSession
from bowerbird.tools import Toolset
from bowerbird.tools.names import BUILTIN_ALIASES, BUILTIN_NAMES

OWNER = {alias: name for name, row in ROWS.items() for alias in (name, *row.aliases)}
OF_ONE_MODE = {"enter_plan_mode": "normal"}


@pytest.fixture
def fake() -> Any:
    with FakeModels() as server:
        yield server


def project_in(directory: Path) -> Path:
    project = directory / "project"
    project.mkdir()
    for name, text in {"a.txt": "one\n", "b.txt": "two\n", "c.txt": "three\n", "a.py": "one = 1\n"}.items():
        (project / name).write_text(text)
    return project


@asynccontextmanager
async def opened(
    directory: Path, fake: FakeModels, attended: bool, **flags: Any
) -> AsyncIterator[Application]:
    project = project_in(directory)
    tier = {"name": "anthropic", "model": "claude-sonnet-4-5", "base_url": fake.anthropic_url, "api_key": "k"}
    loaded = load_settings(
        {
            "agent.data_dir": str(directory / "data"), "agent.llm_max_retries": 0,
            "model_router.enabled": True, "model_router.tiers": {"standard": tier}, **flags,
        },
        env={"HOME": str(directory)}, cwd=directory, home=directory, workspace=project,
    )  # fmt: skip
    async with open_application(
        loaded, workspace=project, model="tier:standard", attended=attended
    ) as application:
        yield application


def script(fake: FakeModels, calls: list[dict[str, Any]]) -> None:
    """The first request is answered by all calls at once, every later one by a word."""

    def answer(_body: dict[str, Any], number: int) -> dict[str, Any]:
        return {"tools": calls} if number == 0 else {"text": "done"}

    fake.answer(answer)


async def session_turn(application: Application, directory: Path, **flags: Any) -> tuple[str, Any]:
    sessions = application.sessions
    new = NewSession(workspace=str(directory / "project"), flags=flags)
    thread = (await sessions.create(new)).thread_id
    await application.drive(thread)
    return thread, await sessions.submit(thread, "go")


async def bodies(application: Application, thread: str, kind: str) -> list[dict[str, Any]]:
    return [r.body for r in await application.sessions.history(thread) if r.type == kind]


def present(outcomes: list[dict[str, Any]], calls: dict[str, str]) -> set[str]:
    """Names of tools that this run has, offered or not; the others were not found at all."""
    missing = ("no tool is named", "is not available: ")
    found = {
        o["call"]
        for o in outcomes
        if o["status"] != "error" or not any(text in json.dumps(o["content"]) for text in missing)
    }
    return {OWNER[name] for call, name in calls.items() if call in found}


POLICIES = [
    pytest.param({}, {}, id="default"),
    pytest.param({"approval": True}, {}, id="approval"),
    pytest.param({"rule": "deny"}, {"approval.rules": ["deny *"]}, id="deny"),
    pytest.param({"rule": "ask"}, {"approval.rules": ["ask *"]}, id="ask"),
    pytest.param({"rule": "allow", "approval": True}, {"approval.rules": ["allow *"]}, id="allow"),
]


def test_every_built_in_tool_and_alias_has_a_row() -> None:
    """A new tool is given a rule before anybody is offered it."""
    unruled = (BUILTIN_NAMES | set(Toolset.builtin().names)) - set(ROWS)
    assert not unruled, f"give these a row in tests/support/permission_rules.py: {sorted(unruled)}"
    built = {alias: name for name, row in ROWS.items() for alias in row.aliases}
    assert {a: n for a, n in BUILTIN_ALIASES.items() if ROWS[n].call is not None} == built


@pytest.mark.parametrize("mode", ["normal", "plan"])
@pytest.mark.parametrize(("policy", "settings"), POLICIES)
async def test_what_is_called_runs_only_if_the_rules_say_so(
    tmp_path: Path, fake: FakeModels, mode: str, policy: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Where nobody can be asked, asking is denying (AG-63): so `run` is exactly what may run unasked."""
    calls = all_calls()
    script(fake, calls)
    async with opened(tmp_path, fake, attended=False, **settings) as application:
        thread, receipt = await session_turn(
            application,
            tmp_path,
            enable_approval=policy.get("approval", False),
            enable_plan_mode=mode == "plan",
        )
        async with asyncio.timeout(HANG_S):
            await application.sessions.wait(receipt.turn_id)
        outcomes = await bodies(application, thread, "tool_outcome")
        intents = await bodies(application, thread, "tool_intent")
        asked = next(b["content"] for b in await bodies(application, thread, "assistant"))
        ids = [block["id"] for block in asked if block["type"] == "tool_use"]
        made = dict(zip(ids, (call["name"] for call in calls), strict=True))
        here = present(outcomes, made)
        changed = await changes(application, thread)
    rules = {
        n: expected(row, plan=mode == "plan", **policy) for n, row in ROWS.items() if row.call is not None
    }
    if mode != "plan":  # it is there all the same, so that the tools of a turn stay alike
        rules["exit_plan_mode"] = "deny"
    assert len(outcomes) == len(made) == len(calls)
    # Every tool that can be had here was there to be called, so this test misses none.
    absent = {"ask_user", *(name for name, only in OF_ONE_MODE.items() if only != mode)}
    assert here == set(rules) - absent - without_processes(here)
    assert {intent["tool"] for intent in intents} <= set(ROWS)  # TO-10: journalled under the own name
    ran = Counter(made[intent["call"]] for intent in intents)
    may_run = Counter(name for name in made.values() if OWNER[name] in here and rules[OWNER[name]] == "run")
    assert ran == may_run
    denied = {o["call"] for o in outcomes if o["status"] == "denied"}
    assert denied == {c for c, name in made.items() if OWNER[name] in here and rules[OWNER[name]] != "run"}
    if not any(ROWS[name].effect == "branch" and rules[name] == "run" for name in here):
        assert changed == []
    offered = {tool["name"] for tool in fake.requests[0]["tools"]}
    assert offered <= set(rules), f"give these arguments in permission_rules.py: {offered - set(rules)}"
    assert offered <= here and {"read_file", "write_file"} <= offered  # what may not run now is refused
    assert ("exit_plan_mode" in offered) is (mode == "plan")


def without_processes(here: set[str]) -> set[str]:
    """Tools that need a process tier, on a host that gives none."""
    needed = {"bash", "run_python", "background_run", "check_background", "cancel_background"}
    return set() if here & needed else needed


async def changes(application: Application, thread: str) -> list[str]:
    from bowerbird.store.rows.sessions import get_session

    row = await application.store.read(lambda c: get_session(c, thread))
    branch = await application.branches.of(row)
    found = await asyncio.to_thread(branch.changes)
    return [*found.written, *found.deleted]


@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_a_person_is_asked_about_exactly_what_asks_and_is_obeyed(
    tmp_path: Path, fake: FakeModels, answer: str
) -> None:
    """AG-62, TO-49: with approval on, all asking calls of the batch are in one request."""
    calls = [call for call in all_calls() if OWNER[call["name"]] not in ("ask_user", "enter_plan_mode")]
    script(fake, calls)
    async with opened(tmp_path, fake, attended=True) as application:
        thread, receipt = await session_turn(application, tmp_path, enable_approval=True)
        sessions = application.sessions
        async with asyncio.timeout(HANG_S):
            while not (requests := await bodies(application, thread, "request")):
                await asyncio.sleep(0.02)
            [request] = requests
            before = {body["tool"] for body in await bodies(application, thread, "tool_intent")}
            asked = {tool["name"] for tool in request["tools"]}
            await sessions.answer(request["id"], answer)
            await sessions.wait(receipt.turn_id)
        intents = {body["tool"] for body in await bodies(application, thread, "tool_intent")}
        changed = await changes(application, thread)
    assert not [name for name in before if not ROWS[name].safe]
    assert asked and all(expected(ROWS[name], plan=False, approval=True) == "ask" for name in asked)
    assert asked >= {n for n, r in ROWS.items() if r.call is not None and not r.safe} - without_processes(
        asked
    )
    if answer == "approve":
        assert intents >= asked and changed
    else:
        assert not intents & asked and changed == []


async def test_approval_for_the_rest_of_the_session_loosens_neither_plan_mode_nor_deny_rules(
    tmp_path: Path, fake: FakeModels
) -> None:
    """AG-60: deny wins; AG-62: `auto_approve` is about asking."""
    script(fake, all_calls({"write_file", "bash"}))
    async with opened(tmp_path, fake, attended=True, **{"approval.rules": ["deny bash"]}) as application:
        for plan, ran in ((False, {"write_file"}), (True, set[str]())):
            fake.answer(
                lambda body, number: (
                    {"text": "done"} if is_answered(body) else {"tools": all_calls({"write_file", "bash"})}
                )
            )
            sessions = application.sessions
            thread, receipt = await session_turn(
                application, tmp_path, enable_plan_mode=plan, enable_approval=True
            )
            async with asyncio.timeout(HANG_S):
                if not plan:
                    while not (requests := await bodies(application, thread, "request")):
                        await asyncio.sleep(0.02)
                    await sessions.answer(requests[0]["id"], "auto_approve")
                await sessions.wait(receipt.turn_id)
            assert {b["tool"] for b in await bodies(application, thread, "tool_intent")} == ran


def is_answered(body: dict[str, Any]) -> bool:
    return "tool_result" in json.dumps(body["messages"])


# ---------------------------------------------------------------- the library


async def library_run(tmp_path: Path, fake: FakeModels, **options: Any) -> tuple[set[str], set[str], Any]:
    """Names that ran, names that were denied, and the changes, of an `Agent` whose model calls everything."""
    from support.agent_turns import NAME, settings_for

    script(fake, all_calls())
    model = open_model(NAME, settings_for(fake))
    project = project_in(tmp_path)
    ran: set[str] = set()
    denied: set[str] = set()
    try:
        with bowerbird.Agent(workdir=project, data_dir=":memory:", language_model=model, **options) as agent:
            async for event in agent.stream("go"):
                if isinstance(event, ToolIntent):
                    ran.add(event.tool)
                elif isinstance(event, ToolOutcome) and event.status == "denied":
                    denied.add(event.tool)
            return ran, denied, agent.branch.changes()
    finally:
        await model.aclose()


@pytest.mark.parametrize("role", [["write_file", "think"], []])
async def test_a_role_runs_nothing_but_its_own_tools(
    tmp_path: Path, fake: FakeModels, role: list[str]
) -> None:
    """AG-60: the role list comes before every rule."""
    ran, denied, changed = await library_run(tmp_path, fake, permissions={"role": role, "allow": ["*"]})
    assert ran == set(role) and not denied & set(role)
    assert set(changed.written) == ({"/written.txt"} if "write_file" in role else set())


async def test_an_agent_in_plan_mode_changes_nothing(tmp_path: Path, fake: FakeModels) -> None:
    """AG-64, acceptance 6 of the agent chapter; an allow rule does not loosen it."""
    ran, denied, changed = await library_run(tmp_path, fake, mode="plan", permissions={"allow": ["*"]})
    assert all(expected(ROWS[name], plan=True) == "run" for name in ran) and "read_file" in ran
    assert all(expected(ROWS[name], plan=True) == "deny" for name in denied)
    assert {"write_file", "edit_file", "delete_file", "move_file", "run_python_code"} <= denied
    assert not changed.paths


async def test_an_agent_with_approval_and_nobody_to_ask_runs_the_safe_set(
    tmp_path: Path, fake: FakeModels
) -> None:
    """AG-63, TO-49."""
    ran, denied, changed = await library_run(tmp_path, fake, enable_approval=True)
    assert ran and all(ROWS[name].safe for name in ran) and not any(ROWS[name].safe for name in denied)
    assert not changed.paths


async def test_a_rule_for_an_alias_stops_its_tool_under_every_name(tmp_path: Path, fake: FakeModels) -> None:
    """Acceptance 8 of the tools chapter, for every tool that has other names."""
    named = {name: next(iter(row.aliases)) for name, row in ROWS.items() if row.aliases}
    ran, denied, _ = await library_run(tmp_path, fake, permissions={"deny": list(named.values())})
    assert not ran & set(named) and "think" in ran
    here = {"bash", *Toolset.builtin().names}  # boards and the like are the sessions'
    assert denied == set(named) & here - without_processes(denied)


async def test_in_plan_mode_nothing_outside_the_root_is_read(tmp_path: Path, fake: FakeModels) -> None:
    """Acceptance 1 of the tools chapter: by globs, by links, by the links of /proc."""
    from support.agent_turns import NAME, settings_for

    project, outside = project_in(tmp_path), tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("SECRET")
    (tmp_path / "c.txt").write_text("SECRET")
    (project / "link").symlink_to(outside)
    (project / "proc").symlink_to(f"/proc/self/root{outside}")
    made = [
        {"name": "search_files", "input": {"pattern": "SECRET", "glob": "../*.txt"}},
        {"name": "search_files", "input": {"pattern": "SECRET", "glob": "**/*"}},
        *({"name": "read_file", "input": {"path": f"{p}/b.txt"}} for p in ("link", "proc", str(outside))),
        {"name": "ls", "input": {"path": "link"}},
        {"name": "find_references", "input": {"symbol": "SECRET"}},
    ]
    script(fake, made)
    model = open_model(NAME, settings_for(fake))
    try:
        with bowerbird.Agent(
            workdir=project, data_dir=":memory:", language_model=model, mode="plan"
        ) as agent:
            said = [e async for e in agent.stream("go") if isinstance(e, ToolOutcome)]
    finally:
        await model.aclose()
    assert len(said) == len(made)
    shown = [str(o.content).replace("'SECRET'", "") for o in said]
    assert not [text for text in shown if "SECRET" in text and "no match" not in text.lower()]
    assert all(o.status == "error" for o in said if o.tool == "read_file")
    assert not [o for o in said if o.tool == "ls" and "b.txt" in str(o.content)]
