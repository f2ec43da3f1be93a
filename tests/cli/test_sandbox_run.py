"""`bowerbird sandbox run`, and what `doctor` and `tools` say of the sandbox (UI-47, UI-48, SB-6)."""

import json

import pytest


@pytest.fixture
def sandboxed(here):
    rows = {row["name"]: row for row in json.loads(here.run("doctor", "--json")[1])["checks"]}
    if not rows["sandbox"]["found"].startswith("tier overlay"):
        pytest.skip(f"no overlay tier here: {rows['sandbox']}")
    return here


def test_a_command_shows_its_output_and_what_it_changed_and_nothing_lands(sandboxed):
    here = sandboxed
    code, out, err = here.run(
        "sandbox", "run", "--", "sh", "-c", "cat a.txt; echo new > b.txt; rm a.txt; exit 3"
    )
    assert (code, out) == (3, "one\ntwo\nthree\n")
    assert "b.txt" in err and "D  a.txt" in err and "nothing landed" in err and "exit code 3" in err
    assert "tier overlay" in err and "network closed" in err
    assert sorted(p.name for p in here.project.iterdir()) == ["a.txt"]
    assert here.run("sandbox", "run", "true")[2].startswith("it changed nothing")


def test_one_word_is_a_line_for_the_shell_and_diff_shows_the_changes(sandboxed):
    code, out, _ = sandboxed.run("sandbox", "run", "--diff", "echo $((6 * 7)) | tee -a a.txt")
    assert code == 0 and out.startswith("42\n") and "+42" in out


def test_what_git_ignores_is_one_line(sandboxed):
    """GI-7: 501 lines for a build with one change."""
    (sandboxed.project / ".gitignore").write_text("build/\n")
    line = "mkdir build; for n in 1 2 3; do echo $n > build/$n; done; echo four >> a.txt"
    _, out, err = sandboxed.run("sandbox", "run", "--diff", line)
    assert "build/  3 files, 6 B" in err and "1 file, +1 -0" in err and "build/1" not in err + out
    assert "+four" in out


def test_json_holds_the_record_and_the_changes(sandboxed):
    code, out, _ = sandboxed.run("sandbox", "run", "--json", "--timeout", "0.3", "echo x > y; sleep 60")
    record = json.loads(out)
    assert (code, record["exit_code"], record["timed_out"]) == (124, 124, True)
    assert [row["path"] for row in record["changes"]["written"]] == ["/y"]


def test_the_branch_is_in_the_trash_afterwards(sandboxed):
    here = sandboxed
    here.run("sandbox", "run", "echo x > y")
    branches = list((here.home / ".bowerbird").glob("**/branches/*"))
    assert branches and all((branch / "discarded_at").exists() for branch in branches)


def test_a_person_may_allow_a_host_for_one_command(sandboxed):
    line = "env | grep ^HTTP_PROXY; curl -sS --noproxy '' http://localhost/"
    _, out, err = sandboxed.run("sandbox", "run", "--allow", "localhost", line)
    assert "HTTP_PROXY=" in out and "address not allowed" in out and "network allowlist" in err
    _, out, _ = sandboxed.run("sandbox", "run", "--network", "closed", line)
    assert "HTTP_PROXY" not in out


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), id="no-command"),
        pytest.param(("--network", "host", "true"), id="unknown-network"),
        pytest.param(("--network", "closed", "--allow", "x.test", "true"), id="closed-with-hosts"),
        pytest.param(("--timeout", "0", "true"), id="zero-timeout"),
        pytest.param(("--workspace", "missing", "true"), id="no-directory"),
    ],
)
def test_wrong_usage_is_code_2(here, arguments):
    code, _, err = here.run("sandbox", "run", *arguments)
    assert code == 2 and err.startswith("bowerbird: ")


def test_without_a_tier_it_is_code_6_with_the_reason_and_doctor_and_tools_say_so(here):
    here.environment["BOWERBIRD_SANDBOX__TIER"] = "none"
    code, _, err = here.run("sandbox", "run", "true")
    assert code == 6 and "sandbox.minimum" in err
    rows = {row["name"]: row for row in json.loads(here.run("doctor", "--json")[1])["checks"]}
    assert rows["sandbox"]["state"] == "degraded" and "refused" in rows["sandbox"]["found"]
    _, out, err = here.run("tools")
    assert "bash" not in out.split() and "process tools are missing" in err


def test_tools_lists_those_that_run_processes(sandboxed):
    names = {tool["name"]: tool["effect"] for tool in json.loads(sandboxed.run("tools", "--json")[1])}
    assert names["bash"] == "branch" and names["check_background"] == "read"
