"""Guards of the sandbox taken away one at a time, inside of a test process (a pytest plugin for `guards.py`).

`BOWERBIRD_REMOVED` names the guard, `BOWERBIRD_BASE` the directory of the tests' own files, the only part of the
host that is laid open. Here: what is taken away, and how. Not here: which cases must then fail.
"""

import os
import re
import resource
import shutil
import subprocess
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyseccomp

from bowerbird.sandbox import branch_sandbox, copy_projection, host, probe, projection
from bowerbird.sandbox.network import egress_proxy, network, proxy_http, proxy_wire
from bowerbird.sandbox.network.egress_policy import EgressPolicy, normal_name
from bowerbird.sandbox.python import engine, monty, run, sessions
from bowerbird.sandbox.run import running, warden, warm_sandbox
from bowerbird.sandbox.run.output import OutputCollector
from bowerbird.sandbox.shell import allowed
from bowerbird.workspace.processes import capture, mirror

BASE = os.environ.get("BOWERBIRD_BASE", "")
_PARTS = Path(warden.__file__).parent / "inside"
_kept: list[Any] = []


def inside(file: str, *changes: tuple[str, str]) -> None:
    """Have the helper processes run a copy of their program in which `changes` are made."""
    if _PARTS.parent == warden.PACKAGE:
        folder = tempfile.TemporaryDirectory(prefix="bowerbird-guards-")
        _kept.append(folder)
        shutil.copytree(_PARTS, Path(folder.name) / "inside", ignore=shutil.ignore_patterns("__pycache__"))
        for module in (warden, warm_sandbox, projection, probe):
            module.PACKAGE = Path(folder.name)
    path = warden.PACKAGE / "inside" / file
    text = path.read_text()
    for old, new in changes:
        assert old in text, f"{file} does not hold {old!r} any more"
        text = text.replace(old, new)
    path.write_text(text)


def arguments(change: Callable[[list[str]], list[str]]) -> None:
    """Change the arguments of bubblewrap."""
    original = projection.bubblewrap
    projection.bubblewrap = lambda *words: change(original(*words))


def rules(change: Callable[[dict[str, list[str]]], None]) -> None:
    """Change the Landlock rules of the copy tier."""
    original = copy_projection.landlock_rules

    def changed(*words: Any, **options: Any) -> dict[str, list[str]]:
        made = original(*words, **options)
        change(made)
        return made

    copy_projection.landlock_rules = changed


def show_host(how: str) -> None:
    """Lay the tests' directory of the host open: `--ro-bind` or `--bind`."""
    arguments(lambda words: [*words[: (at := words.index("--dir"))], how, BASE, BASE, *words[at:]])
    rules(lambda made: made["write" if how == "--bind" else "read"].append(BASE))


def without_option(name: str) -> None:
    arguments(lambda words: [word for word in words if word != name])


def writable_system() -> None:
    def change(words: list[str]) -> list[str]:
        at = words.index("/usr") - 1
        return [*words[:at], "--bind", *words[at + 1 :]]

    def move(made: dict[str, list[str]]) -> None:
        made["read"].remove("/usr")
        made["write"].append("/usr")

    arguments(change)
    rules(move)


def host_proc() -> None:
    def change(words: list[str]) -> list[str]:
        at = words.index("--proc")
        return [*words[:at], "--bind", "/proc", "/proc", *words[at + 2 :]]

    arguments(change)
    inside("namespaced.py", ('kernel.mount("proc", "/proc", "proc", flags)', "pass"))
    # Without Landlock the rights that root's server has, and a command has not, still stand between them.
    inside("confined.py", ("        restrict(*self.rules)\n", ""))
    capabilities()


def abstract_sockets() -> None:
    without_option("--unshare-net")
    inside("confined.py", ("_SCOPE_ALL = 1 | 2", "_SCOPE_ALL = 0"))
    filter_without(lambda name, _: name == "connect")


def inherited() -> None:
    def start(*words: Any, pass_fds: Any = (), **options: Any) -> subprocess.Popen[bytes]:
        for descriptor in pass_fds:
            os.set_inheritable(descriptor, True)
        return subprocess.Popen(*words, close_fds=False, **options)

    for module in (warden, warm_sandbox):
        module.subprocess = types.SimpleNamespace(Popen=start, DEVNULL=subprocess.DEVNULL)
    inside("zygote.py", ("os.closerange(first, end)", "pass"))


def server_environment() -> None:
    original = branch_sandbox.environment
    branch_sandbox.environment = lambda *w, **o: {**original(*w, **o), **os.environ}


