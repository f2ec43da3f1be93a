"""What a model is told of a command that kill -9 ended in the middle of a batch."""

from pathlib import Path

import pytest
from support.trees import write_tree

from bowerbird.sessions.resume_decision import LedgerCall
from bowerbird.sessions.turn.recovery import recover
from bowerbird.workspace import Workspace


@pytest.mark.parametrize("mark", ["m_1", None], ids=["a sibling ended after it", "no mark could be taken"])
async def test_a_killed_commands_files_are_named_where_they_were_kept(tmp_path: Path, mark: str | None):
    root = write_tree(tmp_path / "ws", {"old.txt": "old\n"})
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        branch = workspace.branch()
        await branch.bound("t_1", "c_2").write_file("by-the-sibling.txt", "x")
        upper = branch.processes().dirs().upper
        (upper / "made.txt").write_text("half\n")  # as a command through a mount does; nobody saw its end
        (upper / "old.txt").write_text("changed\n")
        killed = LedgerCall("c_1", "bash", 0, "branch", mark, 1, None)
        ended = LedgerCall("c_2", "write_file", 0, "branch", "step:c_2", 2, 3)
        (outcome,) = (await recover([killed, ended], branch.bound("t_1"), "tell")).outcomes
        assert "Paths changed since it began: made.txt, old.txt." in str(outcome.content)
