"""SB-39, SB-40, SB-56: which commands the list lets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird import ALLOWED_COMMANDS
from bowerbird.sandbox.shell.allowed import Allowed, Refused, check_allowed


def check(command, allowed=ALLOWED_COMMANDS):
    return check_allowed(command, allowed, lambda name: f"/usr/bin/{name}", same=str.__eq__)


def test_the_list_has_the_27_names_of_the_specification_in_its_order():
    assert len(ALLOWED_COMMANDS) == 27
    assert " ".join(ALLOWED_COMMANDS) == (
        "curl wget python python3 pip pip3 git jq ffmpeg ffprobe nano-pdf echo date env whoami tar gzip "
        "gunzip unzip wc sort uniq tr cut base64 sha256sum md5sum"
    )


@pytest.mark.parametrize("name", ALLOWED_COMMANDS)
def test_every_name_passes_bare_and_as_the_file_that_path_finds(name):
    assert check(name) == Allowed((name,))
    assert check(f"/usr/bin/{name} --version") == Allowed((f"/usr/bin/{name}", "--version")) or name == "env"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param("  \n ", "empty", id="blank"),
        pytest.param([], "empty", id="no-words"),
        pytest.param([""], "empty", id="empty-word"),
        pytest.param("echo a\0b", "NUL", id="nul"),
        pytest.param(["echo", "a\0b"], "NUL", id="nul-in-list"),
        pytest.param("echo a; id", '";"', id="semicolon"),
        pytest.param("echo a | sort", '"|"', id="pipe"),
        pytest.param("echo 'a & b'", '"&"', id="quoted-ampersand"),
        pytest.param("echo `id`", '"`"', id="backtick"),
        pytest.param("echo '$(id)'", '"$"', id="quoted-dollar"),
        pytest.param("date\nid", "several lines", id="newline"),
        pytest.param("date\rid", "several lines", id="carriage-return"),
        pytest.param("echo 'open", "cannot be split", id="unbalanced"),
        pytest.param("ls", '"ls" is not allowed; allowed commands: curl', id="not-listed"),
        pytest.param("sh -c id", '"sh" is not allowed', id="shell"),
        pytest.param("./git status", "PATH finds", id="relative"),
        pytest.param("/tmp/git status", "PATH finds", id="elsewhere"),
        pytest.param("../usr/bin/git", "PATH finds", id="climbing"),
        pytest.param("git/", "not allowed", id="directory"),
        pytest.param("env id", 'not start "id"', id="env-program"),
        pytest.param("env A=1 id", 'not start "id"', id="env-assignment-program"),
        pytest.param("env -S id", 'not start "-S"', id="env-split"),
        pytest.param("env -iS id", 'not start "-iS"', id="env-combined"),
        pytest.param("env --split-string=id", "not start", id="env-long"),
        pytest.param("env -u PATH id", 'not start "id"', id="env-unset-program"),
        pytest.param("env -C /tmp", 'not start "-C"', id="env-directory"),
    ],
)
def test_what_is_refused_says_why(command, reason):
    refused = check(command)
    assert isinstance(refused, Refused) and reason in refused.reason


@pytest.mark.parametrize(
    ("command", "words"),
    [
        pytest.param("echo hi > out *", ("echo", "hi", ">", "out", "*"), id="plain-text"),
        pytest.param("echo ~ 'a b' \"c\"", ("echo", "~", "a b", "c"), id="quotes"),
        pytest.param(
            "python3 -c 'a = 1\nprint(a)'", ("python3", "-c", "a = 1\nprint(a)"), id="quoted-newline"
        ),
        pytest.param(" date \n", ("date",), id="trailing-newline"),
        pytest.param(["curl", "http://h/?a=1&b=2"], ("curl", "http://h/?a=1&b=2"), id="list"),
        pytest.param(["echo", "$(id)", "a\nb"], ("echo", "$(id)", "a\nb"), id="list-is-plain-text"),
        pytest.param("env", ("env",), id="env"),
        pytest.param(
            "env -0 -i A=1 -u B --unset=C", ("env", "-0", "-i", "A=1", "-u", "B", "--unset=C"), id="env-shows"
        ),
    ],
)
def test_what_passes_is_split_as_a_shell_would_and_nothing_more(command, words):
    assert check(command) == Allowed(words)


@given(text=st.text(max_size=60), name=st.sampled_from(("git", "ls")))
def test_no_string_gets_past_the_first_word(text, name):
    found = check(f"{name} {text}", ("git",))
    if isinstance(found, Allowed):
        assert found.words[0] == "git" and not set(f"{name} {text}") & set(";|&`$\0")
    if name == "ls":
        assert isinstance(found, Refused)
