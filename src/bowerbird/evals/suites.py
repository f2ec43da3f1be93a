"""Suites: directories of tasks and files of instances, read into tasks, whoever wrote them.

Here: three forms (our own, SWE-bench's, terminal-bench's), and why a task cannot be judged here. Not here:
running anything (`tries.py`).
"""

import hashlib
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec

from bowerbird.core.errors import BowerbirdError, InvalidArgument
from bowerbird.core.forms import convert, decode

TURN_S, CHECK_S = 180.0, 60.0
LONGEST_S = 86_400.0
CHECKS = {"check.sh": 'bash "$CHECK/check.sh"', "check.py": 'python3 "$CHECK/check.py"'}
PYTEST = "python3 -m pytest -q -p no:cacheprovider"
IMAGES = ("docker_image", "image_name", "image", "dockerhub_tag")
CONTAINERS = (
    "Dockerfile", "docker-compose.yaml", "docker-compose.yml", "environment/Dockerfile",
    "environment/docker-compose.yaml", "environment/docker-compose.yml", "tests/Dockerfile",
)  # fmt: skip
_INSIDE = re.compile(r"(?<![\w./$}-])/(?:app|logs|tests|oracle|solution|workspace|testbed)\b")


class CannotJudge(BowerbirdError):
    """A task that cannot be tried or judged on this machine, and why."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task.

    Attributes:
        request: what the agent is told. time_s, check_s: limits of its turn and of the check.
        files: directory that it starts from; or `repo`, a git repository, at `commit`; neither: an empty one.
        check: command line, run on a fork of what the agent's branch would land; 0 = right.
        hidden: directory that the check sees besides, as `$CHECK`; None: one that holds `extra`.
        extra: further files for the check. test_patch: its files, as it leaves them, are put there too.
        solution: command line that solves it, "" = unknown; answer: what a right agent says then.
        needs: command lines that must succeed where the check runs, by what they stand for.
        digest: of all of it, so that a changed task is tried anew.
    """

    name: str
    request: str
    check: str
    digest: str
    files: Path | None = None
    repo: Path | None = None
    commit: str = ""
    hidden: Path | None = None
    extra: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    test_patch: str = ""
    solution: str = ""
    answer: str = ""
    needs: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    time_s: float = TURN_S
    check_s: float = CHECK_S


class Suite(msgspec.Struct, frozen=True):
    """What was read: tasks by name, and those that cannot be judged here with the reason."""

    path: Path
    tasks: Mapping[str, Task]
    refused: Mapping[str, str]


class _Own(msgspec.Struct, forbid_unknown_fields=True):
    """`task.toml` of our own form."""

    request: str
    answer: str = ""
    repo: str = ""
    commit: str = "HEAD"
    time_s: float = TURN_S
    check_s: float = CHECK_S
    needs: dict[str, str] = {}


def read_suite(path: Path) -> Suite:
    """Read a suite: a directory of tasks, one task, or a JSON or JSON Lines file of instances. Blocks.

    Raises:
        InvalidArgument: there is no suite.
    """
    if not path.exists():
        raise InvalidArgument(f"there is no suite at {path}")
    tasks: dict[str, Task] = {}
    refused: dict[str, str] = {}
    try:
        for name, read in _found(path):
            try:
                if name in tasks or name in refused:
                    raise CannotJudge("two tasks have this name; only the first counts")
                tasks[name] = _checked(read())
            except (BowerbirdError, OSError, ValueError, KeyError, TypeError) as error:
                refused.setdefault(name, str(error) or type(error).__name__)
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"the suite {path} cannot be read: {error}") from error
    if not tasks and not refused:
        raise InvalidArgument(
            f"{path} has no task: a task is a directory with a task.toml (or task.yaml) and a check; a file "
            "of instances is JSON or JSON Lines"
        )
    return Suite(path, tasks, refused)


def _found(path: Path) -> Iterator[tuple[str, Callable[[], Task]]]:
    """Yield each task's name with what reads it."""
    if path.is_dir():
        places = [path] if _is_task(path) else [each for each in sorted(path.iterdir()) if _is_task(each)]
        for each in places:
            yield each.name, partial(_of_directory, each)
        return
    text = path.read_text(encoding="utf-8")
    rows = (
        decode(text) if text.lstrip().startswith("[") else [decode(x) for x in text.splitlines() if x.strip()]
    )
    for number, row in enumerate(cast("list[Any]", rows), 1):
        told = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
        name = str(told.get("instance_id") or f"instance {number}")
        yield name, partial(_of_instance, path.parent, name, told)


def _is_task(directory: Path) -> bool:
    return (directory / "task.toml").is_file() or (directory / "task.yaml").is_file()


def _checked(task: Task) -> Task:
    if not task.request.strip():
        raise CannotJudge("it has no request")
    for name, value in (("time_s", task.time_s), ("check_s", task.check_s)):
        if not 0 < value <= LONGEST_S:
            raise CannotJudge(
                f"{name} is {value:g}; it must be more than 0 and at most {LONGEST_S:g} seconds"
            )
    if task.repo is not None and not task.repo.is_dir():
        raise CannotJudge(f"there is no repository at {task.repo}: clone it there, nothing is downloaded")
    return task


# ---------------------------------------------------------------- directories


