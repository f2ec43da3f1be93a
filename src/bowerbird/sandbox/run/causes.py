"""Why a command failed where the sandbox is why, and which setting changes it (GI-16, D-26).

Here: what failures look like in outputs, and the sentence for each. It is only said where the sandbox is the
cause: a program that is not installed outside either is nobody's setting. Not here: limits that ended a
command, which its record names.
"""

import os
import posixpath
import re
from collections.abc import Callable, Iterator

import msgspec

from bowerbird.core.processes.host_programs import find_program
from bowerbird.sandbox.run.command import exit_code
from bowerbird.sandbox.run.limits import RunLimits
from bowerbird.sandbox.run.running import Finished
from bowerbird.sandbox.run.shown_trees import is_below
from bowerbird.sandbox.run.status import Tier
from bowerbird.workspace import ProcessView

_LOOKED_AT = 20_000
"""Characters at the end of an output: failures are said last."""
_NOT_FOUND = re.compile(
    r"(?:^|: )(?P<name>[\w.+-]+): (?:command )?not found$"
    r"|cannot run (?P<run>[\w.+-]+): (?:command not found|No such file)"
    r"|env: [‘'\"]?(?P<env>[\w.+-]+)[’'\"]?: No such file",
    re.MULTILINE,
)
_INTERPRETER = re.compile(r"(?P<path>/[^\s:]+): bad interpreter")
_FIRST_LINE = re.compile(r"(?P<script>\S+): cannot execute: required file not found")
_NAMES = re.compile(
    r"could not resolve host|temporary failure in name resolution|name or service not known|EAI_AGAIN"
    r"|getaddrinfo ENOTFOUND|dial tcp: lookup|failed to lookup address|unknownhostexception"
    r"|no address associated with hostname",
    re.IGNORECASE,
)
_TRACE = re.compile(
    r"ptrace\b.*operation not permitted|LeakSanitizer has encountered a fatal error", re.IGNORECASE
)
# "socket", "connect", "listen" and the refusal on one line, or in a traceback a few lines apart.
_SOCKETS = re.compile(
    r"(?:socket|connect|listen)[^\n]{0,200}(?:\n[^\n]{0,200}){0,3}?"
    r"(?:\bEPERM\b|operation not permitted|\[Errno 1\])",
    re.IGNORECASE,
)
# As Python, Node, C programs and Go name a file that is missing.
_MISSING = re.compile(
    r"No such file or directory: '(?P<quoted>[^'\n]{1,1000})'"
    r"|ENOENT[^'\n]{0,200}'(?P<node>[^'\n]{1,1000})'"
    r"|(?<![^\s:'\"‘’])(?P<plain>[^\s:'\"‘’]{1,1000})['\"’]?: no such file or directory",
    re.IGNORECASE,
)
_SPACE = re.compile(r"no space left on device|ENOSPC|bus error", re.IGNORECASE)
_TASKS = re.compile(
    r"can't start new thread|fork: (?:retry: )?resource temporarily unavailable|pthread_create.*resource"
    r"|spawn \S+ EAGAIN",
    re.IGNORECASE,
)
_SIGBUS, _SIGXFSZ = 128 + 7, 128 + 25
_CLOSED = "the network is closed to commands; a person opens hosts with sandbox.network"
_NO_SOCKETS = (
    "the copy tier has no network, not even a loopback address, and no setting opens it; with bubblewrap "
    "installed commands have a loopback of their own, and sandbox.network counts"
)
_LISTED = (
    "commands reach only the hosts of sandbox.network.allow, through the proxy of HTTPS_PROXY; names are not "
    "looked up inside"
)
_NO_TRACE = (
    "the copy tier refuses ptrace, and no setting allows it: debuggers and strace run outside; "
    "ASAN_OPTIONS=detect_leaks=0 turns the check for leaks off"
)

