"""Commands that are refused outright, whatever the mode (TO-28). Pure.

Here: a few forms that only ever destroy or take control of a machine. Not here: permission rules (`agent`),
isolation: in the sandbox these forms reach nothing; refusing them keeps a habit from being learned.
"""

import re

from bowerbird.tools.processes.shell_words import read_line

_PRIVILEGE = frozenset("sudo su doas pkexec runuser setpriv".split())
_POWER = frozenset("shutdown reboot poweroff halt kexec".split())
_INIT_LEVELS = frozenset("0 6".split())
_HOMES = re.compile(r"(~|\$HOME|\$\{HOME\}|/root|/home|/home/[^/]+)(/\*?)?")
_ROOTS = re.compile(r"/+(\./*)*(\*|\.\*|\{,\.\}\*)?")
_SHELLS = frozenset("ash bash dash eval ksh sh zsh".split())
_STARTERS = frozenset(
    "builtin chronic command env exec find flock ionice nice nohup setsid stdbuf time timeout unshare "
    "xargs".split()
)
_WITH_VALUE = frozenset("-u -C -n -c -p -I -P -L -s -k -a -d -E".split())
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_AMOUNT = re.compile(r"[+-]?[\d.]+[smhd]?|\{\}")
_MOST_NESTED = 8
_DEVICE = re.compile(r"of=/dev/(?!(null|zero|full|stdout|stderr|tty)$)")


def refusal(command: str) -> str | None:
    """Return why a shell line is refused, None when it is not.

    Judged on what the line would run; words inside quotes and expansions are no reason.

    >>> refusal('echo sudo; echo "rm -rf /"; echo "$(date)"') is None
    True
    >>> refusal("cd /tmp && rm -rf /*")
    'rm -rf /* would delete everything'
    """
    return _of_line(command, _MOST_NESTED)


def _of_line(text: str, depth: int) -> str | None:
    for one in read_line(text).commands:
        if one.known and (reason := _of_words(one.words, depth)) is not None:
            return reason
    return None


def _of_words(words: tuple[str, ...], depth: int) -> str | None:
    if not words or depth == 0:
        return None
    name, rest = words[0].rsplit("/", 1)[-1], words[1:]
    if name in _SHELLS:
        scripts = [" ".join(rest)] if name == "eval" else _scripts(rest)
        return next((found for s in scripts if (found := _of_line(s, depth - 1)) is not None), None)
    if name in _STARTERS:
        return _of_words(_started(name, rest), depth - 1)
    return _reason(name, rest)


def _scripts(words: tuple[str, ...]) -> list[str]:
    takes_script = any(w.startswith("-") and not w.startswith("--") and "c" in w for w in words)
    return [w for w in words if not w.startswith("-")][:1] if takes_script else []


def _started(name: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that a program like `env` or `timeout` is told to run."""
    if name == "find":
        at = next((n for n, w in enumerate(words) if w in ("-exec", "-execdir", "-ok", "-okdir")), None)
        return words[at + 1 :] if at is not None else ()
    if name == "command" and words[:1] in (("-v",), ("-V",)):
        return ()  # only says where it is
    skip = 1 if name == "flock" else 0
    rest = iter(enumerate(words))
    for at, word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif not (word.startswith("-") or _ASSIGNMENT.match(word) or _AMOUNT.fullmatch(word)):
            if skip == 0:
                return words[at:]
            skip -= 1
    return ()


def _reason(name: str, rest: tuple[str, ...]) -> str | None:
    if name == "rm":
        return _of_rm(rest)
    if name == "mkfs" or name.startswith("mkfs."):
        return f"{name} would make a new filesystem over what is there"
    if name == "dd" and any(_DEVICE.match(word) for word in rest):
        return "dd would overwrite a device"
    if name in _POWER or (name == "init" and rest[:1] and rest[0] in _INIT_LEVELS):
        return f"{name} would stop the machine"
    if name == "systemctl" and any(word in _POWER for word in rest):
        return "systemctl would stop the machine"
    if name in _PRIVILEGE:
        return f"{name} would take other rights; commands run with the agent's own"
    return None


def _of_rm(words: tuple[str, ...]) -> str | None:
    options = [w for w in words if w.startswith("-") and w != "--"]
    short = "".join(w[1:] for w in options if not w.startswith("--"))
    if not ("r" in short.lower() or "--recursive" in options):
        return None
    for target in (w for w in words if not w.startswith("-")):
        if _ROOTS.fullmatch(target):
            return f"rm -rf {target} would delete everything"
        if _HOMES.fullmatch(target.strip('"')):
            return f"rm -rf {target} would delete a home directory"
    return None
