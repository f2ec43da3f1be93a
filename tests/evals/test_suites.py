"""Suites of every form, and rubbish: each is an error for people."""

import json
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from evals.conftest import MODEL, Evals
from support.fake_models import FakeModels
from support.patience import patience

pytestmark = pytest.mark.timeout(patience(120))

CODE, MENDED = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
TEST = "from calc import add\n\n\ndef test_add():\n    assert add(2, 2) == 4\n"
GOLD = """diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""
TEST_PATCH = """diff --git a/test_calc.py b/test_calc.py
--- a/test_calc.py
+++ b/test_calc.py
@@ -1 +1,5 @@
 from calc import add
+
+
+def test_add():
+    assert add(2, 2) == 4
"""


def git(place: Path, *words: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@x")
    return subprocess.run(
        ["git", *who, *words], cwd=place, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def instances(evals: Evals) -> Callable[..., Path]:
    """Write a file of instances beside a repository whose next commit has the solution."""
    repository = evals.project / "calc"
    repository.mkdir()
    git(repository, "init", "-q")
    (repository / "calc.py").write_text(CODE)
    (repository / "test_calc.py").write_text("from calc import add\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "begin")
    base = git(repository, "rev-parse", "HEAD")
    (repository / "calc.py").write_text(MENDED)
    git(repository, "commit", "-qam", "the solution itself")

    def write(*changes: dict[str, Any], lines: bool = True) -> Path:
        whole = {
            "instance_id": "calc-1", "repo": "calc", "base_commit": base, "problem_statement": "add is wrong",
            "patch": GOLD, "test_patch": TEST_PATCH, "FAIL_TO_PASS": '["test_calc.py::test_add"]', "PASS_TO_PASS": "[]",
        }  # fmt: skip
        rows = [
            {k: v for k, v in {**whole, **change}.items() if v is not None} for change in changes or ({},)
        ]
        file = evals.project / ("set.jsonl" if lines else "set.json")
        file.write_text("\n".join(map(json.dumps, rows)) if lines else json.dumps(rows))
        return file

    return write


@pytest.mark.parametrize("lines", [True, False])
def test_an_instance_of_a_local_repository_is_judged_by_its_tests(
    evals: Evals, instances: Callable[..., Path], commands: Callable[..., None], lines: bool
) -> None:
    # What the agent makes of the tests counts for nothing, and what came later is not in its repository.
    commands(
        {
            "add is wrong": "git log --all --format=%s > log.txt; echo 'assert False' > test_calc.py; sed -i 's/-/+/' calc.py"
        }
    )
    found = evals.judge(suite=instances({}, lines=lines))
    assert [(t["task"], t["state"]) for t in found["tries"]] == [("calc-1", "right")], found
    commands(
        {
            "add is wrong": "git log --all | grep -q 'solution itself' && sed -i 's/-/+/' calc.py; rm test_calc.py"
        }
    )
    assert evals.judge("--again", suite=instances({}, lines=lines))["tries"][0]["state"] == "wrong"


def test_instances_that_cannot_be_judged_here_are_refused_by_name(
    evals: Evals, instances: Callable[..., Path], commands: Callable[..., None]
) -> None:
    commands({})
    changes: dict[str, tuple[dict[str, Any], str]] = {
        "elsewhere": ({"repo": "django/django"}, "there is no repository at"),
        "image": ({"docker_image": "x/y:1"}, "its check needs a container (docker_image = x/y:1)"),
        "runner": ({"FAIL_TO_PASS": ["test_x (app.Tests)"]}, "'test_x (app.Tests)' is no test of pytest's"),
        "no-tests": ({"FAIL_TO_PASS": None, "PASS_TO_PASS": None}, "it names no tests"),
        "no-commit": ({"base_commit": "0" * 40}, "has no commit 0000"),
        "no-request": ({"problem_statement": None}, "it has no problem_statement"),
        "bad-list": ({"FAIL_TO_PASS": "["}, "FAIL_TO_PASS is no list of tests"),
        "bad-gold": (
            {"patch": GOLD.replace("a - b", "a * b")},
            "its check does not pass after its own solution",
        ),
        "bad-tests": (
            {"test_patch": TEST_PATCH.replace("import add", "import sub")},
            "its test_patch does not apply",
        ),
        "green": ({"FAIL_TO_PASS": None, "test_cmd": "true"}, "its check passes before anything was done"),
    }
    file = instances(*({"instance_id": name, **change} for name, (change, _) in changes.items()))
    file.write_text(file.read_text() + "\n[1]\n" + json.dumps({"instance_id": "elsewhere"}))
    found = evals.judge(suite=file, code=3)
    assert found["tries"] == []
    for name, (_, why) in changes.items():
        assert why in found["refused"][name], (name, found["refused"][name])
        assert f"not tried: {name}: " in evals.told
    assert found["refused"]["instance 11"] == "it has no repo"


def terminal_task(place: Path, *, new: bool, **more: str) -> Path:
    (place / "tests").mkdir(parents=True)
    test = "def test_made():\n    assert open('made.txt').read() == 'made\\n'\n"
    (place / "tests/test_outputs.py").write_text(test)
    if new:
        (place / "instruction.md").write_text(f"Make it, {place.name}.\n")
        (place / "task.toml").write_text(
            'version = "1.0"\n[agent]\ntimeout_sec = 60.0\n[verifier]\ntimeout_sec = 30.0\n'
        )
        (place / "solution").mkdir()
        (place / "solution/solve.sh").write_text("echo made > made.txt\n")
    else:
        (place / "task.yaml").write_text(
            f"instruction: |-\n  Make it, {place.name}.\nmax_agent_timeout_sec: 60.0\n"
        )
        (place / "solution.sh").write_text("echo made > made.txt\n")
    for name, text in more.items():
        file = place / name.replace("__", "/").replace("_DOT_", ".")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return place


def test_terminal_tasks_without_a_container_are_judged_and_others_refused(
    evals: Evals, commands: Callable[..., None]
) -> None:
    terminal_task(evals.suite / "old", new=False)
    terminal_task(evals.suite / "new", new=True, environment__start_DOT_txt="x\n")
    terminal_task(evals.suite / "image", new=False, Dockerfile="FROM x\n")
    terminal_task(evals.suite / "image-2", new=True, environment__Dockerfile="FROM x\n")
    terminal_task(evals.suite / "path", new=True, tests__test_more_DOT_py="open('/app/out.txt')\n")
    (terminal_task(evals.suite / "yaml", new=False) / "task.yaml").write_text("instruction: [\n")
    (terminal_task(evals.suite / "list", new=False) / "task.yaml").write_text("- a\n")
    script = terminal_task(
        evals.suite / "script", new=True, tests__test_DOT_sh="echo 1 > /logs/verifier/reward.txt\n"
    )
    (script / "tests/test_outputs.py").unlink()
    commands({"Make it, old": "echo made > made.txt", "Make it, new": "ls start.txt && echo made > made.txt"})
    terminal_task(evals.suite / "undone", new=True)
    found = evals.judge(code=3)
    states = {t["task"]: t["state"] for t in found["tries"]}
    assert states == {"old": "right", "new": "right", "undone": "wrong"}, found
    refused = found["refused"]
    assert "needs a container (Dockerfile)" in refused["image"]
    assert "needs a container (environment/Dockerfile)" in refused["image-2"]
    assert "test_more.py names /app" in refused["path"]
    assert "it has no tests/test_*.py" in refused["script"]
    assert "task.yaml is no YAML" in refused["yaml"] and refused["list"] == "task.yaml is no table"


def test_tasks_of_our_own_that_are_none_are_refused_by_name(
    evals: Evals, commands: Callable[..., None]
) -> None:
    commands({})
    for name in ("no-check", "toml", "blank", "unknown", "time", "repo", "green", "needs", "binary", "link"):
        evals.task(name, "false\n")
    shutil.rmtree(evals.suite / "link/files")
    (evals.suite / "link/files").symlink_to(evals.home)
    (evals.suite / "no-check/check.sh").unlink()
    told = {
        "toml": "request = ", "blank": 'request = " "', "unknown": 'request = "x"\ntimeout = 3', "binary": "\0",
        "time": 'request = "x"\ntime_s = 0', "repo": 'request = "x"\nrepo = "nowhere"', "green": 'request = "x"',
        "needs": 'request = "x"\nneeds = { "a compiler of Ada" = "gnatmake --version" }',
    }  # fmt: skip
    for name, text in told.items():
        (evals.suite / name / "task.toml").write_text(text)
    (evals.suite / "green/check.sh").write_text("true\n")
    refused = evals.judge(code=3)["refused"]
    assert refused["no-check"] == "it has no check: check.sh or check.py"
    assert "nvalid" in refused["toml"] and refused["blank"] == "it has no request"
    assert "timeout" in refused["unknown"] and "it must be more than 0" in refused["time"]
    assert "there is no repository at" in refused["repo"]
    assert refused["green"] == "its check passes before anything was done"
    assert refused["needs"] == "it needs a compiler of Ada, which commands do not find here"
    assert refused["link"] == "the link files leads out of the task"
    assert set(refused) == {*told, "no-check", "link"}


def test_what_is_no_suite_or_no_report_is_wrong_usage(evals: Evals) -> None:
    evals.task("one", "false\n")
    (evals.project / "empty").mkdir()
    (evals.project / "text").write_text("what\n")
    (evals.project / "bytes").write_bytes(b"\xff\xfe")
    (evals.project / "notes.json").write_text('{"mine": true}')
    (evals.project / "page.html").mkdir()
    suite = str(evals.suite)
    for words, why in (
        (("nowhere",), "there is no suite at"),
        (("empty",), "has no task"),
        (("text",), "cannot be read"),
        (("bytes",), "cannot be read"),
        ((suite, "--n", "0"), "--n is 0; use 1 to 100"),
        ((suite, "--jobs", "99"), "--jobs is 99; use 1 to 32"),
        ((suite, "--task", "two"), "the suite has no task 'two'; it has one"),
        ((suite, "--report", "notes.json"), "is no report of an evaluation"),
        ((suite, "--report", "x.html"), "name a file that ends in .json"),
        ((suite, "--report", "none/x.json"), "there is no directory"),
        ((suite, "--report", "/proc/x.json"), "the report /proc/x.json cannot be written"),
        ((suite, "--report", "page.json"), "and its page cannot be written: Is a directory"),
        ((suite, "--model", "nobody:nothing"), "nobody"),
    ):
        code, out, err = evals.run("eval", *words, *(() if "--model" in words else ("--model", MODEL)))
        assert code in (2, 78) and why in err and not out, (words, code, err)
        assert "Traceback" not in err
    assert (evals.project / "notes.json").read_text() == '{"mine": true}'
    assert not list(evals.project.glob(".*.lock"))


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.outside += [
            f"{name}={value}" for name, value in attrs if name in ("src", "href", "onerror", "onload")
        ]


def test_the_page_shows_strangers_words_as_words_and_loads_nothing(evals: Evals, models: FakeModels) -> None:
    evals.task("<script>alert(1)", "echo '<img src=x onerror=alert(2)>'; false\n")
    models.script({"text": "Done."})
    evals.judge("--report", "found.json")
    page = (evals.project / "found.html").read_text()
    tags = Tags()
    tags.feed(page)
    assert not tags.tags & {"script", "img", "iframe", "link"} and not tags.outside
    assert "&lt;script&gt;alert(1)" in page and "&lt;img src=x" in page