_LINKS = (
    "a hard link to a file of the workspace is a file of its own here, and git clone takes that for a fault: "
    "git clone --no-hardlinks copies"
)


class Causes(msgspec.Struct):
    """Says each cause once; one for each sandbox.

    Args:
        shown: whether commands see a path of the host.
        view: the branch: which of its paths are hidden, and why commands do not see its repository.
        root: the branch's path for commands.
    """

    limits: RunLimits
    shown: Callable[[str], bool]
    view: ProcessView
    root: str
    _told: set[str] = msgspec.field(default_factory=set[str])

    def notes(self, finished: Finished, tier: Tier, network: str) -> list[str]:
        """Return what to say after a command that failed. Looks for programs on the host's PATH."""
        code = exit_code(finished.ending)
        if code == 0 or finished.ending.stop is not None:
            return []
        text = finished.output.text[-_LOOKED_AT:]
        causes = [*_programs(text, self.shown), *_limits(text, code, tier, self.limits), *self._hidden(text)]
        if tier == "copy" and (_SOCKETS.search(text) or _NAMES.search(text)):
            causes.append(("names", _NO_SOCKETS))
        elif _NAMES.search(text):
            causes.append(("names", _CLOSED if network == "closed" else _LISTED))
        if tier == "copy" and _TRACE.search(text):
            causes.append(("trace", _NO_TRACE))
        if tier == "overlay" and "hardlink different from source" in text:
            causes.append(("links", _LINKS))
        if "not a git repository" in text and (why := self.view.git_not_shown()):
            causes.append(("git", why))
        new = {cause: said for cause, said in causes if cause not in self._told}
        self._told.update(new)
        return list(new.values())

    def _hidden(self, text: str) -> Iterator[tuple[str, str]]:
        # The rule alone is asked, not the host: an output may name any path.
        for match in _MISSING.finditer(text):
            named = next(group for group in match.groups() if group)
            path = posixpath.normpath(posixpath.join(self.root, named))
            if not is_below(path, self.root) or not self.view.hides_path(path[len(self.root) :]):
                continue
            yield (
                "hidden",
                (
                    f"agents are not shown {named}, which workspace.hide names: it may hold "
                    "secrets; if it holds none, list it in workspace.show"
                ),
            )
            return


def _limits(text: str, code: int, tier: Tier, limits: RunLimits) -> Iterator[tuple[str, str]]:
    if tier == "overlay" and (_SPACE.search(text) or code == _SIGBUS):
        yield "space", f"/dev/shm has {limits.memory_bytes >> 21} MiB here, half of sandbox.memory_bytes"
    if _TASKS.search(text):
        yield "tasks", f"commands may have {limits.pids} processes and threads (sandbox.pids)"
    if code == _SIGXFSZ or "file too large" in text.lower():
        most = min(limits.file_bytes, limits.disk_bytes) >> 20
        yield "file", f"one file may have {most} MiB in the sandbox, at most sandbox.disk_bytes"


def _programs(text: str, shown: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    for match in _NOT_FOUND.finditer(text):
        name = next(group for group in match.groups() if group)
        place = find_program(name, os.environ.get("PATH", os.defpath))
        if place is not None and not shown(place):
            yield (
                f"program {name}",
                (
                    f"{name} is {place} outside, which commands are not shown; sandbox.toolchains and "
                    "sandbox.read_only say what they see"
                ),
            )
    for match in _INTERPRETER.finditer(text):
        # The host is not asked whether it is there: an output may name any path.
        if not shown(match["path"]):
            yield (
                f"interpreter {match['path']}",
                (
                    f"commands are not shown {match['path']}; if it is there outside, list its directory in "
                    "sandbox.read_only"
                ),
            )
    for match in _FIRST_LINE.finditer(text):
        yield (
            f"interpreter of {match['script']}",
            (
                f"commands are not shown what the first line of {match['script']} names; if it is there "
                "outside, list its directory in sandbox.read_only"
            ),
        )
