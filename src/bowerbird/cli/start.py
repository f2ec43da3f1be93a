"""The first moments of the command: while it is being imported, Ctrl+C ends it without a word (UI-61, 63).

Here: nothing that takes time, before the signal is out of the way. Not here: the command (`main.py`).
"""

import signal
import sys


def main() -> None:
    """Import the command and run it."""
    if sys.flags.optimize > 1:
        sys.exit(
            "bowerbird: this Python leaves out docstrings (PYTHONOPTIMIZE=2, or -OO), and they tell models "
            "what tools do; unset it"
        )
    # Python would raise KeyboardInterrupt in whatever is being imported, and show its traceback.
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored: nohup
    if is_usual:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bowerbird.cli.main import main as command
    from bowerbird.cli.terminal.exits import INTERRUPTED

    try:
        if is_usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
