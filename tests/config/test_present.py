"""CF-82 … CF-87: what the `config` commands say."""

import json
from pathlib import Path

import jsonschema_rs
import pytest

from bowerbird.config.keys import walk
from bowerbird.config.present import check_data, explain, rows
from bowerbird.config.reference import page, schema, template
from bowerbird.config.yaml_text import parse
from bowerbird.core.errors import InvalidArgument

ROOT = Path(__file__).parents[2]


def test_show_lists_what_differs_and_all_lists_everything(place):
    """CF-83."""
    loaded = place.load("agent: {max_turns: 7, preset: coding, workspace: workspace}")
    assert [row.key for row in rows(loaded)] == ["agent.max_turns"]
    everything = {row.key for row in rows(loaded, every=True)}
    assert everything >= {info.name for info in walk() if "*" not in info.path}
    assert [row.value for row in rows(loaded, "agent.preset")] == ["coding"]


def test_show_names_the_winner_and_what_it_hid(place):
    place.write("config.yaml", "agent: {max_turns: 7}")
    (row,) = rows(place.load(env={"MAX_TURNS": "8"}))
    data = row.to_data(origin=True)
    assert data["value"] == 8 and data["origin"].startswith("MAX_TURNS")
    assert data["hides"] == [f"{place.directory}/config.yaml:1"]


def test_show_works_with_invalid_settings_and_marks_them(place):
    loaded = place.inspect("agent: {max_turns: 0}\nserver: {metrics_token: [planted]}")
    marked = {row.key: row.problem for row in rows(loaded)}
    assert "out of range" in marked["agent.max_turns"]
    assert "server.metrics_token" in marked
    assert "planted" not in json.dumps([row.to_data(origin=True) for row in rows(loaded, every=True)])


def test_show_never_has_a_secret(place):
    """Acceptance 8."""
    loaded = place.load(
        "providers: {x: {base_url: 'http://h/v1', api_key: planted1, headers: {H: planted2}}}\n"
        "mcp_servers: {a: {command: c, env: {E: planted3}}}\nsandbox: {env: {E: planted4}}",
        env={"ANTHROPIC_API_KEY": "planted5", "DATABASE_URL": "postgresql://u:planted6@h/x"},
    )
    shown = {row.key: row.value for row in rows(loaded, every=True)}
    assert "planted" not in json.dumps(shown)
    assert shown["providers.anthropic.api_key"] == "********"
    assert shown["provider.api_key"] == "not set"
    assert shown["store.url"] == "postgresql://u:********@h/x"


def test_explain_tells_all_of_a_key():
    """CF-84."""
    assert explain("tools.bash_timeout") == {
        "key": "tools.bash_timeout",
        "meaning": "Time limit of a command; its whole process group is killed then.",
        "type": "float",
        "unit": "s",
        "default": 120,
        "allowed": "number 1–86,400 s",
        "environment": ["BASH_TIMEOUT", "BOWERBIRD_TOOLS__BASH_TIMEOUT"],
        "other_names": [],
        "applies": "from the next turn or connection",
    }
    assert explain("store.url")["environment"][:2] == ["DATABASE_URL", "BOWERBIRD_DATABASE_URL"]
    assert "sandbox.copy.max_files" in explain("sandbox")["keys"]
    assert explain("providers.openai.api_key")["default"] == "not set"
    with pytest.raises(InvalidArgument, match=r"did you mean agent\.max_turns"):
        explain("max_turn")


@pytest.mark.parametrize(
    ("key", "guess"),
    [("agent.max_turn", "agent.max_turns"), ("max_turns", "agent.max_turns"), ("agnt", "agent")],
)
def test_an_unknown_key_gets_the_nearest_name(place, key, guess):
    with pytest.raises(InvalidArgument, match=f"did you mean {guess}"):
        explain(key)
    with pytest.raises(InvalidArgument, match=f"did you mean {guess}"):
        rows(place.load(), key)


def test_check_reports_files_errors_warnings_and_notes(place):
    """CF-82."""
    data = check_data(place.inspect("agent: {max_turn: 1}\nserver: {port: 0}\nprovider: {api_key: '${X}'}"))
    assert data["file"] == str(place.directory / "config.yaml")
    assert [len(data[name]) for name in ("errors", "warnings", "notes")] == [1, 1, 1]


def test_the_template_changes_nothing_until_a_line_is_uncommented(place):
    """CF-85: and uncommented it is what the defaults are."""
    assert parse(template().encode()).data == {}
    place.write("config.yaml", template())
    plain = place.load().settings
    lines = [
        line[1:] if line.startswith("#") and not line.startswith("# ") else line
        for line in template().splitlines()
    ]
    kept = "\n".join(line for line in lines if "${" not in line)
    open_names = parse(kept.encode()).data
    for section in ("mcp_servers", "models", "sandbox", "providers", "model_router", "workspace"):
        open_names.pop(section)
    for section in open_names:
        place.write("config.yaml", json.dumps({section: open_names[section]}))
        assert place.load().settings == plain, section


def test_the_schema_takes_what_the_loader_takes():
    """CF-86."""
    validator = jsonschema_rs.validator_for(schema())
    for good in (
        {},
        {"agent": None},
        {"agent": {"max_turns": 3, "max_tool_iterations": 3}},
        {"agent": {"max_turns": "${N}"}},
        {"sandbox": {"memory_bytes": "4 GiB", "copy": {"max_files": 1}}},
        {"approval": {"rules": ["deny bash", {"tool": "think", "decision": "allow"}]}},
        {"providers": {"mine": {"base_url": "http://h"}}},
        {
            "channels": {
                "telegram": {"enabled": False, "allowed_users": [1, "2", {"id": "3", "role": "guest"}]}
            }
        },
    ):
        assert validator.is_valid(good), good
    for bad in (
        {"agnt": {}},
        {"avatar": {"enabled": False}},
        {"agent": {"max_turns": 0}},
        {"agent": {"max_turns": "x"}},
        {"sandbox": {"tier": "x"}},
    ):
        assert not validator.is_valid(bad), bad


def test_the_reference_page_is_the_generated_one():
    """CF-87: run `python -m bowerbird.config.reference > docs/reference/settings.md`."""
    assert (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8") == page()


def test_every_key_says_what_it_means():
    assert [info.name for info in walk() if not info.meaning] == []
