"""`bowerbird service install`: the server as a systemd unit of the user, or of the machine for root (AS-66).

Here: the unit's text and where it goes. Not here: the server.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bowerbird.cli.terminal.exits import DONE, FAILED, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.core.processes.host_programs import find_program, run, users_environment

NAME = "bowerbird.service"
MORE_S = 5.0  # than `shutdown.grace_s`, until systemd kills what is left


def install(shell: Shell, *, dry_run: bool) -> int:
    """Write and start the unit for the server of the current directory; another unit of the name stays.

    Raises:
        CliExit: there is a unit already, or no systemd, or it refuses.
    """
    directory = Path.cwd()
    grace_s = shell.load(directory).settings.shutdown.grace_s
    unit = unit_of(_program(), directory, grace_s, is_root=os.geteuid() == 0)
    place = _directory() / NAME
    control = ["systemctl"] if os.geteuid() == 0 else ["systemctl", "--user"]
    steps = [[*control, "daemon-reload"], [*control, "enable", "--now", NAME]]
    if dry_run:
        shell.terminal.write(unit)
        shell.terminal.note(f"would be {place}, and then: {'; '.join(map(' '.join, steps))}")
        return DONE
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("x", encoding="utf-8") as file:
            file.write(unit)
    except FileExistsError:
        raise CliExit(FAILED, f"{place} is there already and was left alone; remove it first") from None
    except OSError as error:
        raise CliExit(FAILED, f"{place} cannot be written: {error.strerror}") from error
    shell.terminal.note(f"wrote {place}")
    for step in steps:
        _run(step)
    shell.terminal.note(f"it runs; follow it with: {' '.join(_journal(control))}")
    if os.geteuid() != 0:
        shell.terminal.note("so that it runs while you are not signed in: loginctl enable-linger")
    return DONE


def unit_of(program: Sequence[str], directory: Path, grace_s: float, *, is_root: bool) -> str:
    """Return the text of the unit. Pure.

    Args:
        grace_s: what turns get to end; systemd waits a little longer.

    Example:
        >>> "KillMode=mixed" in unit_of(["/usr/bin/bowerbird"], Path("/srv/bot"), 10, is_root=False)
        True
    """
    return f"""\
[Unit]
Description=Bowerbird in {_quoted(str(directory))}
After=network-online.target
Wants=network-online.target

[Service]
ExecStart={" ".join(map(_word, program))} serve
WorkingDirectory={_quoted(str(directory))}
Restart=on-failure
RestartSec=2
# Turns end in order; what is left then is killed with everything it started.
KillMode=mixed
TimeoutStopSec={grace_s + MORE_S:g}
# The sandbox of agents is made of user namespaces: nothing here may forbid them.
RestrictNamespaces=no

[Install]
WantedBy={"multi-user.target" if is_root else "default.target"}
"""


def _quoted(text: str) -> str:
    """Take the meaning from what systemd would expand; a line end cannot stand in a unit."""
    if "\n" in text or "\r" in text:
        raise CliExit(FAILED, f"{text!r} has a line end in its name, which no unit can hold")
    return text.replace("%", "%%")


def _word(text: str) -> str:
    quoted = _quoted(text).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{quoted}"' if any(character in quoted for character in " '\"\\;") else quoted


def _program() -> Sequence[str]:
    """Return the words that start this program again, by absolute paths."""
    called = find_program(sys.argv[0]) if Path(sys.argv[0]).name == "bowerbird" else None
    found = called or find_program("bowerbird")
    return [str(Path(found).absolute())] if found else [sys.executable, "-I", "-m", "bowerbird"]


def _directory() -> Path:
    if os.geteuid() == 0:
        return Path("/etc/systemd/system")
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "systemd" / "user"


def _journal(control: list[str]) -> list[str]:
    return ["journalctl", *control[1:], "-fu", "bowerbird"]


def _run(step: list[str]) -> None:
    try:
        done = run(step, env=users_environment(), timeout=None)
    except FileNotFoundError:
        raise CliExit(
            FAILED, "there is no systemctl here; start the server by other means, or with: bowerbird serve"
        ) from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace")
        raise CliExit(FAILED, f"{' '.join(step)} failed: {said}")