def filter_without(skipped: Callable[[object, tuple[Any, ...]], bool], *, foreign: bool = False) -> None:
    """Compile system-call filters that lack some rules."""

    class Filter(pyseccomp.SyscallFilter):
        def add_rule(self, action: Any, name: Any, *conditions: Any) -> None:
            if not skipped(name, conditions):
                super().add_rule(action, name, *conditions)

        def set_attr(self, attribute: Any, value: Any) -> None:
            ignored = foreign and attribute == pyseccomp.Attr.ACT_BADARCH
            super().set_attr(attribute, pyseccomp.ALLOW if ignored else value)

    pyseccomp.SyscallFilter = Filter


def calls(words: str) -> Callable[[], None]:
    names = set(words.split())
    return lambda: filter_without(lambda name, _: name in names)


def ptrace_of_the_init() -> None:
    calls("ptrace process_vm_readv process_vm_writev kcmp")()
    for file in ("namespaced.py", "zygote.py"):
        inside(file, ("kernel.prctl(kernel.PR_SET_DUMPABLE, 0)", "pass"))


def capabilities() -> None:
    for file in ("namespaced.py", "confined.py"):
        inside(file, ("kernel.drop_all_capabilities()", "kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)"))


def limit(name: str) -> Callable[[], None]:
    """Take away one of the kernel's limits of each process."""

    def remove() -> None:
        original = running.RunLimits.rlimits
        running.RunLimits.rlimits = lambda *w: {
            k: v for k, v in original(*w).items() if k not in name.split()
        }

    return remove


def watcher(word: str) -> Callable[[], None]:
    """Have the watcher overlook one limit."""

    def remove() -> None:
        stop = running.RunningCommand.stop
        running.RunningCommand.stop = lambda self, reason: None if reason == word else stop(self, reason)

    return remove


def process_count() -> None:
    limit("NPROC")()
    watcher("pids")()
    inside("namespaced.py", ("        self._limit_pids()\n", ""))
    inside("notified.py", ("                self.room.take()\n", ""))


def memory() -> None:
    watcher("memory")()
    bounded_memory()


def bounded_memory() -> None:
    """Hold this process and all it starts back in another way: this machine is not to be exhausted."""
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


def processor() -> None:
    running.RunLimits.cpu_s = lambda *_: 1e6


def collector() -> None:
    original = OutputCollector.__init__

    def init(self: Any, _most: int, *words: Any, **options: Any) -> None:
        original(self, 1 << 40, *words, **options)

    OutputCollector.__init__ = init


def tree() -> None:
    inside(
        "namespaced.py",
        ("return kernel.clone_process(kernel.CLONE_NEWPID | kernel.CLONE_NEWNS)", "return os.fork()"),
        ("    if left:\n", "    left = 0\n    if left:\n"),
        ('kernel.mount("proc", "/proc", "proc", flags)', "pass"),
        ('kernel.mount("none", "/proc"', '(lambda *_: 0)("none", "/proc"'),
        ("os.kill(-1, signal.SIGTERM)", "pass"),
    )
    inside("confined.py", ("return kill_tree(os.getpid())", "return 0"))


def walking() -> None:
    """Walk by whole paths, as the standard library does."""

    def every(root: int) -> Any:
        top = f"/proc/self/fd/{root}"
        for folder, directories, files in os.walk(top):
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            for name in (*directories, *files):
                path = f"{folder}/{name}"
                yield path[len(top) :], fd, name, Path(path).lstat()
            os.close(fd)

    for module in (capture, mirror):
        module.owned = types.SimpleNamespace(**{**vars(module.owned), "every": every})


def private_addresses() -> None:
    egress_proxy.is_public = lambda _: True
    egress_proxy.is_own = lambda _: False


def resolving_once() -> None:
    original = egress_proxy.EgressProxy._connect

    async def connect(self: Any, name: str, port: int) -> Any:
        first = await self._resolve(name, port)
        found = await original(self, name, port)  # checks, and would connect to, what the second answer says
        return (
            await egress_proxy.asyncio.open_connection(first[0], port) if found == "cannot connect" else found
        )

    egress_proxy.EgressProxy._connect = connect
    egress_proxy._CONNECT_S = 0.2


def many_connections() -> None:
    original = egress_proxy.ProxyLimits
    egress_proxy.ProxyLimits = lambda **given: original(10**6, **given)
    inside("bridge.py", ("_MOST = 64", "_MOST = 6400"))


def unlimited_transfer() -> None:
    usual = egress_proxy.ProxyLimits()
    egress_proxy.ProxyLimits = lambda **_: usual


def socks_names() -> None:
    egress_proxy.normal_name = lambda text: normal_name(re.split(r"[\0\n ]", text)[0] or "good.test")


def path_rule() -> None:
    original = allowed._check_name
    allowed._check_name = lambda words, *rest: original((os.path.basename(words[0]), *words[1:]), *rest)


