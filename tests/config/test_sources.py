"""CF-1 … CF-9: where values come from, and which wins."""

import os

import pytest

from bowerbird.config import load_settings
from bowerbird.core.errors import ConfigError


def test_each_source_wins_over_all_below_it(place):
    """CF-1, and `origins` names the winner and what it hid."""
    place.write("config.yaml", "agent: {max_turns: 1}")
    assert place.load().settings.agent.max_turns == 1
    place.write("config.local.yaml", "agent: {max_turns: 2}")
    assert place.load().settings.agent.max_turns == 2
    place.write(".env", "MAX_TURNS=3\n")
    assert place.load().settings.agent.max_turns == 3
    assert place.load(env={"MAX_TURNS": "4"}).settings.agent.max_turns == 4
    loaded = place.load(flags={"agent.max_turns": 5}, env={"MAX_TURNS": "4"})
    assert loaded.settings.agent.max_turns == 5
    leaf = loaded.leaves["agent", "max_turns"]
    assert [origin.kind for origin in (leaf.origin, *leaf.hidden)] == [
        "flag",
        "environment",
        ".env",
        "file",
        "file",
    ]
    assert str(leaf.hidden[-1]) == f"{place.directory / 'config.yaml'}:1"


def test_the_long_name_wins_over_the_short_one(place):
    """CF-7."""
    env = {"MAX_TURNS": "4", "BOWERBIRD_AGENT__MAX_TURNS": "6"}
    assert place.load(env=env).settings.agent.max_turns == 6


def test_a_named_file_must_exist(errors, place):
    """CF-2."""
    assert "does not exist (--config)" in errors(config_path="nope.yaml")[0]
    assert "does not exist (BOWERBIRD_CONFIG)" in errors(env={"BOWERBIRD_CONFIG": "nope.yaml"})[0]
    assert "is a directory" in errors(config_path=str(place.directory))[0]


def test_the_named_file_wins_over_the_variable_and_both_over_the_current_directory(place):
    """CF-2; the base directory is the file's."""
    place.write("config.yaml", "agent: {max_turns: 1}")
    place.write("a/x.yaml", "agent: {max_turns: 2}")
    place.write("b/y.yaml", "agent: {max_turns: 3}")
    env = {"BOWERBIRD_CONFIG": "a/x.yaml"}
    loaded = place.load(env=env)
    assert loaded.settings.agent.max_turns == 2
    assert loaded.settings.agent.workspace == str(place.directory / "a/workspace")
    assert place.load(env=env, config_path="b/y.yaml").settings.agent.max_turns == 3


def test_settings_at_home_that_cannot_be_read_are_not_passed_over(errors, place):
    """A directory of that name was taken for no settings at all."""
    (place.home / ".bowerbird/config.yaml").mkdir(parents=True)
    assert "config.yaml is a directory" in errors()[0]


def test_without_a_file_here_the_one_at_home_is_read(place):
    """CF-2."""
    file = place.home / ".bowerbird/config.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("agent: {data_dir: d}")
    loaded = place.load()
    assert loaded.file == file
    assert loaded.settings.agent.data_dir == str(place.home / ".bowerbird/d")


def test_an_unnamed_file_in_the_workspace_belongs_to_the_project(place):
    """CF-2: a command that works in a directory does not take settings from it."""
    place.write("config.yaml", "agent: {max_turns: 1}")
    loaded = place.load(kind="cli", workspace=place.directory)
    assert loaded.settings.agent.max_turns == 200
    assert any("belongs to the project" in note for note in loaded.notes)
    named = place.load(kind="cli", workspace=place.directory, config_path="config.yaml")
    assert named.settings.agent.max_turns == 1


def test_commands_and_a_server_without_a_file_share_their_records_and_the_directory(place):
    """D-16: terminal and browser show the same sessions, of the directory both were started in."""
    command, server = place.load(kind="cli"), place.load(kind="serve")
    assert command.settings.agent.data_dir == str(place.home / ".bowerbird/data")
    assert server.database_url == command.database_url
    assert server.settings.agent.workspace == str(place.directory)
    (place.home / ".bowerbird/config.yaml").write_text("agent: {max_turns: 3}")
    assert place.load(kind="serve").settings.agent.workspace == str(place.directory)
    assert place.load(kind="serve").database_url == command.database_url


def test_a_server_reads_a_config_yaml_here_only_where_config_init_wrote_it(place):
    """D-17: in somebody's project it would start the programs that it names."""
    stray = place.home / "cloned"
    stray.mkdir()
    (stray / "config.yaml").write_text("agent: {max_turns: 9}")
    loaded = place.load(cwd=stray)
    assert loaded.settings.agent.max_turns == 200
    assert any("name it with --config" in note for note in loaded.notes)
    assert place.load("agent: {max_turns: 9}").settings.agent.max_turns == 9