def _of_directory(directory: Path) -> Task:
    if (directory / "task.yaml").is_file():
        return _terminal_task(directory, _yaml(directory / "task.yaml"))
    told = tomllib.loads((directory / "task.toml").read_text(encoding="utf-8"))
    if (directory / "instruction.md").is_file():
        request = (directory / "instruction.md").read_text(encoding="utf-8")
        return _terminal_task(directory, {**told, "instruction": request})
    own = convert(told, _Own)
    check = next((line for name, line in CHECKS.items() if (directory / name).is_file()), None)
    if check is None:
        raise CannotJudge(f"it has no check: {' or '.join(CHECKS)}")
    files = directory / "files"
    return Task(
        name=directory.name,
        request=own.request,
        check=check,
        digest=_digest(directory),
        files=files if files.is_dir() else None,
        repo=directory / own.repo if own.repo else None,
        commit=own.commit,
        hidden=directory,
        solution='bash "$CHECK/solution.sh"' if (directory / "solution.sh").is_file() else "",
        answer=own.answer,
        needs=own.needs,
        time_s=own.time_s,
        check_s=own.check_s,
    )


def _yaml(file: Path) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        found: Any = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))  # pyright: ignore[reportUnknownMemberType]
    except YAMLError as error:
        raise CannotJudge(f"task.yaml is no YAML: {error}") from error
    return _table(found, "task.yaml")


def _terminal_task(directory: Path, told: dict[str, Any]) -> Task:
    """Return a task in terminal-bench's form, the older (`task.yaml`) or Harbor's, without a container."""
    environment, agent, verifier = (
        _table(told.get(name) or {}, name) for name in ("environment", "agent", "verifier")
    )
    needing = [name for name in CONTAINERS if (directory / name).exists()]
    needing += [f"{name} = {environment[name]}" for name in IMAGES if environment.get(name)]
    if needing:
        raise CannotJudge(f"its check needs a container ({needing[0]})")
    tests = sorted((directory / "tests").glob("*.py"))
    if not any(file.name.startswith("test_") for file in tests):  # scripts tell the harness, by no exit code
        raise CannotJudge("it has no tests/test_*.py, and what its script says is for a container")
    for file in tests:
        if found := _INSIDE.search(file.read_text(encoding="utf-8")):
            raise CannotJudge(
                f"its check needs a container ({file.name} names {found[0]}, a path of its own)"
            )
    scripts = ("solution/solve.sh", "solution.sh")
    solution = next((name for name in scripts if (directory / name).is_file()), "")
    starts = (directory / name for name in ("environment", "files"))
    return Task(
        name=directory.name,
        request=str(told.get("instruction") or ""),
        check=f'{PYTEST} "$CHECK/tests"',
        digest=_digest(directory),
        files=next((start for start in starts if start.is_dir()), None),
        hidden=directory,
        solution=f'bash "$CHECK/{solution}"' if solution else "",
        time_s=float(agent.get("timeout_sec") or told.get("max_agent_timeout_sec") or TURN_S),
        check_s=float(verifier.get("timeout_sec") or told.get("max_test_timeout_sec") or CHECK_S),
    )


def _table(found: Any, name: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise CannotJudge(f"{name} is no table")
    return cast("dict[str, Any]", found)


def _digest(directory: Path) -> str:
    """Return a digest of all files of a directory; links count by what they say."""
    whole = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.is_symlink():
            if not path.resolve().is_relative_to(directory.resolve()):  # its target would be told to a model
                raise CannotJudge(f"the link {path.relative_to(directory)} leads out of the task")
            content = bytes(path.readlink())
        elif path.is_file():
            content = path.read_bytes()
        else:
            continue
        name = str(path.relative_to(directory)).encode("utf-8", "surrogateescape")
        whole.update(b"%d %b %d\n" % (len(name), name, len(content)) + content)
    return whole.hexdigest()[:16]


# ---------------------------------------------------------------- instances


def _of_instance(beside: Path, name: str, told: dict[str, Any]) -> Task:
    """Return an instance in SWE-bench's form; its `repo` is a directory, relative to the file of it."""
    if missing := [name for name in ("repo", "base_commit", "problem_statement") if not told.get(name)]:
        raise CannotJudge(f"it has no {missing[0]}")
    if image := next((name for name in IMAGES if told.get(name)), None):
        raise CannotJudge(f"its check needs a container ({image} = {told[image]})")
    gold, tests = str(told.get("patch") or ""), str(told.get("test_patch") or "")
    return Task(
        name=name,
        request=str(told["problem_statement"]),
        # The tests' own files are as the patch leaves them, whatever the agent made of them.
        check='cp -r "$CHECK/tests/." . && ' + _tests(told) if tests else _tests(told),
        digest=hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()[:16],
        repo=beside / str(told["repo"]),
        commit=str(told["base_commit"]),
        extra={"solution.patch": gold} if gold else {},
        test_patch=tests,
        solution='git apply "$CHECK/solution.patch"' if gold else "",
        time_s=float(told.get("time_s") or TURN_S),
        check_s=float(told.get("check_s") or 10 * CHECK_S),
    )


def _tests(told: Mapping[str, Any]) -> str:
    """Return the command that runs an instance's tests."""
    if told.get("test_cmd"):
        return str(told["test_cmd"])
    named: list[str] = []
    for key in ("FAIL_TO_PASS", "PASS_TO_PASS"):
        listed: Any = told.get(key) or []
        try:
            named += convert(decode(listed) if isinstance(listed, str) else listed, list[str])
        except msgspec.MsgspecError as error:
            raise CannotJudge(f"{key} is no list of tests: {error}") from error
    if not named:
        raise CannotJudge("it names no tests: FAIL_TO_PASS, or a command in test_cmd")
    if strange := next((each for each in named if "::" not in each and not each.endswith(".py")), None):
        raise CannotJudge(f"{strange!r} is no test of pytest's: give the command that runs them in test_cmd")
    return f"{PYTEST} {shlex.join(named)}"