def python_limits(**more: Any) -> Callable[[], None]:
    def remove() -> None:
        original = engine.PythonLimits

        def made(**given: Any) -> Any:
            return original(**{**given, **more})

        bounded_memory()
        for module in (
            sessions,
            monty,
            run,
            engine,
            __import__("bowerbird.sandbox").sandbox,
        ):
            if hasattr(module, "PythonLimits"):
                module.PythonLimits = made

    return remove


def python_memory() -> None:
    """Take the limit away, and what is said when the host itself refuses, which holds this machine here."""
    python_limits(memory_bytes=1 << 60)()
    monty._LOST = tuple(text for text in monty._LOST if not text.startswith("the worker"))


def put(owner: Any, name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(owner, name, value)


REMOVALS: dict[str, Callable[[], None]] = {
    "files of the host out of sight": lambda: show_host("--ro-bind"),
    "files of the host out of reach": lambda: show_host("--bind"),
    "read-only system": writable_system,
    "processes of the host out of sight": host_proc,
    "abstract sockets kept apart": abstract_sockets,
    "descriptors closed": inherited,
    "environment made anew": server_environment,
    "settings of the kernel read-only": lambda: inside("namespaced.py", (" | kernel.MS_RDONLY", "")),
    "filter: mount family": calls("mount umount2 pivot_root open_tree move_mount fsopen fsmount fsconfig fspick mount_setattr"),
    "filter: unshare, setns": calls("unshare setns"),
    "filter: tracing": calls("ptrace process_vm_readv process_vm_writev kcmp"),
    "filter: bpf, perf, userfaultfd": calls("bpf perf_event_open userfaultfd"),
    "filter: io_uring": calls("io_uring_setup io_uring_enter io_uring_register"),
    "filter: keys": calls("keyctl add_key request_key"),
    "filter: modules, kexec": calls("kexec_load kexec_file_load init_module finit_module delete_module"),
    "filter: clocks, swap, quota, accounts": calls(
        "open_by_handle_at quotactl quotactl_fd swapon swapoff acct settimeofday clock_settime clock_adjtime adjtimex syslog"
    ),
    "filter: clone3": calls("clone3"),
    "filter: namespaces by clone": lambda: filter_without(lambda name, given: name in ("clone", "unshare") and bool(given or name == "unshare")),
    "filter: socket families": calls("socket"),
    "filter: attributes": lambda: filter_without(lambda name, _: "xattr" in str(name) or name in range(463, 470)),
    "filter: foreign tables of calls": lambda: filter_without(lambda *_: False, foreign=True),
    "tracing of the init": ptrace_of_the_init,
    "capabilities dropped": capabilities,
    "count of processes": process_count,
    "memory watched": memory,
    "disk watched": watcher("disk"),
    "size of one file": limit("FSIZE"),
    "open files, core dumps": limit("CORE NOFILE"),
    "processor time": processor,
    "output cut": collector,
    "whole tree killed": tree,
    "KILL after TERM": put(running, "TERM_GRACE_S", 30.0),
    "walking by handles": walking,
    "network of its own": lambda: without_option("--unshare-net"),
    "private addresses refused": private_addresses,
    "allow-list": put(EgressPolicy, "admits", lambda *_: True),
    "resolved once": resolving_once,
    "Host is the name asked for": put(proxy_http, "_checked", lambda asked, *_, **__: asked),
    "TLS name is the name asked for": put(proxy_wire, "_checked_name", lambda seen, *_: seen),
    "names are names": socks_names,
    "64 connections": many_connections,
    "transfer limit": unlimited_transfer,
    "proxy ends with the session": put(network.BranchNetwork, "close", lambda _: egress_proxy.asyncio.sleep(0)),
    "no metacharacters": put(allowed, "_METACHARACTERS", ""),
    "one line": put(allowed, "_has_bare_newline", lambda _: False),
    "the very file of PATH": path_rule,
    "names on the list": put(allowed, "_check_name", lambda *_: None),
    "env starts nothing": put(allowed, "_program_of_env", lambda _: None),
    "Python: time": python_limits(timeout_s=6.0, grace_s=6.0),
    "Python: sleeping": python_limits(timeout_s=1e6),
    "Python: memory": python_memory,
    "Python: recursion": python_limits(recursion=10**9),
    "Python: suspensions": python_limits(suspensions=10**9),
    "Python: output": python_limits(output_bytes=1 << 40),
}  # fmt: skip


def pytest_configure(config: Any) -> None:
    """Take the guard away; the probe, which would notice, is told that all is well."""
    del config
    name = os.environ.get("BOWERBIRD_REMOVED", "")
    if name:

        async def well(*_: Any) -> None:
            return None

        host.probe_overlay = host.probe_copy = well
        REMOVALS[name]()
