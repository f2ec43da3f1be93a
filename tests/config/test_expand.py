"""CF-4, CF-5: variables in files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.config.layers import Leaf, Origin, expand, flatten, merge, nest

FILE = Origin("file", "config.yaml", 1)
KEY = ("provider", "model")


def expanded(text, variables):
    leaves, missing, findings = expand({KEY: Leaf(text, FILE)}, variables)
    assert not missing and not findings
    return leaves[KEY].value


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("${A}", "1"),
        ("x${A}y${A}", "x1y1"),
        ("${NO:-text}", "text"),
        ("${NO:-}", ""),
        ("${EMPTY:-d}", "d"),
        ("$${A}", "${A}"),
        ("$A", "$A"),
        ("$$${A}", "$${A}"),
        ("100%", "100%"),
    ],
)
def test_forms_of_variables(text, result):
    """CF-4."""
    assert expanded(text, {"A": "1", "EMPTY": ""}) == result


@given(st.text())
def test_replacement_text_is_taken_as_it_is(text):
    """CF-4, acceptance 4: neither expanded again nor read as YAML."""
    assert expanded("${X}", {"X": text}) == text


def test_values_of_the_environment_are_not_expanded(place):
    assert place.load(env={"MODEL": "${X}", "X": "y"}).settings.provider.model == "${X}"


def test_variables_stand_at_every_depth_and_in_lists_but_never_in_keys(place):
    loaded = place.load(
        "server: {origins: ['${A}', b]}\n"
        "providers: {'${A}': {base_url: 'http://h', args: ['${A}']}}\nagent: {max_turns: '${N}'}",
        env={"A": "x", "N": "12"},
    )
    assert loaded.settings.server.origins == ("x", "b")
    assert loaded.settings.providers.get("${A}").args == ("x",)
    assert loaded.settings.agent.max_turns == 12


def test_an_open_expression_is_an_error(errors):
    assert "begins no variable" in errors("provider: {model: 'a${b'}")[0]


def test_a_missing_variable_matters_only_where_its_feature_is_on(place, errors):
    """CF-5, acceptance 3."""
    text = "mcp_servers:\n  a:\n    url: http://h\n    authorization_token: ${NOPE}\n    enabled: "
    loaded = place.load(text + "false")
    assert loaded.settings.mcp_servers["a"].authorization_token is None
    assert "NOPE" in loaded.notes[0]
    (problem,) = errors(text + "true")
    assert (
        problem
        == f"mcp_servers.a.authorization_token: the variable NOPE is not defined; {place.directory}/config.yaml:4"
    )


@pytest.mark.parametrize(
    ("text", "is_error"),
    [
        ("model_router: {enabled: %s, tiers: {standard: {name: openai, model: '${NOPE}'}}}", None),
        ("mcp_servers: {a: {enabled: %s, url: 'http://h', headers: {A: '${NOPE}'}}}", None),
        ("mcp_servers: {a: {enabled: %s, command: '${NOPE}'}}", None),
        ("provider: {api_key: '${NOPE}'}", False),
        ("budgets: {session_usd: '${NOPE}'}", True),
        ("server: {auth: '${NOPE}'}", True),
    ],
)
def test_owners_of_missing_values(place, text, is_error):
    """CF-5: a limit or a lock that lacks its variable never opens silently."""
    if is_error is None:
        assert not any("NOPE" in e for e in place.inspect(text % "false").errors)
        assert any("NOPE" in e for e in place.inspect(text % "true").errors)
    else:
        assert any("NOPE" in e for e in place.inspect(text).errors) is is_error


def test_a_missing_value_that_a_higher_source_gives_is_not_missing(place):
    loaded = place.load("budgets: {session_usd: '${NOPE}'}", env={"BOWERBIRD_BUDGETS__SESSION_USD": "2"})
    assert loaded.settings.budgets.session_usd == 2


servers = st.dictionaries(
    st.sampled_from("abc"),
    st.none()
    | st.dictionaries(st.sampled_from(["call_timeout", "enabled", "args"]), st.none() | st.integers(1, 9)),
)


def overlaid(low, high):
    """The rule of CF-3 said again, over nested mappings."""
    result = dict(low)
    for name, value in high.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = overlaid(result.get(name, {}), value)
        else:
            result[name] = value
    return result


def leaves_of(data, path=()):
    if not isinstance(data, dict):
        return {path: data}
    return {p: value for name, item in data.items() for p, value in leaves_of(item, (*path, name)).items()}


@given(st.lists(servers, max_size=4))
def test_merging_layers_equals_merging_nested_mappings(documents):
    """CF-3 against a model."""
    model = {}
    for document in documents:
        model = overlaid(model, document)
    flat = [flatten({"mcp_servers": d}, {}, "file", "f")[0] for d in documents]
    merged = nest(merge(flat)).get("mcp_servers", {})
    assert leaves_of(merged) == leaves_of(model)