def test_relative_paths_start_where_they_were_said(place):
    """D-16: the command line and the environment at the command's directory, a file at its own."""
    file = place.home / "elsewhere.yaml"
    file.write_text("agent: {workspace: files, data_dir: kept}")
    named = {"config_path": str(file)}
    assert place.load(**named).settings.agent.workspace == str(place.home / "files")
    env = {"WORKSPACE_DIR": "work"}
    assert place.load(env=env, **named).settings.agent.workspace == str(place.directory / "work")
    loaded = place.load(flags={"agent.workspace": "this"}, env=env, **named)
    assert loaded.settings.agent.workspace == str(place.directory / "this")
    assert loaded.settings.agent.data_dir == str(place.home / "kept")


def test_a_home_sign_is_expanded_in_path_settings(place):
    """CF-2."""
    loaded = place.load("agent: {data_dir: ~/d}\nworkspace: {registered: {w: ~/w, s: sub}}")
    assert loaded.settings.agent.data_dir == str(place.home / "d")
    registered = loaded.settings.workspace.registered
    assert registered == {"w": str(place.home / "w"), "s": str(place.directory / "sub")}


def test_a_local_file_merges_by_key_and_replaces_lists(place):
    """CF-3, acceptance 5."""
    place.write(
        "config.yaml",
        "mcp_servers:\n  git: {command: c, args: [x, y], tools: {deny: [A]}}\n  op: {command: c, trusted: true}\n"
        "agent: {max_turns: 7}",
    )
    place.write("config.local.yaml", "mcp_servers: {git: {args: [a]}}\nagent: {max_turns: null}")
    settings = place.load().settings
    assert settings.mcp_servers["git"].args == ("a",)
    assert settings.mcp_servers["git"].tools.deny == ("A",)
    assert settings.mcp_servers["op"].trusted is True
    assert settings.agent.max_turns == 200


def test_null_for_a_section_restores_all_of_it(place):
    """CF-3."""
    place.write("config.yaml", "agent: {max_turns: 7, preset: work}")
    place.write("config.local.yaml", "agent:")
    assert place.load().settings.agent.preset == "coding"


def test_a_local_directory_warns_and_an_unreadable_local_file_is_an_error(place, errors):
    """CF-3."""
    place.write("config.yaml", "")
    (place.directory / "config.local.yaml").mkdir()
    assert any("is a directory and was not read" in text for text in place.load().warnings)
    (place.directory / "config.local.yaml").rmdir()
    (place.directory / "config.local.yaml").symlink_to("gone.yaml")
    assert any("cannot be read" in text for text in errors())


def test_dotenv_is_read_by_serve_and_where_it_is_named(place):
    """CF-6."""
    place.write(".env", "MAX_TURNS=9\n")
    assert place.load("").settings.agent.max_turns == 9
    assert place.load(kind="cli").settings.agent.max_turns == 200
    assert place.load(kind="cli", env_file=".env").settings.agent.max_turns == 9
    assert "MAX_TURNS" not in os.environ


def test_the_dotenv_of_a_directory_that_is_served_is_the_project_s(place):
    """D-16: the agent could have written it, and a base URL in it would get the key."""
    place.write(".env", "MAX_TURNS=9\nANTHROPIC_BASE_URL=http://evil.test\n")
    loaded = place.load()
    assert loaded.settings.agent.max_turns == 200
    assert loaded.settings.providers.get("anthropic").base_url != "http://evil.test"
    assert any("--env-file" in note for note in loaded.notes)
    assert place.load(env_file=".env").settings.agent.max_turns == 9


def test_a_projects_names_steer_no_command_run_in_it(place):
    """CF-6, acceptance 6."""
    env = {"DATABASE_URL": "postgresql://ann:pw@db/x", "WORKSPACE_DIR": "/p"}
    loaded = place.load(kind="cli", env=env)
    assert loaded.database_url.startswith("sqlite+aiosqlite:///")
    assert loaded.settings.agent.workspace.endswith("workspace")
    own = {"BOWERBIRD_DATABASE_URL": "postgresql://db/own", "BOWERBIRD_WORKSPACE_DIR": "/own"}
    loaded = place.load(kind="cli", env=env | own)
    assert loaded.database_url == "postgresql+asyncpg://db/own"
    assert loaded.settings.agent.workspace == "/own"
    assert place.load(env=env).database_url == "postgresql+asyncpg://ann:pw@db/x"


