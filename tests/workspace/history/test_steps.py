"""The mark of a file tool: previous entries of its paths (WS-41)."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.branches import branch_of, view_of

from bowerbird.core.errors import InvalidArgument, WorkspaceError
from bowerbird.workspace.tree.layers import Storage

TREE = {"a/x": "1", "a/y": "2", "b/z/w": "3", "top": "4", "void/": ""}


async def test_a_rolled_back_call_leaves_nothing(tmp_path):
    """WS-41: whatever it did, in the view, in the changes, and in `steps/`."""
    with branch_of(tmp_path, TREE) as branch:
        await branch.write_file("mine", "before")
        await branch.delete("b/z/w")
        await branch.write_file("c/d", "before")
        view, changes = await view_of(branch), branch.changes()
        step = branch.bound("t_1", "call/../1")
        await step.write_file("new/deep/er", "x")
        await step.write_file("new/deep/er", "y")
        await step.edit_file("mine", "before", "after")
        await step.delete("a", recursive=True)
        await step.write_file("a/x", "other")
        await step.write_file("b/z/w", "back")
        await step.move("c", "e")
        await step.move("top", "c")
        await step.set_executable("c", True)
        await step.delete("void")
        steps = tmp_path / "data/branches" / branch.id / "steps"
        assert len(list(steps.iterdir())) == 1
        branch.rollback(step.call_mark())
        assert (await view_of(branch), branch.changes()) == (view, changes)
        assert list(steps.iterdir()) == []
        assert {row["via"] for row in branch.journal() if row["call"] == "call/../1"} == {"tool", "restore"}


async def test_a_settled_call_cannot_be_taken_back_any_more(tmp_path):
    """WS-41"""
    with branch_of(tmp_path, TREE) as branch:
        step = branch.bound("t_1", "c1")
        await step.write_file("top", "new")
        branch.settle("c1")
        branch.rollback(step.call_mark())
        assert (await branch.read_file("top"))["content"] == "new"
        with pytest.raises(InvalidArgument):
            branch.call_mark()


async def test_other_calls_stay_when_one_is_taken_back(tmp_path):
    """WS-41: also the user's edits of what reads through."""
    with branch_of(tmp_path, TREE) as branch:
        one, two = branch.bound("t", "one"), branch.bound("t", "two")
        await one.write_file("top", "one")
        await two.write_file("a/x", "two")
        (tmp_path / "ws/top").write_text("user's")
        branch.rollback(one.call_mark())
        assert (await branch.read_file("top"))["content"] == "user's"
        assert branch.changes().written == ("/a/x",)


async def test_a_call_is_taken_back_also_after_its_layer_was_frozen(tmp_path):
    """WS-41: a sibling's process call took its mark in between."""
    with branch_of(tmp_path, TREE) as branch:
        await branch.write_file("mine", "before")
        view = await view_of(branch)
        step = branch.bound("t_1", "c")
        await step.edit_file("mine", "before", "after")
        await step.delete("a", recursive=True)
        await step.write_file("n/m", "x")
        await step.set_executable("top", True)
        branch.mark()
        await step.write_file("n/more", "x")
        branch.rollback(step.call_mark())
        assert await view_of(branch) == view


async def test_a_rollback_survives_reopening(tmp_path):
    """WS-41, WS-59: the process that wrote died; another one takes the call back."""
    from bowerbird.workspace.workspace import Workspace

    with branch_of(tmp_path, TREE) as branch:
        view, branch_id = await view_of(branch), branch.id
        step = branch.bound("t_1", "c")
        await step.delete("a", recursive=True)
        await step.write_file("a/b/c", "x")
        await step.move("b", "top2")
    with Workspace(tmp_path / "ws", data_dir=tmp_path / "data") as workspace:
        branch = workspace.open(branch_id)
        branch.rollback("step:c")
        assert await view_of(branch) == view
        assert branch.changes().record() == {"written": [], "deleted": []}


@pytest.mark.parametrize("kernel_form", [True, False])
@pytest.mark.parametrize("inner", ["a/x", "b/z", "b/z/w", "c/d/e"])
async def test_what_a_remade_directory_hides_stays_hidden(tmp_path, monkeypatch, kernel_form, inner):
    """WS-41: the branch made the directory again; the call works in it, and its layer is frozen before it goes."""
    if not kernel_form:
        monkeypatch.setattr(
            "bowerbird.workspace.registry.registry.probe_storage", lambda _: Storage(False, "no")
        )
    with branch_of(tmp_path, TREE | {"c/d/e/f": "5"}) as branch:
        await branch.delete(inner[0], recursive=True)
        await branch.mkdir(inner[0])
        if inner == "c/d/e":
            await branch.write_file(f"{inner}/mine", "6")
        view, changes = await view_of(branch), branch.changes()
        step = branch.bound("t", "c")
        if inner == "c/d/e":
            await step.delete(inner, recursive=True)
        else:
            await step.mkdir(inner)
        branch.mark()
        branch.rollback(step.call_mark())
        assert await view_of(branch) == view
        assert branch.changes() == changes


@pytest.mark.parametrize("kernel_form", [True, False])
async def test_what_the_call_put_deep_into_a_remade_directory_goes(tmp_path, monkeypatch, kernel_form):
    """WS-41: the directory stands before and after, and so does the one in it."""
    if not kernel_form:
        monkeypatch.setattr(
            "bowerbird.workspace.registry.registry.probe_storage", lambda _: Storage(False, "no")
        )
    with branch_of(tmp_path, TREE) as branch:
        await branch.write_file("b/z/w", "mine")
        view, changes = await view_of(branch), branch.changes()
        step = branch.bound("t", "c")
        await step.delete("b", recursive=True)
        await step.move("a", "b/z")
        branch.mark()
        branch.rollback(step.call_mark())
        assert await view_of(branch) == view
        assert branch.changes() == changes


_PATHS = st.sampled_from(["a", "a/x", "a/n", "b", "b/z", "b/z/w", "top", "n", "n/m", "n/m/o"])
_OPERATIONS = st.one_of(
    st.tuples(st.just("write_file"), _PATHS, st.sampled_from(["", "text"])),
    st.tuples(st.just("delete"), _PATHS, st.just(True)),
    st.tuples(st.just("move"), _PATHS, _PATHS, st.booleans()),
    st.tuples(st.just("mkdir"), _PATHS),
    st.tuples(st.just("set_executable"), _PATHS, st.booleans()),
    st.tuples(st.just("mark")),
)


@pytest.mark.parametrize("kernel_form", [True, False])
@given(before=st.lists(_OPERATIONS, max_size=5), during=st.lists(_OPERATIONS, min_size=1, max_size=6))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_call_can_be_taken_back(tmp_path_factory, monkeypatch, kernel_form, before, during):
    """WS-41: random operations before and during the call, layers frozen at any moment."""
    if not kernel_form:
        monkeypatch.setattr(
            "bowerbird.workspace.registry.registry.probe_storage", lambda _: Storage(False, "no")
        )
    tmp_path = tmp_path_factory.mktemp("step")
    with branch_of(tmp_path, TREE) as branch:
        await _apply(branch, before)
        view, changes = await view_of(branch), branch.changes()
        step = branch.bound("t", "c")
        await _apply(step, during)
        branch.rollback(step.call_mark())
        assert await view_of(branch) == view
        assert branch.changes() == changes


async def _apply(branch, operations):
    for name, *arguments in operations:
        try:
            if name == "mark":
                branch.mark()
            else:
                await getattr(branch, name)(*arguments)
        except (WorkspaceError, InvalidArgument):
            continue
