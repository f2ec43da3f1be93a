"""PR-18: kill -9 of the server while an agent runs: none of its processes is left, and its branch has its changes."""

import asyncio
import signal
import sys
import time
from pathlib import Path

from support.abuse import pids_with
from support.patience import HANG_S, patience

from bowerbird.providers.programs.homes import Homes
from bowerbird.workspace import Workspace

SERVER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from support.agent_programs import stage
from bowerbird.providers.contract.types import AgentRequest

async def main(place, word):
    async with stage(place) as on_stage:
        on_stage.program("claude", "open('half', 'w').write('1')\\n"
            "subprocess.Popen(['setsid', 'sleep', sys.stdin.read()])\\n"
            "print('{\\"type\\":\\"assistant\\",\\"message\\":{\\"content\\":[{\\"type\\":\\"text\\",\\"text\\":\\"x\\"}]}}', flush=True)\\n"
            "time.sleep(600)")
        async for event in on_stage.agent().stream(AgentRequest(word, session_id="s", timeout=600)):
            print("runs", flush=True)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


async def test_nothing_is_left_and_the_branch_keeps_what_was_done(tmp_path: Path):
    """PR-18, PR-15: the next start takes the private home back."""
    word = f"{400_000 + time.monotonic_ns() % 10**9}"
    support = str(Path(__file__).parents[2])
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, str(tmp_path), word, support, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    said = (await asyncio.wait_for(server.stdout.readline(), HANG_S)).decode()
    assert said == "runs\n", "or this host has not the overlay tier"
    async with asyncio.timeout(HANG_S):
        while not pids_with(f"sleep {word}"):  # it may be on the way from one program to the next
            await asyncio.sleep(0.01)
    server.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    await server.wait()
    while pids_with(f"sleep {word}"):
        await asyncio.sleep(0.01)
        assert time.monotonic() - killed < patience(2)
    homes = Homes(tmp_path / "data")
    assert len(homes.left_over()) == 1 and homes.has("claude_code", "s")
    with Workspace(tmp_path / "ws", data_dir=tmp_path / "data") as workspace:
        branch = workspace.open(workspace.branches()[0].id)
        assert branch.changes().written == ("/half",)