@pytest.mark.parametrize("text", ["TRUE", "1", "Yes", "on"])
def test_booleans_of_the_environment_have_eight_spellings(place, text):
    """CF-7."""
    assert place.load(env={"THINKING_ENABLED": text}).settings.agent.thinking_enabled is True
    off = {"TRUE": "False", "1": "0", "Yes": "NO", "on": "off"}[text]
    assert place.load(env={"ENABLE_MEMORY": off}).settings.memory.enabled is False


def test_lists_and_mappings_of_the_environment(place):
    """CF-7: JSON, or commas for lists of strings; names of entries keep their case."""
    assert place.load(env={"ALLOWED_COMMANDS": '["ls"]'}).settings.tools.allowed_commands == ("ls",)
    assert place.load(env={"ALLOWED_COMMANDS": "ls, cat"}).settings.tools.allowed_commands == ("ls", "cat")
    env = {
        "BOWERBIRD_MCP_SERVERS": '{"Git": {"trusted": true}}',
        "BOWERBIRD_MCP_SERVERS__GIT__ARGS": "A",
    }
    place.write("config.yaml", "mcp_servers: {Git: {command: c}}")
    server = place.load(env=env).settings.mcp_servers["Git"]
    assert (server.trusted, server.args, server.command) == (True, ("A",), "c")


def test_an_empty_variable_of_an_optional_setting_is_not_set(place, errors):
    """CF-7, CF-64."""
    place.write("config.yaml", "agent: {subagent_model: x}")
    assert place.load(env={"SUBAGENT_MODEL": "", "OPENAI_API_KEY": " "}).settings.agent.subagent_model == "x"
    assert place.load("server: {metrics_token: ''}").settings.server.metrics_token is None
    assert "provider.model: must not be blank" in errors(env={"MODEL": ""})[0]


def test_a_provider_may_name_its_variable(place):
    """CF-90: `api_key_env`; a key of its own wins."""
    text = "providers: {mine: {api_key_env: MY_VARIABLE, base_url: 'http://h'}}"
    key = place.load(text, env={"MY_VARIABLE": "k"}).settings.providers.get("mine").api_key
    assert key is not None and key.reveal() == "k"
    assert place.load(text).settings.providers.get("mine").api_key is None


def test_a_secret_can_come_from_a_file(place, errors):
    """CF-8: trailing newlines go; both forms at once are refused."""
    place.write("key", "sk-1\n\n")
    env = {"ANTHROPIC_API_KEY_FILE": "key"}
    key = place.load(env=env).settings.providers.get("anthropic").api_key
    assert key is not None and key.reveal() == "sk-1"
    assert "both ANTHROPIC_API_KEY and" in errors(env=env | {"ANTHROPIC_API_KEY": "x"})[0]
    assert "cannot be read" in errors(env={"BOWERBIRD_SERVER__METRICS_TOKEN_FILE": "gone"})[0]


@pytest.mark.parametrize("text", ["sk-1\n", "\tsk-1 ", "sk-1\r\n"])
def test_a_secret_is_taken_without_the_space_around_it(place, text: str):
    """CF-7: a newline of a mounted file ended each request as an attack by headers."""
    key = place.load(env={"ANTHROPIC_API_KEY": text}).settings.providers.get("anthropic").api_key
    assert key is not None and key.reveal() == "sk-1"


def test_a_secret_with_a_line_break_in_it_is_refused_and_not_shown(errors):
    """CF-7, law 9."""
    [said] = errors(env={"ANTHROPIC_API_KEY": "sk-1\nsk-2"})
    assert "providers.anthropic.api_key" in said and "line break" in said and "sk-" not in said


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        pytest.param("a: 1\na: 2", ":2:1", "there twice", id="duplicate"),
        pytest.param("agent:\n  x: !!python/object:os.system {}", ":2:6", "tags are not permitted", id="tag"),
        pytest.param("agent: !x 5", ":1:8", "tags are not permitted", id="own-tag"),
        pytest.param("- 1", ":1:1", "must be a mapping", id="root"),
        pytest.param(b"a: \xff", ":1:4", "invalid UTF-8", id="utf-8"),
        pytest.param(b"#" * (1 << 20) + b"##", ":1:1", "larger than 1 MiB", id="size"),
        pytest.param("a: 1\n---\nb: 2", ":2:1", "second document", id="documents"),
        pytest.param("a: *x", ":1:4", "unknown alias", id="alias"),
        pytest.param("a: " + "[" * 200, ":1:", "nested deeper", id="depth"),
        pytest.param("{a: 1", ":1:", "expected", id="syntax"),
    ],
)
def test_only_plain_yaml_is_read_and_the_place_is_named(place, errors, text, where, what):
    """CF-9, acceptance 13."""
    place.write("config.yaml", text)
    (problem,) = errors()
    assert what in problem and f"config.yaml{where}" in problem


