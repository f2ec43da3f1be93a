"""What an agent is told (AG-11, AG-65 … AG-67, MO-39, MO-46)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.fake_models import FakeModels

from bowerbird.agent.prompt import (
    get_default_instructions,
    get_subagent_instructions,
    get_subagent_tools_guidance,
    list_presets,
    load_preset,
    system_blocks,
)
from bowerbird.agent.turn import Who
from bowerbird.core.errors import InvalidArgument
from bowerbird.core.requests import ModelInfo
from bowerbird.models import Model
from bowerbird.tools import Toolset
from bowerbird.tools.files.file_tools import file_tools
from bowerbird.workspace import Workspace

Run = Callable[..., Any]


def test_default_instructions_name_only_what_is_offered() -> None:
    """AG-11, AG-53."""
    known = {t.name for t in Toolset.builtin()}
    text = get_default_instructions("/p", tools=["read_file", "list_files"])
    assert "/p" in text and "read_file" in text and "branch" in text and "inputs_file" in text
    assert not [name for name in known - {"read_file", "list_files"} if f"{name}" in text.split()]
    assert "use think" in get_default_instructions("/p")
    assert "empty directory" in get_default_instructions()
    assert "use think" not in get_default_instructions("/p", tools=[])


def test_the_subagent_texts_are_public() -> None:
    assert "spawn_subagents" in get_subagent_tools_guidance()
    assert "fork" in get_subagent_instructions()


def test_blocks_come_in_their_order() -> None:
    """AG-65."""
    blocks = system_blocks(
        "I",
        workspace="/w",
        sandbox="tier none",
        memory=[("MEMORY.md", "tea")],
        skills="s: d",
        subagents="sub",
    )
    assert [b.split("\n")[0] for b in blocks] == [
        "I", "Workspace: /w", '<memory file="MEMORY.md">',
        "Skills (read one with read_skill before you use it):", "sub",
    ]  # fmt: skip


def test_bundled_presets_and_own_ones(tmp_path: Path) -> None:
    """AG-67."""
    assert {"coding", "work"} <= set(list_presets())
    assert "/here" in load_preset("coding").for_workspace("/here")
    assert load_preset("work").description
    own = tmp_path / "terse"
    own.mkdir()
    (own / "PROMPT.md").write_text(
        "---\nname: terse\ndescription: 'Few words.'\n---\nBe brief in {workspace}.\n"
    )
    preset = load_preset("terse", tmp_path)
    assert (preset.name, preset.description) == ("terse", "Few words.")
    assert preset.for_workspace("/w") == "Be brief in /w."
    with pytest.raises(InvalidArgument, match=r"'loud'.*coding, terse, work"):
        load_preset("loud", tmp_path)
    (own / "PROMPT.md").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgument, match="terse"):
        load_preset("terse", tmp_path)


class Small:
    """A model that says it is small."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @property
    def info(self) -> ModelInfo:
        return msgspec.structs.replace(self.model.info, small=True)

    def stream(self, request: Any) -> Any:
        return self.model.stream(request)

    async def aclose(self) -> None:
        return


async def test_a_small_model_is_told_the_files_anew_for_each_call(
    fake: FakeModels, turn: Run, model: Model, tmp_path: Path
) -> None:
    """MO-38: it chooses paths from that list."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("x")
    fake.script(
        {"tools": [{"name": "write_file", "input": {"path": "b.txt", "content": "y"}}]}, {"text": "ok"}
    )
    with Workspace(tmp_path) as workspace:
        branch = workspace.branch()
        await turn(
            tools=file_tools(), branch=branch, model=Small(model), who=Who(turn="t_1"), system=("be good",)
        )
    first, second = ([b["text"] for b in r["system"]] for r in fake.requests)
    assert first[:2] == ["be good", "Files:\nsub/a.txt"]
    assert second[1] == "Files:\nb.txt\nsub/a.txt"
    assert first[-1] == second[-1] == f"Agent: agent. Model: {model.info.name}."
