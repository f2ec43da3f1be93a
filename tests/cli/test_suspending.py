"""Ctrl+Z at the prompt, under a shell's job control: the job stops and goes on with what was typed."""

import sys

# The smallest shell: the job in a process group of its own, in the front, and watched for its stops.
SHELL = """
import os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
ours = os.getpgrp()
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, "-m", "bowerbird.cli.main", *sys.argv[1:]])
_, status = os.waitpid(child, os.WUNTRACED)
lines = termios.tcgetattr(0)[3] & termios.ICANON and termios.tcgetattr(0)[3] & termios.ECHO
os.tcsetpgrp(0, ours)
print("JOB STOPPED" if os.WIFSTOPPED(status) else "JOB ENDED", "as lines" if lines else "raw", flush=True)
os.tcsetpgrp(0, child)
os.killpg(child, signal.SIGCONT)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_ctrl_z_stops_the_job_and_what_was_typed_is_still_there(here):
    """UI-55: `^Z` went into the message."""
    here.fake.script({"text": "An answer."})
    with here.terminal(command=[sys.executable, "-c", SHELL]) as terminal:
        terminal.wait_for("lists commands")
        terminal.wait_for(">")
        terminal.send("half a ")
        terminal.wait_for("half a")
        terminal.send("\x1a")
        terminal.wait_for("JOB STOPPED as lines")
        terminal.wait_for("half a")
        terminal.send("sentence\r")
        terminal.wait_for("An answer.")
        terminal.wait_for(">")
        terminal.send("\x04")
        assert terminal.wait() == 0
    (said,) = here.fake.requests[-1]["messages"]
    assert "half a sentence" in str(said) and "\\x1a" not in str(said)