def test_aliases_that_multiply_are_refused(place, errors):
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]" for i in range(8)]
    place.write("config.yaml", "\n".join(lines))
    assert "more than 100,000 values" in errors()[0]


def test_yaml_is_version_1_2(place):
    """CF-9: `no` is text there, 0o14 is twelve."""
    loaded = place.load("agent: {preset: no, max_turns: 0o14}\nmemory: {enabled: no}")
    assert (loaded.settings.agent.preset, loaded.settings.agent.max_turns) == ("no", 12)
    assert loaded.settings.memory.enabled is False


def test_empty_file_null_section_and_no_file_are_the_same(place):
    """Acceptance 11."""
    without = place.load().settings
    own = place.home / ".bowerbird/config.yaml"
    for text in ("", "skills:", "skills: {}\nagent: null"):
        own.write_text(text)
        assert place.load().settings == without


def test_all_errors_of_a_load_are_in_one_exception(place):
    """CF-11, acceptance 14: with ranges, and lines for files."""
    place.write("config.yaml", "agent: {preset: work}\nserver:\n  port: 0")
    with pytest.raises(ConfigError) as caught:
        load_settings(
            env={"BASH_TIMEOUT": "abc", "COMPACT_THRESHOLD": "7"},
            cwd=place.directory,
            home=place.home,
            kind="serve",
        )
    assert len(caught.value.problems) == 3
    text = str(caught.value)
    assert "tools.bash_timeout: must be a number (number 1–86,400 s; got 'abc'); BASH_TIMEOUT" in text
    assert "agent.compact_threshold: is out of range (number 0.1–0.95; got 7.0)" in text
    assert f"server.port: is out of range (integer 1–65,535; got 0); {place.directory}/config.yaml:3" in text


def test_no_error_shows_a_secret(place, errors):
    """CF-11, acceptance 7."""
    found = errors(
        "provider: {api_key: [planted1]}\nmcp_servers: {a: {url: 'http://u:planted2@h x', headers: [planted6]}}\n"
        "store: {url: 'mysql://u:planted3@h/x'}\nserver: {metrics_token: {a: planted4}, port: x}\n"
        "sandbox: {tokn: planted5}"
    )
    assert len(found) == 7
    assert all("config.yaml:" in line for line in found)
    assert "planted" not in "".join(found)


def test_a_settings_file_with_secrets_readable_by_others_is_named_with_the_remedy(place):
    """CF-81."""
    file = place.write("config.yaml", "server: {metrics_token: '1:x'}")
    assert place.load().warnings == ()
    file.chmod(0o644)
    assert f"chmod 600 {file}" in place.load().warnings[0]


def test_a_server_does_not_take_unnamed_settings_from_its_own_workspace(errors):
    """CF-2."""
    assert any(
        "lies inside agent.workspace" in text for text in errors("agent: {workspace: ., data_dir: /d}")
    )


def test_mcp_servers_of_the_file_of_their_own_are_added(place, errors):
    """CF-46, CF-50: blanks of the template are nothing, `${…}` is replaced, a name in both is refused."""
    place.write(
        "mcp_servers.json",
        '{"servers": {"a": {"transport": "http", "mode": "client", "command": "", "args": [], "env": {},'
        ' "url": "https://h/${P}", "headers": {"X": "k"}, "authorization_token": ""}}}',
    )
    server = place.load("mcp_servers: {b: {command: x}}", env={"P": "mcp"}).settings.mcp_servers["a"]
    assert server.url == "https://h/mcp" and server.command is None
    assert "is also in the settings file" in errors("mcp_servers: {a: {command: x}}", env={"P": "mcp"})[0]
    assert "the variable P is not defined" in errors("")[0]


def test_a_command_reads_no_settings_that_happen_to_lie_here(place):
    """D-17, security 7: `bowerbird run -w ../b` started the programs that a planted config.yaml named."""
    planted = "mcp_servers: {x: {command: sh, args: [-c, 'touch M']}}"
    file = place.write("config.yaml", planted)
    elsewhere = place.home / "b"
    elsewhere.mkdir()
    for workspace in (None, elsewhere):
        loaded = load_settings(env={}, cwd=place.directory, home=place.home, kind="cli", workspace=workspace)
        assert loaded.settings.mcp_servers == {} and file not in loaded.files
