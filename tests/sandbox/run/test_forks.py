"""Shells start children while others end, in each tier as outside (SB-7)."""

import shutil

import pytest
from support.abuse import TIERS, desk_of
from support.patience import patience

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(patience(60))]

LOOP = (
    "i=0; while [ $i -lt 150 ]; do (exit 0) & true | true; x=$(echo hi); i=$((i+1)); done; wait; echo done $i"
)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(("shell", "begin"), [("dash", ""), ("dash", "trap : CHLD; "), ("bash", "")])
async def test_a_child_that_ends_does_not_keep_the_next_from_starting(
    tmp_path, tier: str, shell: str, begin: str
):
    """In the copy tier dash said "Cannot fork": a fork that was being counted ended with EINTR."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    async with desk_of(tmp_path, tier) as desk:
        result = await desk.run(f"{shell} -c '{begin}{LOOP}'")
        assert (result.exit_code, result.output) == (0, "done 150\n"), result


@pytest.mark.parametrize("tier", TIERS)
async def test_a_handler_for_ending_children_is_called_and_its_other_flags_stay(tmp_path, tier: str):
    """What is added to the handler is that calls begin again."""
    program = (
        "import os, signal, time\n"
        "seen = []\n"
        "signal.signal(signal.SIGCHLD, lambda *_: seen.append(os.waitpid(-1, os.WNOHANG)[0]))\n"
        "signal.siginterrupt(signal.SIGCHLD, True)\n"
        "for _ in range(20):\n"
        "    pid = os.fork()\n"
        "    if not pid: os._exit(0)\n"
        "    while pid not in seen: time.sleep(0.001)\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_DFL)\n"
        "print(len(seen))\n"
    )
    async with desk_of(tmp_path, tier) as desk:
        result = await desk.python(program)
        assert (result.exit_code, result.output) == (0, "20\n"), result
